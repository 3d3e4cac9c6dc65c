// 2^x with the bits of an H200. All of this was measured there, by gdn-calibrate and over every fraction.
#include "Ops.h"

namespace gdn::emu {
namespace {

// The mantissa of 2^f in one 64th of [0, 1): constant / 4 + 4 linear x + square x^2 in units of 2^-23, where x goes
// from 0 to 1.
struct Parabola {
  int32_t constant;
  uint16_t linear, square;
};
constexpr Parabola parabolas[64] = {
    {33554435, 22713, 494}, {33919818, 22960, 501}, {34289182, 23210, 506}, {34662565, 23463, 511},
    {35040018, 23718, 518}, {35421577, 23977, 521}, {35807292, 24238, 527}, {36197209, 24502, 532},
    {36591372, 24768, 541}, {36989825, 25038, 546}, {37392616, 25311, 551}, {37799797, 25586, 559},
    {38211409, 25865, 564}, {38627504, 26147, 568}, {39048131, 26431, 577}, {39473337, 26719, 583},
    {39903173, 27010, 589}, {40337690, 27304, 596}, {40776937, 27602, 600}, {41220970, 27902, 609},
    {41669836, 28206, 615}, {42123592, 28513, 622}, {42582286, 28824, 627}, {43045977, 29138, 633},
    {43514717, 29455, 641}, {43988561, 29776, 647}, {44467565, 30100, 655}, {44951786, 30428, 661},
    {45441278, 30759, 670}, {45936101, 31094, 677}, {46436314, 31432, 686}, {46941971, 31775, 691},
    {47453135, 32121, 699}, {47969867, 32471, 705}, {48492225, 32824, 715}, {49020269, 33182, 721},
    {49554065, 33543, 730}, {50093674, 33908, 739}, {50639159, 34277, 748}, {51190582, 34651, 753},
    {51748011, 35028, 763}, {52311510, 35409, 773}, {52881146, 35795, 779}, {53456983, 36185, 787},
    {54039091, 36579, 796}, {54627538, 36977, 806}, {55222393, 37380, 813}, {55823725, 37787, 822},
    {56431607, 38198, 833}, {57046106, 38614, 842}, {57667297, 39035, 849}, {58295254, 39460, 858},
    {58930048, 39889, 870}, {59571754, 40324, 877}, {60220447, 40763, 887}, {60876205, 41207, 896},
    {61539104, 41655, 909}, {62209220, 42109, 917}, {62886634, 42568, 925}, {63571424, 43031, 938},
    {64263672, 43500, 946}, {64963458, 43973, 959}, {65670863, 44452, 969}, {66385972, 44936, 980}};

// x^2 / 2^19 of 17 bits: partial products below 2^19 are left out one by one.
uint32_t squareOf(uint32_t x) {
  uint32_t sum = 0;
  for (unsigned i = 0; i < 17; i++) { // bit i with itself and, twice, with those above
    uint64_t row = uint64_t(x >> (i + 1)) << (2 * i + 2) | uint64_t(1) << 2 * i;
    sum += x >> i & 1 ? uint32_t(row >> 19) : 0;
  }
  return sum;
}

// Of 2^(fraction / 2^23), 24 bits.
uint32_t mantissaOf(uint32_t fraction) {
  const Parabola &p = parabolas[fraction >> 17];
  uint32_t x = fraction & 0x1ffff;
  constexpr int64_t rounding = 6114; // of 2^15
  return uint32_t((int64_t(p.constant) * 8192 + int64_t(p.linear) * x + int64_t(p.square) * squareOf(x) + rounding) >>
                  15);
}

// Results below the normal numbers are zero.
float exp2Normal(float x) {
  if (x >= 128)
    return INFINITY;
  int64_t fixed = int64_t(std::fabs(std::max(x, -200.0f)) * 0x1p23f), fraction = fixed & 0x7fffff, whole = fixed >> 23;
  if (x < 0) { // the fraction's complement, not its negative
    whole = fraction ? ~whole : -whole;
    fraction = fraction ? ~fraction & 0x7fffff : 0;
  }
  return whole < -126 ? 0
                      : std::bit_cast<float>(uint32_t(whole + 127) << 23 | (mantissaOf(uint32_t(fraction)) & 0x7fffff));
}

} // namespace

float exp2Approx(float x) {
  if (x != x)
    return std::bit_cast<float>(canonicalNan);
  float half = x < -126 ? exp2Normal(x / 2) : 0;
  return x < -126 ? half * half : exp2Normal(x);
}

} // namespace gdn::emu
