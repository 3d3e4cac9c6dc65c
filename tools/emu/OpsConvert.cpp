// cvt in all its forms.
#include "Ops.h"
#include <algorithm>
#include <cfenv>

namespace gdn::emu {
namespace {

// A register's lanes as 64 bits each, from the type they hold.
uint64_t load(const Warp &w, Slot s, unsigned bytes, unsigned l) {
  switch (bytes) {
  case 2:
    return w.at<uint16_t>(s)[l];
  case 4:
    return w.at<uint32_t>(s)[l];
  default:
    return w.at<uint64_t>(s)[l];
  }
}

// Integer to integer: through the source's type, extended to the register. Saturation clamps to the destination's
// range.
void integerToInteger(Warp &w, const Inst &i) {
  Type to = Type(i.imm & 255), from = Type(i.imm >> 8 & 255);
  uint64_t x[lanes];
  for (unsigned l = 0; l < lanes; l++)
    x[l] = load(w, i.a[1], i.aux & 15, l);
  withInteger(from, [&](auto z) {
    for (unsigned l = 0; l < lanes; l++)
      x[l] = uint64_t(int64_t(decltype(z)(x[l])));
  });
  withInteger(to, [&](auto z) {
    using D = decltype(z);
    if (i.flags & 1) {
      bool positive = !isSigned(from);
      for (unsigned l = 0; l < lanes; l++) {
        if (!positive && int64_t(x[l]) < 0)
          x[l] = std::is_signed_v<D> ? uint64_t(std::max(int64_t(x[l]), int64_t(std::numeric_limits<D>::min()))) : 0;
        else
          x[l] = std::min(x[l], uint64_t(std::numeric_limits<D>::max()));
      }
    }
    for (unsigned l = 0; l < lanes; l++)
      x[l] = uint64_t(int64_t(D(x[l])));
  });
  switch (i.aux >> 4) {
  case 2:
    return write<uint16_t>(w, i.a[0], [&](unsigned l) { return uint16_t(x[l]); });
  case 4:
    return write<uint32_t>(w, i.a[0], [&](unsigned l) { return uint32_t(x[l]); });
  default:
    return write<uint64_t>(w, i.a[0], [&](unsigned l) { return x[l]; });
  }
}

// The common cases, whose registers have the types' own sizes.
template <class D, class S> void plain(Warp &w, const Inst &i) {
  const S *x = w.at<S>(i.a[1]);
  write<D>(w, i.a[0], [&](unsigned l) { return D(x[l]); });
}
void halfToF32(Warp &w, const Inst &i) {
  const uint16_t *x = w.at<uint16_t>(i.a[1]);
  write<float>(w, i.a[0], [&](unsigned l) { return canonical(halfToFloat(x[l])); });
}
void bf16ToF32(Warp &w, const Inst &i) {
  const uint16_t *x = w.at<uint16_t>(i.a[1]);
  write<float>(w, i.a[0], [&](unsigned l) { return bf16ToFloat(x[l]); });
}
// What .relu and .satfinite do before the rounding; a NaN stays one.
float bounded(float x, bool relu, float most) {
  float least = relu ? 0 : -most;
  return x <= least ? least : x > most ? most : x; // under .relu -0 becomes 0
}
float mostOf(Type t, bool finite) {
  if (!finite)
    return std::numeric_limits<float>::infinity();
  return t == Type::F16 || t == Type::F16X2 ? 65504.0f : std::bit_cast<float>(0x7f7f0000u);
}
template <bool Bf, bool Relu> void packPair(Warp &w, const Inst &i) {
  const float *hi = w.at<float>(i.a[1]), *lo = w.at<float>(i.a[2]);
  const float most = std::bit_cast<float>(i.aux);
  write<uint32_t>(w, i.a[0], [&](unsigned l) {
    float h = bounded(hi[l], Relu, most), o = bounded(lo[l], Relu, most);
    return Bf ? uint32_t(floatToBf16(h)) << 16 | floatToBf16(o) : uint32_t(floatToHalf(h)) << 16 | floatToHalf(o);
  });
}
template <bool Bf> void f32ToHalf(Warp &w, const Inst &i) {
  const float *x = w.at<float>(i.a[1]);
  write<uint16_t>(w, i.a[0], [&](unsigned l) { return Bf ? floatToBf16(x[l]) : floatToHalf(x[l]); });
}
template <class D> void truncateF32(Warp &w, const Inst &i) {
  const float *x = w.at<float>(i.a[1]);
  constexpr float limit = std::is_signed_v<D> ? 2147483648.0f : 4294967296.0f;
  write<D>(w, i.a[0], [&](unsigned l) {
    float least = std::is_signed_v<D> ? -limit : 0.0f;
    return !(x[l] == x[l]) ? D(0)
           : x[l] >= limit ? std::numeric_limits<D>::max()
           : x[l] <= least ? std::numeric_limits<D>::min()
                           : D(int64_t(x[l]));
  });
}

// Everything else, lane by lane: rounding 0..3 is to an integer, 4..7 of the result.
struct Form {
  Type to, from;
  uint8_t rounding, flags; // flags: 1 sat, 2 ftz, 4 satfinite
};
enum { RoundInteger = 0, RoundResult = 4, RoundNone = 8 };

int hostRounding(unsigned r) {
  constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  return modes[r & 3];
}

double sourceValue(Type t, uint64_t bits) {
  switch (t) {
  case Type::F64:
    return std::bit_cast<double>(bits);
  case Type::F32:
    return std::bit_cast<float>(uint32_t(bits));
  case Type::F16:
    return halfToFloat(uint16_t(bits));
  default:
    return bf16ToFloat(uint16_t(bits));
  }
}

uint64_t toInteger(Type t, double x) {
  if (x != x)
    return 0;
  return withInteger(t, [&](auto z) -> uint64_t {
    using D = decltype(z);
    double low = double(std::numeric_limits<D>::min()), high = std::ldexp(1.0, int(std::numeric_limits<D>::digits));
    return x <= low    ? uint64_t(std::numeric_limits<D>::min())
           : x >= high ? uint64_t(std::numeric_limits<D>::max())
           : x < 0     ? uint64_t(int64_t(x))
                       : uint64_t(x);
  });
}

// A 16-bit float of a double under the directions that drop bits: nearest is the common case and exact through fp32.
uint64_t toSmall(Type t, double x, unsigned direction) {
  auto narrow = [&](float f) { return t == Type::F16 ? floatToHalf(f) : floatToBf16(f); };
  auto widen = [&](uint16_t h) { return double(t == Type::F16 ? halfToFloat(h) : bf16ToFloat(h)); };
  uint16_t h = narrow(float(x));
  if (direction == 1) {
    double magnitude = std::fabs(widen(h));
    if (magnitude > std::fabs(x) && (h & 0x7fff))
      h--;
  }
  return h;
}

uint64_t fromDouble(const Form &f, double x) {
  unsigned direction = f.rounding >= RoundResult && f.rounding < RoundNone ? f.rounding & 3 : 0;
  if (f.flags & 1 && isFloat(f.to))
    x = x > 0 ? (x < 1 ? x : 1) : 0;
  switch (f.to) {
  case Type::F64:
    return std::bit_cast<uint64_t>(x);
  case Type::F32: {
    volatile float r = float(x); // under the host's rounding mode
    float v = canonical(float(r));
    return std::bit_cast<uint32_t>(f.flags & 2 ? flush(v) : v);
  }
  case Type::F16:
  case Type::BF16:
    if (f.flags & 4 && std::fabs(x) > mostOf(f.to, true))
      x = std::copysign(mostOf(f.to, true), x);
    return toSmall(f.to, x, direction);
  case Type::TF32: {
    uint32_t b = std::bit_cast<uint32_t>(float(x));
    return (b + 0x1000) & ~0x1fffu; // ties away from zero
  }
  default:
    return toInteger(f.to, x);
  }
}

uint64_t convert(const Form &f, uint64_t bits) {
  if (!isFloat(f.from)) {
    int64_t x = withInteger(f.from, [&](auto z) { return int64_t(decltype(z)(bits)); });
    if (f.to == Type::F64) {
      volatile double r = isSigned(f.from) ? double(x) : double(uint64_t(x));
      return std::bit_cast<uint64_t>(double(r));
    }
    volatile float r = isSigned(f.from) ? float(x) : float(uint64_t(x));
    return f.to == Type::F32 ? std::bit_cast<uint32_t>(float(r)) : toSmall(f.to, double(r), 0);
  }
  double x = sourceValue(f.from, bits);
  if (f.flags & 2 && sizeOf(f.from) == 4)
    x = flush(float(x));
  if (f.rounding < RoundResult)
    x = std::nearbyint(x);
  return fromDouble(f, x);
}

void generic(Warp &w, const Inst &i) {
  Form f{Type(i.imm & 255), Type(i.imm >> 8 & 255), uint8_t(i.imm >> 16), i.flags};
  const int before = std::fegetround();
  std::fesetround(f.rounding < RoundNone ? hostRounding(f.rounding) : FE_TONEAREST);
  unsigned from = i.aux & 15;
  auto value = [&](unsigned l) { return convert(f, load(w, i.a[1], from, l)); };
  // A signed integer fills a wider register with its sign.
  auto extended = [&](unsigned l) {
    uint64_t v = value(l);
    return isFloat(f.to) ? v : withInteger(f.to, [&](auto z) { return uint64_t(int64_t(decltype(z)(v))); });
  };
  switch (i.aux >> 4) {
  case 2:
    writeEach<uint16_t>(w, i.a[0], [&](unsigned l) { return uint16_t(extended(l)); });
    break;
  case 4:
    writeEach<uint32_t>(w, i.a[0], [&](unsigned l) { return uint32_t(extended(l)); });
    break;
  default:
    writeEach<uint64_t>(w, i.a[0], extended);
  }
  std::fesetround(before);
}

unsigned takeCvtRounding(Decoder &d) {
  if (int r = d.choose({"rni", "rzi", "rmi", "rpi"}); r >= 0)
    return RoundInteger + r;
  int r = d.choose({"rn", "rz", "rm", "rp"});
  return r >= 0 ? RoundResult + r : RoundNone;
}

Run fastRun(const Form &f) {
  if (f.flags)
    return nullptr;
  bool nearest = f.rounding == RoundResult || f.rounding == RoundNone;
  if (f.to == Type::F32 && f.from == Type::F16)
    return halfToF32;
  if (f.to == Type::F32 && f.from == Type::BF16)
    return bf16ToF32;
  if (f.from == Type::F32 && nearest && (f.to == Type::F16 || f.to == Type::BF16))
    return f.to == Type::F16 ? f32ToHalf<false> : f32ToHalf<true>;
  if (f.to == Type::F64 && f.from == Type::F32)
    return plain<double, float>;
  if (nearest && f.to == Type::F32 && f.from == Type::F64)
    return plain<float, double>;
  if (nearest && f.to == Type::F32 && f.from == Type::S32)
    return plain<float, int32_t>;
  if (nearest && f.to == Type::F32 && f.from == Type::U32)
    return plain<float, uint32_t>;
  if (f.rounding == RoundInteger + 1 && f.from == Type::F32 && f.to == Type::S32)
    return truncateF32<int32_t>;
  if (f.rounding == RoundInteger + 1 && f.from == Type::F32 && f.to == Type::U32)
    return truncateF32<uint32_t>;
  return nullptr;
}

void decodePair(Decoder &d, Type to, bool relu) {
  if (d.type() != Type::F32)
    d.fail("expected '.f32' as source of a pair");
  d.expectOperands(3, 3);
  d.out(to, 0);
  d.uses(Type::F32, {1, 2});
  bool bf = to == Type::BF16X2;
  d.finish(bf ? (relu ? packPair<true, true> : packPair<true, false>)
              : (relu ? packPair<false, true> : packPair<false, false>),
           Unit::Convert);
}

void decodeCvt(Decoder &d) {
  Form f{};
  bool awayFromZero = d.take("rna"); // of tf32 alone
  f.rounding = takeCvtRounding(d);
  bool relu = d.take("relu");
  f.flags = (d.take("sat") ? 1 : 0) | (d.take("ftz") ? 2 : 0);
  bool finite = d.take("satfinite");
  f.to = d.type();
  if (f.to == Type::F16X2 || f.to == Type::BF16X2) {
    if (f.rounding != RoundResult)
      d.fail("expected '.rn' for a pair");
    d.inst().aux = std::bit_cast<uint32_t>(mostOf(f.to, finite));
    return decodePair(d, f.to, relu);
  }
  f.from = d.type();
  d.expectOperands(2, 2);
  bool small = f.to == Type::F16 || f.to == Type::BF16,
       directed = f.rounding == RoundResult + 2 || f.rounding == RoundResult + 3;
  if (relu || sizeOf(f.to) > 8 || f.to == Type::E4M3X2 || f.to == Type::E5M2X2 || (small && directed) ||
      (finite && !small) || (f.to == Type::TF32 && !awayFromZero))
    d.fail("this conversion is not supported");
  f.flags |= finite ? 4 : 0;
  d.out(f.to, d.operand(0), true);
  d.use(f.from, d.operand(1), true);
  unsigned to = std::max(d.width(d.operand(0)), 2u), from = d.width(d.operand(1));
  if (!from)
    from = std::max(sizeOf(f.from), 2u);
  d.inst().aux = to << 4 | from;
  d.inst().flags = f.flags;
  d.inst().imm = int64_t(f.to) | int64_t(f.from) << 8 | int64_t(f.rounding) << 16;
  Run run = nullptr;
  if (!isFloat(f.to) && !isFloat(f.from))
    run = integerToInteger;
  else if (to == sizeOf(f.to) && from == sizeOf(f.from))
    run = fastRun(f);
  d.finish(run ? run : generic, Unit::Convert);
}

const Row rows[] = {{"cvt", decodeCvt}};

} // namespace
const Family convertFamily{rows, std::size(rows)};
} // namespace gdn::emu
