// What handlers of instructions are written with.
#pragma once
#include "Decoder.h"
#include "Machine.h"
#include <bit>
#include <cmath>
#include <cstring>
#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace gdn::emu {

constexpr unsigned lanes = 32;
constexpr uint32_t all = ~0u;

// A bit for each lane whose word is negative.
inline uint32_t signBits(const int32_t *t) {
#ifdef __AVX2__
  uint32_t m = 0;
  for (int c = 0; c < 4; c++)
    m |= uint32_t(_mm256_movemask_ps(_mm256_loadu_ps(reinterpret_cast<const float *>(t + 8 * c)))) << 8 * c;
  return m;
#else
  uint32_t m = 0;
  for (unsigned l = 0; l < lanes; l++)
    m |= uint32_t(t[l] < 0) << l;
  return m;
#endif
}

// Lanes of `f` into the slot, where the instruction executes. The result is whole before any of it is written, so that
// a destination may be a source.
template <class D, class F> inline void write(Warp &w, Slot s, F f) {
  if (s == noSlot)
    return;
  alignas(32) D t[lanes];
  for (unsigned l = 0; l < lanes; l++)
    t[l] = f(l);
  D *p = w.at<D>(s);
  if (w.exec == all) {
    std::memcpy(p, t, sizeof t);
    return;
  }
  for (unsigned l = 0; l < lanes; l++)
    p[l] = w.exec >> l & 1 ? t[l] : p[l];
}

// The same for what costs a lot or may not be evaluated for other lanes.
template <class D, class F> inline void writeEach(Warp &w, Slot s, F f) {
  if (s == noSlot)
    return;
  D t[lanes];
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    t[l] = f(l);
  }
  D *p = w.at<D>(s);
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    p[l] = t[l];
  }
}

inline void writePredicate(Warp &w, Slot s, uint32_t bits) {
  if (s == noSlot)
    return;
  uint32_t *p = w.at<uint32_t>(s);
  *p = (*p & ~w.exec) | (bits & w.exec);
}

template <class F> inline uint32_t predicate(F f) {
  alignas(32) int32_t t[lanes];
  for (unsigned l = 0; l < lanes; l++)
    t[l] = -int32_t(f(l));
  return signBits(t);
}

// f over values of one, two or three sources.
template <class T, auto F> void unary(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  write<T>(w, i.a[0], [&](unsigned l) { return T(F(x[l])); });
}
template <class T, auto F> void binary(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]);
  write<T>(w, i.a[0], [&](unsigned l) { return T(F(x[l], y[l])); });
}
template <class T, auto F> void ternary(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]), *y = w.at<T>(i.a[2]), *z = w.at<T>(i.a[3]);
  write<T>(w, i.a[0], [&](unsigned l) { return T(F(x[l], y[l], z[l])); });
}

// Calls f with a value of the C++ type of an integer type.
template <class F> auto withInteger(Type t, F f) {
  if (isSigned(t))
    switch (sizeOf(t)) {
    case 1:
      return f(int8_t());
    case 2:
      return f(int16_t());
    case 8:
      return f(int64_t());
    default:
      return f(int32_t());
    }
  switch (sizeOf(t)) {
  case 1:
    return f(uint8_t());
  case 2:
    return f(uint16_t());
  case 8:
    return f(uint64_t());
  default:
    return f(uint32_t());
  }
}

// What arithmetic in fp32 returns for every NaN.
constexpr uint32_t canonicalNan = 0x7fffffff;
inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(canonicalNan); }
inline double canonical(double x) { return x; }

// Subnormals to zero of the same sign: what .ftz does to operands and results.
inline float flush(float x) {
  uint32_t b = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>(b & 0x7f800000u ? b : b & 0x80000000u);
}
inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

inline float bf16ToFloat(uint16_t x) { return std::bit_cast<float>(uint32_t(x) << 16); }
inline uint16_t floatToBf16(float x) {
  uint32_t b = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;
  return uint16_t((b & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}
inline float halfToFloat(uint16_t x) { return float(std::bit_cast<_Float16>(x)); }
inline uint16_t floatToHalf(float x) { return x == x ? std::bit_cast<uint16_t>(_Float16(x)) : 0x7fff; }

} // namespace gdn::emu
