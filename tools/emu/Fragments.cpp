// Products of matrix fragments as the tensor cores of sm_90 form them: see multiplyFragments in Ops.h.
#include "Ops.h"

namespace gdn::emu {
namespace {

using Floats [[gnu::vector_size(32)]] = float;
using Ints [[gnu::vector_size(32)]] = int32_t;
using Longs [[gnu::vector_size(32)]] = int64_t;

template <class To, class From> To bitsOf(From x) { return std::bit_cast<To>(x); }
Ints larger(Ints x, int y) { return x > y ? x : Ints{} + y; }
Floats powerOfTwo(Ints exponent) { return bitsOf<Floats>((exponent + 127) << 23); }
bool any(Ints x) {
  Longs bits = bitsOf<Longs>(x);
  return bits[0] | bits[1] | bits[2] | bits[3];
}
Floats load(const float *p) {
  Floats v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

constexpr int fraction = 25; // bits that a term keeps below the largest exponent
// Exponents that tell: of zeros, below all others, and of infinities and NaNs, which also stand out of a sum with
// zero's.
constexpr int ofZero = -1 << 12, ofSpecial = 1 << 14, leastSpecial = ofSpecial + ofZero;

// A value as significand * 2^exponent, the significand in [1, 2), or below 1 at the least exponent of the type.
struct Parts {
  Floats significand;
  Ints exponent;
};
Parts split(Floats x, int leastExponent) {
  Ints bits = bitsOf<Ints>(x), field = bits >> 23 & 255, exponent = field - 127;
  Floats normal = bitsOf<Floats>((bits & 0x807fffff) | 0x3f800000), small = x * powerOfTwo(Ints{} - leastExponent);
  Parts parts = {exponent <= leastExponent ? small : normal, larger(exponent, leastExponent)};
  parts.exponent = x == 0 ? Ints{} + ofZero : field == 255 ? Ints{} + ofSpecial : parts.exponent;
  return parts;
}

// The integer part of value * 2^by, for a product of significands and `by` up to 25.
Ints shifted(Floats value, Ints by) {
  return __builtin_convertvector(value * bitsOf<Floats>(larger(by + 127, 0) << 23), Ints);
}

// (x + y) * 2^exponent, of its magnitude what fp32 holds.
Floats narrowed(Ints x, Ints y, Ints exponent) {
  // The sum as high * 256 + low: it may take 33 bits.
  Ints low = (x & 255) + (y & 255), high = (x >> 8) + (y >> 8) + (low >> 8), negative = high < 0;
  low = ((low ^ negative) - negative) & 255;
  high = negative ? ~high + (low == 0 ? Ints{} + 1 : Ints{}) : high;
  // What rounding took past the exact value is the next float towards zero. `past` is -1 there.
  auto cut = [](Floats rounded, Ints past) { return bitsOf<Floats>(bitsOf<Ints>(rounded) + past); };
  Floats h = __builtin_convertvector(high, Floats) * 256, l = __builtin_convertvector(low, Floats), sum = h + l;
  sum = cut(sum, sum - h > l);
  // In two steps, since the power may not be a float. Below -200 nothing is left.
  Ints first = larger(exponent, -200) >> 1, second = larger(exponent, -200) - first;
  Floats scaled = sum * powerOfTwo(first) * powerOfTwo(second);
  Ints past = scaled * powerOfTwo(-second) * powerOfTwo(-first) > sum;
  scaled = cut(scaled, past & (scaled < INFINITY));
  return bitsOf<Floats>(bitsOf<Ints>(scaled) | (negative & INT32_MIN));
}

// The operands of eight sums: rows of A, and columns of B that repeat after four lanes.
struct Operands {
  const Parts *a, *b;
  const float *rows, *columns; // what they were split from
  unsigned k, aStep, bStep, columnStep;
};

// Infinities and NaNs are added as fp32 does.
Floats withSpecials(Floats sums, Floats old, Ints special, const Operands &o) {
  for (unsigned l = 0; l < 8; l++) {
    float s = std::isfinite(old[l]) ? 0 : old[l];
    for (unsigned n = 0; n < o.k; n++)
      if (float x = o.rows[n * 64 + l], y = o.columns[n * o.columnStep + l % 4]; !std::isfinite(x) || !std::isfinite(y))
        s += x * y;
    if (special[l])
      sums[l] = s == s ? s : std::bit_cast<float>(canonicalNan);
  }
  return sums;
}

Floats accumulate(Floats old, const Operands &o) {
  Parts sum = split(old, -126);
  Ints largest = sum.exponent;
  for (unsigned n = 0; n < o.k; n++) {
    Ints exponent = o.a[n * o.aStep].exponent + o.b[n * o.bStep].exponent;
    largest = exponent > largest ? exponent : largest;
  }
  Ints align = fraction - largest;
  // Two sums, each of up to eight terms below 2^27 and one of them with the old sum.
  Ints parts[2] = {shifted(sum.significand, sum.exponent + align), {}};
  for (unsigned n = 0; n < o.k; n++) {
    const Parts &x = o.a[n * o.aStep], &y = o.b[n * o.bStep];
    parts[n & 1] += shifted(x.significand * y.significand, x.exponent + y.exponent + align);
  }
  Floats sums = narrowed(parts[0], parts[1], -align);
  Ints special = largest >= leastSpecial;
  return any(special) ? withSpecials(sums, old, special, o) : sums;
}

} // namespace

void expandA(const uint32_t *const *registers, unsigned k, bool bf16, float *a) {
  for (unsigned r = 0; r < k / 4; r++)
    for (unsigned l = 0; l < lanes; l++)
      for (unsigned e = 0; e < 2; e++) {
        uint16_t bits = uint16_t(registers[r][l] >> 16 * e);
        float value = bf16 ? bf16ToFloat(bits) : halfToFloat(bits);
        unsigned row = l / 4 + 8 * (r & 1), column = 2 * (l % 4) + e + 8 * (r >> 1);
        for (unsigned c = 0; c < 4; c++)
          a[column * 64 + row * 4 + c] = value;
      }
}

void multiplyFragments(float *const *d, const float *a, const float *b, unsigned groups, unsigned k, bool bf16) {
  int leastExponent = bf16 ? -126 : -14;
  Parts as[16][8], bs[16][2];
  for (unsigned n = 0; n < k; n++)
    for (unsigned c = 0; c < 8; c++)
      as[n][c] = split(load(a + n * 64 + 8 * c), leastExponent);
  for (unsigned g = 0; g < groups; g++) {
    for (unsigned n = 0; n < k; n++)
      for (unsigned odd = 0; odd < 2; odd++) {
        const float *p = b + (n * groups + g) * 8 + 4 * odd;
        bs[n][odd] = split(Floats{p[0], p[1], p[2], p[3], p[0], p[1], p[2], p[3]}, leastExponent);
      }
    for (unsigned r = 0; r < 4; r++)
      for (unsigned c = 0; c < 4; c++) {
        float *to = d[4 * g + r] + 8 * c;
        unsigned rows = r / 2 * 4 + c, odd = r & 1;
        Operands o = {&as[0][rows], &bs[0][odd], a + 8 * rows, b + 8 * g + 4 * odd, k, 8, 2, 8 * groups};
        Floats sums = accumulate(load(to), o);
        std::memcpy(to, &sums, sizeof sums);
      }
  }
}

} // namespace gdn::emu
