// Arithmetic on f32 and f64, the approximations, comparison and selection.
#include "Ops.h"
#include <algorithm>

namespace gdn::emu {
namespace {

template <class T, bool Ftz> T in(T x) {
  if constexpr (Ftz)
    return flush(x);
  else
    return x;
}

template <class T, bool Ftz, bool Sat> T result(T r) {
  r = in<T, Ftz>(r);
  if constexpr (Sat)
    return T(saturate(float(r)));
  else
    return canonical(r);
}

template <class T, auto F, bool Ftz, bool Sat> void float1(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  write<T>(w, i.a[0], [&](unsigned l) { return result<T, Ftz, Sat>(F(in<T, Ftz>(x[l]))); });
}
template <class T, auto F, bool Ftz, bool Sat> void float2(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  write<T>(w, i.a[0], [&](unsigned l) { return result<T, Ftz, Sat>(F(in<T, Ftz>(x[l]), in<T, Ftz>(y[l]))); });
}
template <class T, auto F, bool Ftz, bool Sat> void float3(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]), *z = w.at<T>(i.a[3]);
  write<T>(w, i.a[0],
           [&](unsigned l) { return result<T, Ftz, Sat>(F(in<T, Ftz>(x[l]), in<T, Ftz>(y[l]), in<T, Ftz>(z[l]))); });
}

// Handlers of F for a type, with and without flushing and saturation.
template <auto F, unsigned N, class T, bool Ftz, bool Sat> constexpr Run handler() {
  if constexpr (N == 1)
    return float1<T, F, Ftz, Sat>;
  else if constexpr (N == 2)
    return float2<T, F, Ftz, Sat>;
  else
    return float3<T, F, Ftz, Sat>;
}
template <auto F, unsigned N> Run pick(Type t, bool ftz, bool sat) {
  if (t == Type::F64)
    return handler<F, N, double, false, false>();
  if (ftz)
    return sat ? handler<F, N, float, true, true>() : handler<F, N, float, true, false>();
  return sat ? handler<F, N, float, false, true>() : handler<F, N, float, false, false>();
}

Type floatType(Decoder &d) {
  Type t = d.type();
  if (t != Type::F32 && t != Type::F64)
    d.fail("expected '.f32' or '.f64', got '." + std::string(nameOf(t)) + "'");
  return t;
}
void operandsOf(Decoder &d, Type t, unsigned sources) {
  d.expectOperands(sources + 1, sources + 1);
  d.out(t, 0);
  for (unsigned n = 1; n <= sources; n++)
    d.use(t, n);
}

template <auto F, unsigned N> void decodePlain(Decoder &d) {
  bool ftz = d.take("ftz"), sat = d.take("sat");
  d.take("approx"), d.take("full");
  Rounding r = takeRounding(d);
  Type t = floatType(d);
  operandsOf(d, t, N);
  d.finish(r == Rounding::Nearest ? pick<F, N>(t, ftz, sat) : roundedRun(t, d.source().name),
           t == Type::F64 ? Unit::Double : Unit::Fma);
  if (r != Rounding::Nearest) {
    d.inst().flags = uint8_t(r);
    d.inst().aux = (ftz ? 1 : 0) | (sat ? 2 : 0);
  }
}

// A NaN loses against a number unless .NaN asks otherwise; -0 < +0.
template <class T, bool Max, bool Nan> T extreme(T x, T y) {
  if (x != x || y != y)
    return Nan ? std::numeric_limits<T>::quiet_NaN() : x != x ? (y != y ? std::numeric_limits<T>::quiet_NaN() : y) : x;
  if (x == y)
    return std::signbit(x) == Max ? y : x;
  return (x < y) == Max ? y : x;
}
template <bool Max> void decodeExtreme(Decoder &d) {
  bool ftz = d.take("ftz"), nan = d.take("NaN");
  Type t = floatType(d);
  operandsOf(d, t, 2);
  auto quiet = [](auto x, auto y) { return extreme<decltype(x), Max, false>(x, y); };
  auto loud = [](auto x, auto y) { return extreme<decltype(x), Max, true>(x, y); };
  d.finish(nan ? pick<decltype(loud){}, 2>(t, ftz, false) : pick<decltype(quiet){}, 2>(t, ftz, false), Unit::Alu);
}

// Operations that are approximate on the device are correctly rounded here, up to one unit in the last place, but for
// ex2: the PTX ISA allows 1 ulp for rcp, 2^-22.6 for lg2, 2^-22.9 relative for rsqrt.
template <auto F> void decodeApprox(Decoder &d) {
  d.take("approx");
  bool ftz = d.take("ftz");
  Type t = floatType(d);
  operandsOf(d, t, 1);
  d.finish(pick<F, 1>(t, ftz, false), Unit::Special);
}

template <class T> T exp2Of(T x) {
  if constexpr (sizeof(T) == 4)
    return exp2Approx(x);
  else
    return std::exp2(x);
}

// Every comparison is one of these, perhaps with its operands exchanged and perhaps its opposite.
enum class Relation : uint8_t { Equal, Different, Less, LessOrEqual, Ordered };
struct Comparison {
  const char *name;
  Relation relation;
  bool exchanged, opposite;
};
constexpr Comparison comparisons[] = {
    {"eq", Relation::Equal, false, false},       {"ne", Relation::Different, false, false},
    {"lt", Relation::Less, false, false},        {"le", Relation::LessOrEqual, false, false},
    {"gt", Relation::Less, true, false},         {"ge", Relation::LessOrEqual, true, false},
    {"equ", Relation::Different, false, true},   {"neu", Relation::Equal, false, true},
    {"ltu", Relation::LessOrEqual, true, true},  {"leu", Relation::Less, true, true},
    {"gtu", Relation::LessOrEqual, false, true}, {"geu", Relation::Less, false, true},
    {"num", Relation::Ordered, false, false},    {"nan", Relation::Ordered, false, true},
    {"lo", Relation::Less, false, false},        {"ls", Relation::LessOrEqual, false, false},
    {"hi", Relation::Less, true, false},         {"hs", Relation::LessOrEqual, true, false},
};

template <class T, Relation R> bool holds(T x, T y) {
  if constexpr (R == Relation::Equal)
    return x == y;
  else if constexpr (R == Relation::Different)
    return x < y || x > y;
  else if constexpr (R == Relation::Less)
    return x < y;
  else if constexpr (R == Relation::LessOrEqual)
    return x <= y;
  else
    return x == x && y == y;
}

// 16-bit floats are compared as fp32.
struct HalfBits {
  uint16_t bits;
  operator float() const { return halfToFloat(bits); }
};
struct BfloatBits {
  uint16_t bits;
  operator float() const { return bf16ToFloat(bits); }
};

using Lanes = uint32_t (*)(Warp &, const Slot *);
template <class T, class X, Relation R, bool Ftz> uint32_t compareLanes(Warp &w, const Slot *a) {
  const T *x = w.at<T>(a[0]), *y = w.at<T>(a[1]);
  return predicate([&](unsigned l) {
    if constexpr (Ftz)
      return holds<X, R>(flush(x[l]), flush(y[l]));
    else
      return holds<X, R>(X(x[l]), X(y[l]));
  });
}
template <class T, class X = T, bool Ftz = false> Lanes lanesOf(Relation r) {
  constexpr Lanes table[] = {compareLanes<T, X, Relation::Equal, Ftz>, compareLanes<T, X, Relation::Different, Ftz>,
                             compareLanes<T, X, Relation::Less, Ftz>, compareLanes<T, X, Relation::LessOrEqual, Ftz>,
                             compareLanes<T, X, Relation::Ordered, Ftz>};
  return table[unsigned(r)];
}
Lanes lanesOf(Type t, Relation r, bool ftz) {
  switch (t) {
  case Type::F32:
    return ftz ? lanesOf<float, float, true>(r) : lanesOf<float>(r);
  case Type::F64:
    return lanesOf<double>(r);
  case Type::F16:
    return lanesOf<HalfBits, float>(r);
  case Type::BF16:
    return lanesOf<BfloatBits, float>(r);
  default:
    return withInteger(t, [&](auto z) { return lanesOf<decltype(z)>(r); });
  }
}

enum CompareFlags : uint8_t { Combine = 3, Opposite = 4, NotPredicate = 8 }; // Combine: 1 and, 2 or, 3 xor

// imm: the comparison. a: destinations, the operands, the predicate to combine with.
uint32_t compared(Warp &w, const Inst &i, unsigned first) {
  return reinterpret_cast<Lanes>(i.imm)(w, i.a + first) ^ (i.flags & Opposite ? all : 0);
}
void setp(Warp &w, const Inst &i) {
  uint32_t r = compared(w, i, 2), s = ~r;
  if (unsigned how = i.flags & Combine) {
    uint32_t p = *w.at<uint32_t>(i.a[4]) ^ (i.flags & NotPredicate ? all : 0);
    r = how == 1 ? r & p : how == 2 ? r | p : r ^ p;
    s = how == 1 ? s & p : how == 2 ? s | p : s ^ p;
  }
  writePredicate(w, i.a[0], r);
  writePredicate(w, i.a[1], s);
}
void set(Warp &w, const Inst &i) {
  uint32_t r = compared(w, i, 1);
  write<uint32_t>(w, i.a[0], [&](unsigned l) { return r >> l & 1 ? i.aux : 0u; });
}

const Comparison &takeComparison(Decoder &d) {
  for (auto &c : comparisons)
    if (d.take(c.name))
      return c;
  d.fail("expected a comparison");
}
void useCompared(Decoder &d, const Comparison &c, Type t, bool ftz) {
  if (t == Type::F16X2 || t == Type::BF16X2 || t == Type::Pred)
    d.fail("this type is not supported");
  d.use(t, c.exchanged ? 2 : 1);
  d.use(t, c.exchanged ? 1 : 2);
  d.inst().imm = reinterpret_cast<int64_t>(lanesOf(t, c.relation, ftz));
  if (c.opposite)
    d.inst().flags |= Opposite;
}

void decodeSetp(Decoder &d) {
  const Comparison &c = takeComparison(d);
  unsigned combine = 1 + d.choose({"and", "or", "xor"});
  bool ftz = d.take("ftz");
  Type t = d.type();
  d.expectOperands(combine ? 4 : 3, combine ? 4 : 3);
  const Operand &to = d.operand(0);
  bool pair = to.kind == Operand::Kind::Pair;
  d.out(Type::Pred, pair ? to.items[0] : to);
  d.out(Type::Pred, pair ? to.items[1] : Operand{});
  useCompared(d, c, t, ftz);
  d.inst().flags |= combine;
  if (combine) {
    d.use(Type::Pred, 3);
    d.inst().flags |= d.operand(3).negated ? NotPredicate : 0;
  }
  d.finish(setp, Unit::Alu);
}

void decodeSet(Decoder &d) {
  const Comparison &c = takeComparison(d);
  bool ftz = d.take("ftz");
  Type to = d.type(), t = d.type();
  d.expectOperands(3, 3);
  if (sizeOf(to) != 4)
    d.fail("expected a destination type of 32 bits");
  d.out(to, 0);
  useCompared(d, c, t, ftz);
  d.inst().aux = to == Type::F32 ? 0x3f800000u : ~0u;
  d.finish(set, Unit::Alu);
}

template <class T> void selp(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  uint32_t p = *w.at<uint32_t>(i.a[3]) ^ i.aux;
  write<T>(w, i.a[0], [&](unsigned l) { return p >> l & 1 ? x[l] : y[l]; });
}
void decodeSelp(Decoder &d) {
  Type t = d.type();
  d.expectOperands(4, 4);
  d.out(t, 0);
  d.uses(t, {1, 2});
  d.use(Type::Pred, 3);
  d.inst().aux = d.operand(3).negated ? ~0u : 0;
  d.finish(sizeOf(t) == 8 ? selp<uint64_t> : sizeOf(t) == 2 ? selp<uint16_t> : selp<uint32_t>, Unit::Alu);
}

template <class T, class C> void slct(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  const C *c = w.at<C>(i.a[3]);
  write<T>(w, i.a[0], [&](unsigned l) { return c[l] >= 0 ? x[l] : y[l]; });
}
void decodeSlct(Decoder &d) {
  d.take("ftz");
  Type t = d.type(), c = d.type();
  d.out(t, 0);
  d.uses(t, {1, 2});
  d.use(c, 3);
  d.finish(c == Type::F32 ? (sizeOf(t) == 8 ? slct<uint64_t, float> : slct<uint32_t, float>)
                          : (sizeOf(t) == 8 ? slct<uint64_t, int32_t> : slct<uint32_t, int32_t>),
           Unit::Alu);
}

void testp(Warp &w, const Inst &i) {
  const float *x = w.at<float>(i.a[1]);
  writePredicate(w, i.a[0], predicate([&](unsigned l) {
                   bool is[] = {std::isfinite(x[l]), std::isinf(x[l]),    x[l] == x[l],
                                x[l] != x[l],        std::isnormal(x[l]), std::fpclassify(x[l]) == FP_SUBNORMAL};
                   return is[i.flags];
                 }));
}
void decodeTestp(Decoder &d) {
  int what = d.choose({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  if (what < 0 || d.type() != Type::F32)
    d.fail("expected a class of '.f32'");
  d.inst().flags = what;
  d.out(Type::Pred, 0);
  d.use(Type::F32, 1);
  d.finish(testp, Unit::Alu);
}

// copysign d, a, b: the sign of a, the magnitude of b.
void decodeCopysign(Decoder &d) {
  Type t = floatType(d);
  operandsOf(d, t, 2);
  d.finish(pick<[](auto x, auto y) { return std::copysign(y, x); }, 2>(t, false, false), Unit::Alu);
}

const Row rows[] = {
    {"setp", decodeSetp},
    {"set", decodeSet},
    {"selp", decodeSelp},
    {"slct", decodeSlct},
    {"testp", decodeTestp},
    {"copysign", decodeCopysign},
    {"rcp", decodePlain<[](auto x) { return 1 / x; }, 1>},
    {"sqrt", decodePlain<[](auto x) { return std::sqrt(x); }, 1>},
    {"rsqrt", decodeApprox<[](auto x) { return decltype(x)(1 / std::sqrt(double(x))); }>},
    {"ex2", decodeApprox<[](auto x) { return exp2Of(x); }>},
    {"lg2", decodeApprox<[](auto x) { return std::log2(x); }>},
    {"sin", decodeApprox<[](auto x) { return std::sin(x); }>},
    {"cos", decodeApprox<[](auto x) { return std::cos(x); }>},
    {"tanh", decodeApprox<[](auto x) { return std::tanh(x); }>},
};

} // namespace
const Family floatFamily{rows, std::size(rows)};

Rounding takeRounding(Decoder &d) { return Rounding(std::max(0, d.choose({"rn", "rz", "rm", "rp"}))); }

void decodeFloat(Decoder &d, const std::string &name) {
  if (name == "add")
    return decodePlain<[](auto x, auto y) { return x + y; }, 2>(d);
  if (name == "sub")
    return decodePlain<[](auto x, auto y) { return x - y; }, 2>(d);
  if (name == "mul")
    return decodePlain<[](auto x, auto y) { return x * y; }, 2>(d);
  if (name == "fma" || name == "mad")
    return decodePlain<[](auto x, auto y, auto z) { return std::fma(x, y, z); }, 3>(d);
  if (name == "div")
    return decodePlain<[](auto x, auto y) { return x / y; }, 2>(d);
  if (name == "min")
    return decodeExtreme<false>(d);
  if (name == "max")
    return decodeExtreme<true>(d);
  if (name == "abs")
    return decodePlain<[](auto x) { return std::fabs(x); }, 1>(d);
  decodePlain<[](auto x) { return -x; }, 1>(d);
}
} // namespace gdn::emu
