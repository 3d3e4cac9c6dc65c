#include "tests/reference/numbers.h"
#include <gtest/gtest.h>

namespace gdn::reference {
namespace {

// The nearest representable value, ties to an even pattern, by looking at both neighbours.
template <typename Decode> uint16_t nearest(float value, uint16_t guess, Decode decode) {
  uint16_t best = guess;
  for (int candidate = std::max(0, guess - 1); candidate <= guess + 1; ++candidate) {
    double now = std::abs(double(decode(uint16_t(candidate))) - value), least = std::abs(double(decode(best)) - value);
    if (now < least || (now == least && candidate % 2 == 0))
      best = uint16_t(candidate);
  }
  return best;
}

TEST(Numbers, EveryPatternSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float bf16 = decodeBf16(uint16_t(bits)), f16 = decodeF16(uint16_t(bits));
    EXPECT_EQ(std::isnan(bf16) ? uint16_t(bits | 0x40) : bits, encodeBf16(bf16));
    EXPECT_EQ(std::isnan(f16), std::isnan(decodeF16(encodeF16(f16))));
    if (!std::isnan(f16)) {
      EXPECT_EQ(bits, encodeF16(f16));
    }
  }
}

TEST(Numbers, RoundsToNearestEven) {
  for (uint32_t bits = 1; bits < 0x7bff; bits += 3)
    for (double part : {0.25, 0.5, 0.75}) {
      double low = decodeF16(uint16_t(bits)), high = decodeF16(uint16_t(bits + 1));
      float value = float(low + part * (high - low));
      EXPECT_EQ(nearest(value, uint16_t(bits), decodeF16), encodeF16(value)) << value;
      low = decodeBf16(uint16_t(bits)), high = decodeBf16(uint16_t(bits + 1));
      value = float(low + part * (high - low));
      EXPECT_EQ(nearest(value, uint16_t(bits), decodeBf16), encodeBf16(value)) << value;
      EXPECT_EQ(encodeBf16(value) | 0x8000, encodeBf16(-value));
    }
}

TEST(Numbers, HalfOverflowsWhereItMust) {
  EXPECT_EQ(0x7bff, encodeF16(65519.996f));
  EXPECT_EQ(0x7c00, encodeF16(65520));
  EXPECT_EQ(0xfc00, encodeF16(-1e30f));
  EXPECT_EQ(0x0001, encodeF16(0x1.000002p-25f));
  EXPECT_EQ(0x0000, encodeF16(0x1p-25f));
  EXPECT_EQ(0x0400, encodeF16(0x1.ffep-15f * 1.0003f));
}

TEST(Numbers, StorageRoundTrip) {
  std::vector<float> values = {0, -1, 0.5f, 3, -65504};
  for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::F16}) {
    std::vector<std::byte> storage = encode(type, values);
    EXPECT_EQ(values.size() * bytes(type), storage.size());
    std::vector<float> back = decode(type, storage.data(), values.size());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(rounded(type, values[i]), back[i]) << name(type);
  }
}

} // namespace
} // namespace gdn::reference
