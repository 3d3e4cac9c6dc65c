// Arithmetic under directed rounding. The host's rounding mode is changed around each instruction, so this file is
// compiled with -frounding-math.
#include "Ops.h"
#include <cfenv>

namespace gdn::emu {
namespace {

int hostMode(uint8_t rounding) {
  switch (Rounding(rounding)) {
  case Rounding::Zero:
    return FE_TOWARDZERO;
  case Rounding::Down:
    return FE_DOWNWARD;
  case Rounding::Up:
    return FE_UPWARD;
  default:
    return FE_TONEAREST;
  }
}

template <class T, auto F, unsigned N> void rounded(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[N > 1 ? 2 : 1]), *z = w.at<T>(i.a[N > 2 ? 3 : 1]);
  const int before = std::fegetround();
  std::fesetround(hostMode(i.flags));
  writeEach<T>(w, i.a[0], [&](unsigned l) {
    auto in = [&](T v) { return i.aux & 1 ? T(flush(float(v))) : v; };
    volatile T p = in(x[l]), q = in(y[l]), r = in(z[l]);
    volatile T result = F(T(p), T(q), T(r));
    T value = in(result);
    return i.aux & 2 ? T(saturate(float(value))) : canonical(value);
  });
  std::fesetround(before);
}

template <auto F, unsigned N> Run pick(Type t) { return t == Type::F64 ? rounded<double, F, N> : rounded<float, F, N>; }

} // namespace

Run roundedRun(Type t, const std::string &name) {
  if (name == "add")
    return pick<[](auto x, auto y, auto) { return x + y; }, 2>(t);
  if (name == "sub")
    return pick<[](auto x, auto y, auto) { return x - y; }, 2>(t);
  if (name == "mul")
    return pick<[](auto x, auto y, auto) { return x * y; }, 2>(t);
  if (name == "div")
    return pick<[](auto x, auto y, auto) { return x / y; }, 2>(t);
  if (name == "sqrt")
    return pick<[](auto x, auto, auto) { return std::sqrt(x); }, 1>(t);
  if (name == "rcp")
    return pick<[](auto x, auto, auto) { return 1 / x; }, 1>(t);
  return pick<[](auto x, auto y, auto z) { return std::fma(x, y, z); }, 3>(t);
}

} // namespace gdn::emu
