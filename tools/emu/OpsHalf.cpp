// Arithmetic on f16, bf16 and their packed pairs, and the rows that choose between integers, floats and halves.
#include "Ops.h"

namespace gdn::emu {
namespace {

template <bool Bf> float widen(uint16_t x) { return Bf ? bf16ToFloat(x) : halfToFloat(x); }

// What x * y + z is in double, rounded to odd where it is inexact, so that a second rounding sees that something was
// lost. The product of two halves is exact.
double fused(double x, double y, double z) {
  double p = x * y, sum = p + z, part = sum - p, lost = (p - (sum - part)) + (z - part);
  bool even = !(std::bit_cast<uint64_t>(sum) & 1);
  return lost != 0 && even && std::isfinite(sum) ? std::nextafter(sum, lost > 0 ? INFINITY : -INFINITY) : sum;
}

// Products and sums of two halves are exact or safely rounded in double.
template <bool Bf> uint16_t narrow(double x) {
  float f = float(x);
  // Round to odd, so that the second rounding sees whether anything was lost.
  if (double(f) != x && x == x && std::isfinite(f)) {
    uint32_t b = std::bit_cast<uint32_t>(f);
    if (std::fabs(double(f)) > std::fabs(x))
      b--;
    f = std::bit_cast<float>(b | 1);
  }
  return Bf ? floatToBf16(f) : floatToHalf(f);
}

template <bool Bf, bool Packed, unsigned N, auto F> void half(Warp &w, const Inst &i) {
  using T = std::conditional_t<Packed, uint32_t, uint16_t>;
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[N > 1 ? 2 : 1]), *z = w.at<T>(i.a[N > 2 ? 3 : 1]);
  write<T>(w, i.a[0], [&](unsigned l) {
    T r = 0;
    for (unsigned h = 0; h < sizeof(T) * 8; h += 16) {
      auto value = [&](T v) { return double(widen<Bf>(uint16_t(v >> h))); };
      double result = F(value(x[l]), value(y[l]), value(z[l]));
      if (i.flags & 4 && (value(x[l]) != value(x[l]) || value(y[l]) != value(y[l])))
        result = std::numeric_limits<double>::quiet_NaN();
      if (i.flags & 1)
        result = result > 0 ? (result < 1 ? result : 1) : 0;
      if (i.flags & 2)
        result = result > 0 ? result : result == result ? 0 : result;
      r |= T(narrow<Bf>(result)) << h;
    }
    return r;
  });
}

// A NaN loses against a number; -0 < +0.
double larger(double x, double y) {
  if (x != x || y != y)
    return x != x ? y : x;
  return x < y || (x == y && std::signbit(x)) ? y : x;
}

template <unsigned N, auto F> void decode(Decoder &d) {
  d.take("rn"), d.take("ftz"), d.take("approx");
  d.inst().flags = (d.take("sat") ? 1 : 0) | (d.take("relu") ? 2 : 0) | (d.take("NaN") ? 4 : 0);
  Type t = d.type();
  d.expectOperands(N + 1, N + 1);
  d.out(t, 0);
  for (unsigned n = 1; n <= N; n++)
    d.use(t, n);
  bool bf = t == Type::BF16 || t == Type::BF16X2, packed = sizeOf(t) == 4;
  d.finish(bf ? (packed ? half<true, true, N, F> : half<true, false, N, F>)
              : (packed ? half<false, true, N, F> : half<false, false, N, F>),
           Unit::Half);
}

void decodeArithmetic(Decoder &d) {
  const std::string &name = d.source().name;
  switch (d.peekType()) {
  case Type::F16:
  case Type::BF16:
  case Type::F16X2:
  case Type::BF16X2:
    return decodeHalf(d, name);
  case Type::F32:
  case Type::F64:
    return decodeFloat(d, name);
  default:
    if (isFloat(d.peekType()) || name == "fma")
      d.fail("type '." + std::string(nameOf(d.peekType())) + "' is not supported here");
    return decodeInteger(d, name);
  }
}

const Row rows[] = {
    {"add", decodeArithmetic}, {"sub", decodeArithmetic}, {"mul", decodeArithmetic}, {"mad", decodeArithmetic},
    {"fma", decodeArithmetic}, {"div", decodeArithmetic}, {"min", decodeArithmetic}, {"max", decodeArithmetic},
    {"abs", decodeArithmetic}, {"neg", decodeArithmetic},
};

} // namespace
const Family arithmeticFamily{rows, std::size(rows)};

void decodeHalf(Decoder &d, const std::string &name) {
  if (name == "add")
    return decode<2, [](double x, double y, double) { return x + y; }>(d);
  if (name == "sub")
    return decode<2, [](double x, double y, double) { return x - y; }>(d);
  if (name == "mul")
    return decode<2, [](double x, double y, double) { return x * y; }>(d);
  if (name == "fma")
    return decode<3, fused>(d);
  if (name == "min")
    return decode<2, [](double x, double y, double) { return -larger(-x, -y); }>(d);
  if (name == "max")
    return decode<2, [](double x, double y, double) { return larger(x, y); }>(d);
  if (name == "abs")
    return decode<1, [](double x, double, double) { return std::fabs(x); }>(d);
  if (name == "neg")
    return decode<1, [](double x, double, double) { return -x; }>(d);
  d.fail("type '." + std::string(nameOf(d.peekType())) + "' is not supported here");
}
} // namespace gdn::emu
