#include "tests/reference/generate.h"
#include "tests/reference/numbers.h"
#include "tests/reference/random.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace gdn::reference {
namespace {

double dot(const std::vector<float> &x, size_t i, size_t j, size_t width) {
  double sum = 0;
  for (size_t c = 0; c < width; ++c)
    sum += double(x[i * width + c]) * x[j * width + c];
  return sum;
}

Recipe recipe() {
  Recipe r;
  r.lengths = {200, 0, 57};
  r.keyHeads = 1;
  r.valueHeads = 4;
  return r;
}

TEST(Generate, SeedRepeatsAndDiffers) {
  Problem a = generate(recipe(), 7), b = generate(recipe(), 7), c = generate(recipe(), 8);
  EXPECT_EQ(a.v, b.v);
  EXPECT_EQ(a.k, b.k);
  EXPECT_EQ(a.state, b.state);
  EXPECT_NE(a.v, c.v);
  EXPECT_NE(a.q, a.k);
}

TEST(Generate, KeysHaveTheCorrelationAskedFor) {
  for (float wanted : {0.0f, 0.5f, 0.9f, 0.99f, 1.0f}) {
    Recipe r = recipe();
    r.correlation = wanted;
    Problem p = generate(r, 3);
    double sum = 0;
    for (size_t t = 0; t + 1 < 257; ++t) {
      sum += dot(p.k, t, t + 1, 128) / 256;
      EXPECT_NEAR(1, dot(p.k, t, t, 128), 0.35 * std::sqrt(wanted * (1 - wanted)) * 2 + 0.02);
    }
    EXPECT_NEAR(wanted, sum, 0.02);
    if (wanted == 1) {
      EXPECT_TRUE(std::equal(p.k.begin(), p.k.begin() + 128, p.k.begin() + 128));
    }
  }
}

TEST(Generate, NormalsAreNormalAndRounded) {
  std::vector<float> x = normals(200000, 2, ElementType::BF16, 5, 1);
  double mean = 0, square = 0, fourth = 0;
  for (float v : x) {
    EXPECT_EQ(v, decodeBf16(encodeBf16(v)));
    mean += v / x.size();
    square += double(v) * v / x.size();
    fourth += double(v) * v * v * v / x.size();
  }
  EXPECT_NEAR(0, mean, 0.03);
  EXPECT_NEAR(4, square, 0.08);
  EXPECT_NEAR(3, fourth / (square * square), 0.1);
}

TEST(Generate, MixLeavesAQuarterOfTheHeadsPersistent) {
  Problem p = generate(recipe(), 1);
  for (size_t at = 0; at < p.g.size(); ++at) {
    EXPECT_EQ(at % 4 == 3, p.g[at] == 0);
    EXPECT_LE(p.g[at], 0);
    EXPECT_GT(p.beta[at], 0);
    EXPECT_LT(p.beta[at], 1);
  }
}

TEST(Generate, SpecialInputs) {
  Recipe r = recipe();
  r.oneHot = true;
  r.beta = Recipe::Beta::Alternate;
  r.gates = Recipe::Gates::LastToken;
  r.gate = -5;
  r.valueScale = 0;
  r.zeroRowEvery = 3;
  Problem p = generate(r, 9);
  for (size_t t = 0; t < 257; ++t) {
    bool keyIsZero = t % 6 == 0, queryIsZero = t % 6 == 3;
    EXPECT_EQ(keyIsZero ? 0 : 1, dot(p.k, t, t, 128)) << t;
    EXPECT_EQ(queryIsZero ? 0 : 1, dot(p.q, t, t, 128)) << t;
    EXPECT_EQ(t % 2, p.beta[t * 4]);
    EXPECT_EQ(t == 199 || t == 256 ? -5 : 0, p.g[t * 4]);
  }
  EXPECT_TRUE(std::all_of(p.v.begin(), p.v.end(), [](float x) { return x == 0; }));
}

TEST(Generate, Lengths) {
  EXPECT_EQ((std::vector<int64_t>{8192, 8192, 8192, 8192}), parseLengths("4x8192"));
  EXPECT_EQ((std::vector<int64_t>{5, 0, 3, 3}), parseLengths("5+0+2x3"));
  EXPECT_EQ(8u, parseLengths("mixed").size());
  for (const char *bad :
       {"", "x", "4x", "x4", "0x5", "-1", "4x-1", "4x8192+", "1,2", "4 x 8", "1x2x3", "99999999999999999999"})
    EXPECT_TRUE(parseLengths(bad).empty()) << bad;
}

} // namespace
} // namespace gdn::reference
