// Integer, logic, shift and bit-field instructions.
#include "Ops.h"
#include <algorithm>

namespace gdn::emu {
namespace {

template <class T> using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
template <class T> using Unsigned = std::make_unsigned_t<T>;

template <class T> T mulLo(T x, T y) { return T(uint64_t(x) * uint64_t(y)); }
template <class T> T mulHi(T x, T y) {
  if constexpr (sizeof(T) == 8)
    return T(Wide<T>(x) * Wide<T>(y) >> 64);
  else
    return T((std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>(x) * y) >> 8 * sizeof(T));
}
template <class T> T divide(T x, T y) {
  if (y == 0)
    return T(-1);
  if (std::is_signed_v<T> && y == T(-1))
    return T(-uint64_t(x));
  return x / y;
}
template <class T> T remainder(T x, T y) {
  if (y == 0)
    return x;
  return std::is_signed_v<T> && y == T(-1) ? T(0) : T(x % y);
}

void decodeAddSub(Decoder &d, Type t, bool subtract) {
  bool carryOut = d.take("cc");
  bool sat = d.take("sat");
  d.expectOperands(3, 3);
  d.out(t, 0);
  d.uses(t, {1, 2});
  Run run = withInteger(t, [&](auto z) -> Run {
    using T = decltype(z);
    if (carryOut)
      return subtract ? Run([](Warp &w, const Inst &i) {
        const auto *x = w.at<Unsigned<T>>(i.a[1]), *y = w.at<Unsigned<T>>(i.a[2]);
        uint32_t c = predicate([&](unsigned l) { return x[l] < y[l]; });
        w.carry = (w.carry & ~w.exec) | (c & w.exec);
        binary<T, [](T p, T q) { return T(uint64_t(p) - uint64_t(q)); }>(w, i);
      })
                      : Run([](Warp &w, const Inst &i) {
                          const auto *x = w.at<Unsigned<T>>(i.a[1]), *y = w.at<Unsigned<T>>(i.a[2]);
                          uint32_t c = predicate([&](unsigned l) { return Unsigned<T>(x[l] + y[l]) < x[l]; });
                          w.carry = (w.carry & ~w.exec) | (c & w.exec);
                          binary<T, [](T p, T q) { return T(uint64_t(p) + uint64_t(q)); }>(w, i);
                        });
    if (sat && sizeof(T) == 4)
      return subtract ? binary<int32_t,
                               [](int32_t x, int32_t y) {
                                 return int32_t(std::clamp<int64_t>(int64_t(x) - y, INT32_MIN, INT32_MAX));
                               }>
                      : binary<int32_t, [](int32_t x, int32_t y) {
                          return int32_t(std::clamp<int64_t>(int64_t(x) + y, INT32_MIN, INT32_MAX));
                        }>;
    using U = Unsigned<T>;
    return subtract ? binary<U, [](U x, U y) { return U(x - y); }> : binary<U, [](U x, U y) { return U(x + y); }>;
  });
  d.finish(run, Unit::Alu);
}

// addc and subc: with the carry of the instruction before, which they renew under .cc.
template <class T, bool Subtract> void withCarry(Warp &w, const Inst &i) {
  using U = Unsigned<T>;
  const U *x = w.at<U>(i.a[1]), *y = w.at<U>(i.a[2]);
  uint32_t in = w.carry, outBits = 0;
  for (unsigned l = 0; l < lanes; l++) {
    unsigned __int128 c = in >> l & 1;
    unsigned __int128 sum = Subtract ? (unsigned __int128)x[l] - y[l] - c : (unsigned __int128)x[l] + y[l] + c;
    outBits |= uint32_t((sum >> 8 * sizeof(T)) & 1) << l;
  }
  write<U>(w, i.a[0], [&](unsigned l) {
    U c = in >> l & 1;
    return U(Subtract ? x[l] - y[l] - c : x[l] + y[l] + c);
  });
  if (i.flags)
    w.carry = (in & ~w.exec) | (outBits & w.exec);
}
template <bool Subtract> void decodeCarry(Decoder &d) {
  d.inst().flags = d.take("cc");
  Type t = d.type();
  d.out(t, 0);
  d.uses(t, {1, 2});
  d.finish(sizeOf(t) == 8 ? withCarry<uint64_t, Subtract> : withCarry<uint32_t, Subtract>, Unit::Alu);
}

template <class T> Run multiplier(int part) {
  if (part == 1)
    return binary<T, [](T x, T y) { return mulHi(x, y); }>;
  return binary<T, [](T x, T y) { return mulLo(x, y); }>;
}
template <class T, class D> void mulWide(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  write<D>(w, i.a[0], [&](unsigned l) { return D(D(x[l]) * D(y[l])); });
}
template <class T, class D> void madWide(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  const D *z = w.at<D>(i.a[3]);
  write<D>(w, i.a[0], [&](unsigned l) { return D(uint64_t(D(x[l]) * D(y[l])) + uint64_t(z[l])); });
}

Type doubled(Decoder &d, Type t) {
  switch (t) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  case Type::S32:
    return Type::S64;
  default:
    d.fail("expected a type of 16 or 32 bits for '.wide'");
  }
}

Run wideRun(Type t, bool add) {
  switch (t) {
  case Type::U16:
    return add ? madWide<uint16_t, uint32_t> : mulWide<uint16_t, uint32_t>;
  case Type::S16:
    return add ? madWide<int16_t, int32_t> : mulWide<int16_t, int32_t>;
  case Type::S32:
    return add ? madWide<int32_t, int64_t> : mulWide<int32_t, int64_t>;
  default:
    return add ? madWide<uint32_t, uint64_t> : mulWide<uint32_t, uint64_t>;
  }
}

void decodeMul(Decoder &d, Type t) {
  int part = d.choose({"lo", "hi", "wide"});
  if (part < 0)
    d.fail("expected '.lo', '.hi' or '.wide'");
  d.expectOperands(3, 3);
  d.out(part == 2 ? doubled(d, t) : t, 0);
  d.uses(t, {1, 2});
  d.finish(part == 2 ? wideRun(t, false) : withInteger(t, [&](auto z) -> Run { return multiplier<decltype(z)>(part); }),
           Unit::Alu);
}

void decodeMad(Decoder &d, Type t) {
  int part = d.choose({"lo", "hi", "wide"});
  if (part < 0)
    d.fail("expected '.lo', '.hi' or '.wide'");
  d.expectOperands(4, 4);
  d.out(part == 2 ? doubled(d, t) : t, 0);
  d.uses(t, {1, 2});
  d.use(part == 2 ? doubled(d, t) : t, 3);
  Run run = part == 2 ? wideRun(t, true) : withInteger(t, [&](auto z) -> Run {
    using T = decltype(z);
    if (part == 1)
      return ternary<T, [](T x, T y, T a) { return T(uint64_t(mulHi(x, y)) + uint64_t(a)); }>;
    return ternary<T, [](T x, T y, T a) { return T(uint64_t(mulLo(x, y)) + uint64_t(a)); }>;
  });
  d.finish(run, Unit::Alu);
}

#define INTEGER_BINARY(NAME, EXPRESSION, COST)                                                                         \
  void NAME(Decoder &d) {                                                                                              \
    Type t = d.type();                                                                                                 \
    d.expectOperands(3, 3);                                                                                            \
    d.out(t, 0);                                                                                                       \
    d.uses(t, {1, 2});                                                                                                 \
    d.finish(withInteger(t,                                                                                            \
                         [](auto z) -> Run {                                                                           \
                           using T = decltype(z);                                                                      \
                           return binary<T, [](T x, T y) { return EXPRESSION; }>;                                      \
                         }),                                                                                           \
             COST);                                                                                                    \
  }
INTEGER_BINARY(decodeDiv, divide(x, y), Unit::Alu)
INTEGER_BINARY(decodeRem, remainder(x, y), Unit::Alu)
INTEGER_BINARY(decodeMinInteger, x < y ? x : y, Unit::Alu)
INTEGER_BINARY(decodeMaxInteger, y < x ? x : y, Unit::Alu)
#undef INTEGER_BINARY

template <class T> T absolute(T x) { return x < T(0) ? T(-uint64_t(x)) : x; }

// Predicates are words with a bit a lane: logic on them is logic on the words.
template <auto F> void predicateLogic(Warp &w, const Inst &i) {
  writePredicate(w, i.a[0], F(*w.at<uint32_t>(i.a[1]), *w.at<uint32_t>(i.a[2])));
}
void predicateNot(Warp &w, const Inst &i) { writePredicate(w, i.a[0], ~*w.at<uint32_t>(i.a[1])); }

template <auto F> void decodeLogic(Decoder &d) {
  Type t = d.type();
  d.expectOperands(3, 3);
  d.out(t, 0);
  d.uses(t, {1, 2});
  Run run = sizeOf(t) == 8   ? Run(binary<uint64_t, F>)
            : sizeOf(t) == 2 ? Run(binary<uint16_t, F>)
                             : Run(binary<uint32_t, F>);
  d.finish(t == Type::Pred ? predicateLogic<F> : run, Unit::Alu);
}
void decodeNot(Decoder &d) {
  Type t = d.type();
  d.expectOperands(2, 2);
  d.out(t, 0);
  d.use(t, 1);
  d.finish(t == Type::Pred
               ? predicateNot
               : withInteger(t, [](auto z) -> Run { return unary<decltype(z), [](decltype(z) x) { return ~x; }>; }),
           Unit::Alu);
}
void decodeCnot(Decoder &d) {
  Type t = d.type();
  d.out(t, 0);
  d.use(t, 1);
  d.finish(withInteger(t, [](auto z) -> Run { return unary<decltype(z), [](decltype(z) x) { return x == 0; }>; }),
           Unit::Alu);
}

template <class T, bool Left> void shift(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  const uint32_t *n = w.at<uint32_t>(i.a[2]);
  constexpr uint32_t bits = 8 * sizeof(T);
  write<T>(w, i.a[0], [&](unsigned l) {
    uint32_t s = n[l] < bits ? n[l] : bits - 1;
    T beyond = std::is_signed_v<T> && !Left ? T(x[l] >> (bits - 1)) : T(0);
    T shifted = Left ? T(Unsigned<T>(x[l]) << s) : T(x[l] >> s);
    return n[l] < bits ? shifted : beyond;
  });
}
template <bool Left> void decodeShift(Decoder &d) {
  Type t = d.type();
  d.expectOperands(3, 3);
  d.out(t, 0);
  d.use(t, 1);
  d.use(Type::U32, 2);
  d.finish(withInteger(t, [](auto z) -> Run { return shift<decltype(z), Left>; }), Unit::Alu);
}

// Funnel shift of {high, low}; .wrap counts modulo 32, .clamp stops at 32.
template <bool Left, bool Clamp> void funnel(Warp &w, const Inst &i) {
  const uint32_t *lo = w.at<uint32_t>(i.a[1]), *hi = w.at<uint32_t>(i.a[2]), *n = w.at<uint32_t>(i.a[3]);
  write<uint32_t>(w, i.a[0], [&](unsigned l) {
    uint64_t x = uint64_t(hi[l]) << 32 | lo[l];
    uint32_t s = Clamp ? std::min(n[l], 32u) : n[l] & 31;
    return Left ? uint32_t((x << s) >> 32) : uint32_t(x >> s);
  });
}
void decodeShf(Decoder &d) {
  bool left = d.choose({"r", "l"}) == 1, clamp = d.choose({"wrap", "clamp"}) == 1;
  d.type();
  d.expectOperands(4, 4);
  d.out(Type::B32, 0);
  d.uses(Type::B32, {1, 2, 3});
  d.finish(
      left ? (clamp ? funnel<true, true> : funnel<true, false>) : (clamp ? funnel<false, true> : funnel<false, false>),
      Unit::Alu);
}

template <class T> void bfe(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  const uint32_t *pos = w.at<uint32_t>(i.a[2]), *len = w.at<uint32_t>(i.a[3]);
  constexpr unsigned bits = 8 * sizeof(T);
  write<T>(w, i.a[0], [&](unsigned l) {
    unsigned p = pos[l] & 255, n = len[l] & 255;
    Unsigned<T> v = 0, sign = 0;
    if (std::is_signed_v<T> && n)
      sign = Unsigned<T>(x[l]) >> std::min(p + n - 1, bits - 1) & 1;
    v = p < bits ? Unsigned<T>(x[l]) >> p : 0;
    Unsigned<T> mask = n < bits ? (Unsigned<T>(1) << n) - 1 : Unsigned<T>(-1);
    if (n == 0)
      return T(0);
    // Bits past the register are copies of the sign too.
    Unsigned<T> known = p < bits ? Unsigned<T>(-1) >> p : 0;
    return T((v & mask) | (sign ? ~(mask & known) : 0));
  });
}
void decodeBfe(Decoder &d) {
  Type t = d.type();
  d.expectOperands(4, 4);
  d.out(t, 0);
  d.use(t, 1);
  d.uses(Type::U32, {2, 3});
  d.finish(withInteger(t, [](auto z) -> Run { return bfe<decltype(z)>; }), Unit::Alu);
}
template <class T> void bfi(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  const uint32_t *pos = w.at<uint32_t>(i.a[3]), *len = w.at<uint32_t>(i.a[4]);
  constexpr unsigned bits = 8 * sizeof(T);
  write<T>(w, i.a[0], [&](unsigned l) {
    unsigned p = pos[l] & 255, n = len[l] & 255;
    T mask = n < bits ? (T(1) << n) - 1 : T(-1);
    return p < bits ? T((y[l] & ~(mask << p)) | (x[l] & mask) << p) : y[l];
  });
}
void decodeBfi(Decoder &d) {
  Type t = d.type();
  d.expectOperands(5, 5);
  d.out(t, 0);
  d.uses(t, {1, 2});
  d.uses(Type::U32, {3, 4});
  d.finish(sizeOf(t) == 8 ? bfi<uint64_t> : bfi<uint32_t>, Unit::Alu);
}

template <class T, auto F> void countBits(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  write<uint32_t>(w, i.a[0], [&](unsigned l) { return uint32_t(F(x[l])); });
}
template <auto F> void decodeCount(Decoder &d) {
  Type t = d.type();
  d.expectOperands(2, 2);
  d.out(Type::U32, 0);
  d.use(t, 1);
  d.finish(sizeOf(t) == 8 ? Run(countBits<uint64_t, F>) : Run(countBits<uint32_t, F>), Unit::Alu);
}
template <class T, bool Shift> void bfind(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  write<uint32_t>(w, i.a[0], [&](unsigned l) {
    Unsigned<T> v = std::is_signed_v<T> && x[l] < 0 ? ~Unsigned<T>(x[l]) : Unsigned<T>(x[l]);
    uint32_t top = 8 * sizeof(T) - 1;
    return v == 0 ? ~0u : Shift ? uint32_t(std::countl_zero(v)) : top - uint32_t(std::countl_zero(v));
  });
}
void decodeBfind(Decoder &d) {
  bool shift = d.take("shiftamt");
  Type t = d.type();
  d.out(Type::U32, 0);
  d.use(t, 1);
  d.finish(withInteger(t, [&](auto z) -> Run { return shift ? bfind<decltype(z), true> : bfind<decltype(z), false>; }),
           Unit::Alu);
}
template <class T> T reverse(T x) {
  T r = 0;
  for (unsigned b = 0; b < 8 * sizeof(T); b++)
    r |= (x >> b & 1) << (8 * sizeof(T) - 1 - b);
  return r;
}
void decodeBrev(Decoder &d) {
  Type t = d.type();
  d.out(t, 0);
  d.use(t, 1);
  d.finish(sizeOf(t) == 8 ? unary<uint64_t, [](uint64_t x) { return reverse(x); }>
                          : unary<uint32_t, [](uint32_t x) { return reverse(x); }>,
           Unit::Alu);
}

uint32_t permute(uint32_t x, uint32_t y, uint32_t selector) {
  uint64_t bytes = uint64_t(y) << 32 | x;
  uint32_t r = 0;
  for (unsigned b = 0; b < 4; b++) {
    uint32_t s = selector >> 4 * b & 15;
    uint8_t v = uint8_t(bytes >> 8 * (s & 7));
    if (s & 8)
      v = v & 0x80 ? 0xff : 0;
    r |= uint32_t(v) << 8 * b;
  }
  return r;
}
// Modes other than the default are selectors that depend on two bits.
uint32_t permuteSelector(unsigned mode, uint32_t c) {
  static const uint32_t table[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                       {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                       {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return table[mode][c & 3];
}
void prmt(Warp &w, const Inst &i) {
  const uint32_t *x = w.at<uint32_t>(i.a[1]), *y = w.at<uint32_t>(i.a[2]), *c = w.at<uint32_t>(i.a[3]);
  write<uint32_t>(w, i.a[0],
                  [&](unsigned l) { return permute(x[l], y[l], i.aux ? permuteSelector(i.aux - 1, c[l]) : c[l]); });
}
void decodePrmt(Decoder &d) {
  d.type();
  d.inst().aux = 1 + d.choose({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  d.expectOperands(4, 4);
  d.out(Type::B32, 0);
  d.uses(Type::B32, {1, 2, 3});
  d.finish(prmt, Unit::Alu);
}

void lop3(Warp &w, const Inst &i) {
  const uint32_t *x = w.at<uint32_t>(i.a[1]), *y = w.at<uint32_t>(i.a[2]), *z = w.at<uint32_t>(i.a[3]);
  uint32_t term[8];
  for (unsigned k = 0; k < 8; k++)
    term[k] = i.aux >> k & 1 ? ~0u : 0;
  write<uint32_t>(w, i.a[0], [&](unsigned l) {
    uint32_t r = 0;
    for (unsigned k = 0; k < 8; k++)
      r |= (k & 4 ? x[l] : ~x[l]) & (k & 2 ? y[l] : ~y[l]) & (k & 1 ? z[l] : ~z[l]) & term[k];
    return r;
  });
}
void decodeLop3(Decoder &d) {
  d.type();
  d.expectOperands(5, 5);
  d.inst().aux = d.integer(d.operand(4));
  d.out(Type::B32, 0);
  d.uses(Type::B32, {1, 2, 3});
  d.finish(lop3, Unit::Alu);
}

template <class T> T sad(T x, T y, T z) { return T(uint64_t(z) + uint64_t(x > y ? x - y : y - x)); }
void decodeSad(Decoder &d) {
  Type t = d.type();
  d.out(t, 0);
  d.uses(t, {1, 2, 3});
  d.finish(withInteger(t,
                       [](auto z) -> Run {
                         using T = decltype(z);
                         return ternary<T, [](T x, T y, T a) { return sad(x, y, a); }>;
                       }),
           Unit::Alu);
}

// Four products of bytes, added.
template <bool A, bool B> uint32_t dot4(uint32_t x, uint32_t y, uint32_t z) {
  for (unsigned b = 0; b < 32; b += 8) {
    int32_t p = A ? int32_t(int8_t(x >> b)) : int32_t(uint8_t(x >> b));
    int32_t q = B ? int32_t(int8_t(y >> b)) : int32_t(uint8_t(y >> b));
    z += uint32_t(p * q);
  }
  return z;
}
void decodeDp4a(Decoder &d) {
  bool a = isSigned(d.type()), b = isSigned(d.type());
  d.out(Type::B32, 0);
  d.uses(Type::B32, {1, 2, 3});
  d.finish(a ? (b ? ternary<uint32_t, dot4<true, true>> : ternary<uint32_t, dot4<true, false>>)
             : (b ? ternary<uint32_t, dot4<false, true>> : ternary<uint32_t, dot4<false, false>>),
           Unit::Alu);
}

const Row rows[] = {
    {"addc", decodeCarry<false>},
    {"subc", decodeCarry<true>},
    {"rem", decodeRem},
    {"and", decodeLogic<[](auto x, auto y) { return decltype(x)(x & y); }>},
    {"or", decodeLogic<[](auto x, auto y) { return decltype(x)(x | y); }>},
    {"xor", decodeLogic<[](auto x, auto y) { return decltype(x)(x ^ y); }>},
    {"not", decodeNot},
    {"cnot", decodeCnot},
    {"shl", decodeShift<true>},
    {"shr", decodeShift<false>},
    {"shf", decodeShf},
    {"bfe", decodeBfe},
    {"bfi", decodeBfi},
    {"bfind", decodeBfind},
    {"brev", decodeBrev},
    {"clz", decodeCount<[](auto x) { return std::countl_zero(x); }>},
    {"popc", decodeCount<[](auto x) { return std::popcount(x); }>},
    {"prmt", decodePrmt},
    {"lop3", decodeLop3},
    {"sad", decodeSad},
    {"dp4a", decodeDp4a},
};

} // namespace
const Family integerFamily{rows, std::size(rows)};

void decodeInteger(Decoder &d, const std::string &name) {
  if (name == "div")
    return decodeDiv(d);
  if (name == "min")
    return decodeMinInteger(d);
  if (name == "max")
    return decodeMaxInteger(d);
  Type t = d.type();
  if (name == "add" || name == "sub")
    return decodeAddSub(d, t, name == "sub");
  if (name == "mul")
    return decodeMul(d, t);
  if (name == "mad")
    return decodeMad(d, t);
  d.expectOperands(2, 2);
  d.out(t, 0);
  d.use(t, 1);
  bool abs = name == "abs";
  d.finish(withInteger(t,
                       [&](auto z) -> Run {
                         using T = decltype(z);
                         return abs ? Run(unary<T, [](T x) { return absolute(x); }>)
                                    : Run(unary<T, [](T x) { return T(-uint64_t(x)); }>);
                       }),
           Unit::Alu);
}
} // namespace gdn::emu
