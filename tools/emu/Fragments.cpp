// Products of matrix fragments.
#include "Ops.h"

namespace gdn::emu {

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

#if defined(__AVX2__) && defined(__FMA__)
void multiplyFragments(float *const *d, const float *a, const float *b, unsigned groups, unsigned k) {
  for (unsigned g = 0; g < groups; g++)
    for (unsigned half = 0; half < 2; half++) {
      float *even = d[4 * g + 2 * half], *odd = d[4 * g + 2 * half + 1];
      __m256 x[4], y[4];
      for (unsigned c = 0; c < 4; c++)
        x[c] = _mm256_loadu_ps(even + 8 * c), y[c] = _mm256_loadu_ps(odd + 8 * c);
      for (unsigned n = 0; n < k; n++) {
        const float *bn = b + (n * groups + g) * 8, *an = a + n * 64 + half * 32;
        __m256 be = _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(bn));
        __m256 bo = _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(bn + 4));
        for (unsigned c = 0; c < 4; c++) {
          __m256 av = _mm256_loadu_ps(an + 8 * c);
          x[c] = _mm256_fmadd_ps(av, be, x[c]);
          y[c] = _mm256_fmadd_ps(av, bo, y[c]);
        }
      }
      for (unsigned c = 0; c < 4; c++)
        _mm256_storeu_ps(even + 8 * c, x[c]), _mm256_storeu_ps(odd + 8 * c, y[c]);
    }
}
#else
void multiplyFragments(float *const *d, const float *a, const float *b, unsigned groups, unsigned k) {
  for (unsigned g = 0; g < groups; g++)
    for (unsigned r = 0; r < 4; r++)
      for (unsigned l = 0; l < lanes; l++) {
        float x = d[4 * g + r][l];
        for (unsigned n = 0; n < k; n++)
          x = std::fma(a[n * 64 + (r / 2) * 32 + l], b[(n * groups + g) * 8 + (r & 1) * 4 + l % 4], x);
        d[4 * g + r][l] = x;
      }
}
#endif

} // namespace gdn::emu
