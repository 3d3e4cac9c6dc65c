#include "tests/reference/compare.h"
#include <gtest/gtest.h>
#include <limits>

namespace gdn::reference {
namespace {

constexpr size_t heads = 2, width = 8, rows = 2000;

struct Sample {
  std::vector<double> want = std::vector<double>(rows * width);
  std::vector<float> got;
  Sample() {
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = 1 + double(i % 7);
    got.assign(want.begin(), want.end());
  }
  Error error() const { return compare(want, got, heads, width); }
};

TEST(Compare, RelativeError) {
  Sample s;
  EXPECT_EQ(0, s.error().relative);
  EXPECT_TRUE(s.error().within(Bound::of(0, width)));
  for (float &x : s.got)
    x *= 1.001f;
  EXPECT_NEAR(1e-3, s.error().relative, 1e-6);
  EXPECT_NEAR(1e-3, s.error().worstRow, 2e-4);
  EXPECT_TRUE(s.error().within(Bound::of(1.01e-3, width)));
  EXPECT_FALSE(s.error().within(Bound::of(0.99e-3, width)));
}

TEST(Compare, OneBadRowAmongMany) {
  Sample s;
  for (size_t i = 0; i < width; ++i)
    s.got[777 * width + i] *= 1.06f;
  EXPECT_LT(s.error().relative, 5e-3);
  EXPECT_FALSE(s.error().within(Bound::of(5e-3, width)));
}

TEST(Compare, NotFinite) {
  Sample s;
  s.got[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(1u, s.error().notFinite);
  EXPECT_FALSE(s.error().within(Bound::of(1, width)));
  EXPECT_EQ("1 not finite", s.error().faults());
  s.want[5] = 1e60; // fp32 overflows there too
  EXPECT_EQ(0u, s.error().notFinite);
}

TEST(Compare, ZeroAndTiny) {
  Sample s;
  s.want[8] = 0;
  s.got[8] = 1e-20f;
  EXPECT_EQ(1u, s.error().notZero);
  EXPECT_FALSE(s.error().within(Bound::of(1, width)));
  s.got[8] = 0;
  EXPECT_TRUE(s.error().within(Bound::of(0, width)));
  for (size_t i = 0; i < width; ++i) {
    s.want[i] = 1e-40;
    s.got[i] = 3e-40f;
  }
  EXPECT_TRUE(s.error().within(Bound::of(0, width))) << "below 1e-30 the relative error says nothing";
  s.got[3] = 2e-30f;
  EXPECT_EQ(1u, s.error().notTiny);
  EXPECT_FALSE(s.error().within(Bound::of(1, width)));
}

} // namespace
} // namespace gdn::reference
