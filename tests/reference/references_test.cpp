#include "tests/reference/compare.h"
#include "tests/reference/generate.h"
#include "tests/reference/numbers.h"
#include <gtest/gtest.h>

namespace gdn::reference {
namespace {

Recipe recipe() {
  Recipe r;
  r.keyHeads = 2;
  r.valueHeads = 4;
  r.keyDim = 32;
  r.valueDim = 48;
  r.lengths = {1, 0, 15, 64, 65, 130};
  return r;
}

double distance(const std::vector<double> &x, const std::vector<double> &y) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

std::vector<float> narrow(const std::vector<double> &x) { return {x.begin(), x.end()}; }

TEST(Recurrence, TwoTokensByHand) {
  Problem p;
  p.keyDim = 2;
  p.valueDim = 1;
  p.offsets = {0, 2};
  p.tokens = 3; // one row behind the sequence
  p.scale = 2;
  p.q = {1, 0, 0, 1, 9, 9};
  p.k = {1, 0, 1, 1, 9, 9};
  p.v = {3, 5, 9};
  p.g = {0, std::log(0.5f), 0};
  p.beta = {0.5f, 1, 1};
  p.state = {4, 8};
  Result r = recurrence(p);
  // S = (4, 8); u = (3 - 4)/2; S = (3.5, 8). S/2 = (1.75, 4); u = 5 - 5.75; S = (1, 3.25).
  EXPECT_NEAR(7, r.output[0], 1e-12);
  EXPECT_NEAR(6.5, r.output[1], 1e-6);
  EXPECT_EQ(0, r.output[2]);
  EXPECT_NEAR(1, r.state[0], 1e-6);
  EXPECT_NEAR(3.25, r.state[1], 1e-6);
}

TEST(Recurrence, NormalisesRows) {
  Problem p = generate(recipe(), 3), scaled = p;
  p.normalise = scaled.normalise = true;
  for (float &x : scaled.k)
    x *= 1024;
  Result r = recurrence(p), s = recurrence(scaled);
  EXPECT_LT(distance(s.output, r.output), 1e-6); // up to epsilon
  EXPECT_GT(distance(s.output, r.output), 1e-8);
  std::fill(p.k.begin(), p.k.end(), 0);
  std::fill(p.state.begin(), p.state.end(), 0);
  for (double x : recurrence(p).output)
    EXPECT_EQ(x, 0);
}

// What callers may give instead of log decays and write strengths.
TEST(Problem, DecaysAndStrengths) {
  Problem p;
  p.valueHeads = 2;
  p.g = {0.5f, 0, -30, 30};
  p.beta = {0, 20, -20, 1};
  EXPECT_EQ(p.logDecay(0), 0.5);
  EXPECT_EQ(p.strength(3), 1);
  p.betaLogits = true;
  EXPECT_EQ(p.strength(0), 0.5);
  EXPECT_NEAR(p.strength(2), 2.06115362e-9, 1e-17);
  p.betaDoubled = true;
  EXPECT_NEAR(p.strength(1), 2, 1e-8);
  p.gateIsDecay = true;
  EXPECT_EQ(p.logDecay(0), -std::log(2.0));
  EXPECT_EQ(p.logDecay(1), -INFINITY);
  p.gateIsDecay = false;
  p.aLog = {0, 1};
  EXPECT_NEAR(p.logDecay(2), -9.3576230e-14, 1e-20); // softplus keeps what is left of e^x
  EXPECT_NEAR(p.logDecay(3), -30 * std::exp(1.0), 1e-9);
  p.dtBias = {30, 1};
  EXPECT_NEAR(p.logDecay(2), -std::log(2.0), 1e-15);
  EXPECT_NEAR(p.oneHead(1).logDecay(0), -std::exp(1.0) * std::log1p(std::exp(1.0)), 1e-12);
}

TEST(Recurrence, EmptySequenceKeepsItsState) {
  Problem p = generate(recipe(), 2);
  Result r = recurrence(p);
  size_t perSequence = p.valueHeads * p.stateSize();
  EXPECT_TRUE(std::equal(p.state.begin() + perSequence, p.state.begin() + 2 * perSequence,
                         r.state.begin() + perSequence, [](float x, double y) { return x == y; }));
}

struct Case {
  const char *name;
  void (*change)(Recipe &);
  friend void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }
};

class Agreement : public testing::TestWithParam<Case> {};

TEST_P(Agreement, ChunkwiseIsTheRecurrence) {
  Recipe r = recipe();
  GetParam().change(r);
  Problem p = generate(r, 11);
  Result token = recurrence(p), chunk = chunkwise(p, Rounding::exact());
  EXPECT_LT(distance(chunk.output, token.output), 1e-10);
  EXPECT_LT(distance(chunk.state, token.state), 1e-10);
  EXPECT_EQ(chunk.checkpoints.size(), token.checkpoints.size());
  EXPECT_LT(distance(chunk.checkpoints, token.checkpoints), 1e-10);
}

TEST(Recurrence, CheckpointsAreTheStatesOfShorterSequences) {
  for (bool before : {false, true}) {
    Recipe r = recipe();
    r.every = 64, r.before = before;
    Problem p = generate(r, 7);
    EXPECT_EQ(p.checkpointRows(),
              before ? (std::vector<size_t>{0, 1, 1, 2, 3, 5, 8}) : (std::vector<size_t>{0, 0, 0, 0, 1, 2, 4}));
    Result whole = recurrence(p);
    for (size_t number : {0, 1}) { // of the last sequence
      Problem part = p;
      part.offsets.back() = part.offsets[5] + 64 * int64_t(number + !before);
      std::vector<double> state = recurrence(part).state;
      size_t size = p.valueHeads * p.stateSize(), at = (p.checkpointRows()[5] + number) * size;
      EXPECT_TRUE(std::equal(state.end() - ptrdiff_t(size), state.end(), &whole.checkpoints[at]));
    }
  }
}

using G = Recipe::Gates;
using F = Recipe::GateForm;
using B = Recipe::Beta;
INSTANTIATE_TEST_SUITE_P(Kinds, Agreement,
                         testing::Values(Case{"mix", [](Recipe &) {}},
                                         Case{"no_state", [](Recipe &r) { r.hasState = false; }},
                                         Case{"strong_gates", [](Recipe &r) { r.gates = G::Softplus, r.gate = 16; }},
                                         Case{"minus_100", [](Recipe &r) { r.gates = G::Constant, r.gate = -100; }},
                                         Case{"minus_1e4", [](Recipe &r) { r.gates = G::Constant, r.gate = -1e4f; }},
                                         Case{"last_token", [](Recipe &r) { r.gates = G::LastToken, r.gate = -90; }},
                                         Case{"zero_runs", [](Recipe &r) { r.gates = G::ZeroRuns, r.gate = 20; }},
                                         Case{"correlated", [](Recipe &r) { r.correlation = 0.9f; }},
                                         Case{"one_hot", [](Recipe &r) { r.oneHot = true; }},
                                         Case{"beta_zero", [](Recipe &r) { r.beta = B::Constant, r.strength = 0; }},
                                         Case{"beta_alternating", [](Recipe &r) { r.beta = B::Alternate; }},
                                         Case{"beta_to_two", [](Recipe &r) { r.beta = B::Uniform, r.strength = 2; }},
                                         Case{"logits", [](Recipe &r) { r.logits = true; }},
                                         Case{"doubled", [](Recipe &r) { r.doubled = true; }},
                                         Case{"decays", [](Recipe &r) { r.gateForm = F::Decay; }},
                                         Case{"raw_gates", [](Recipe &r) { r.gateForm = F::Raw, r.biased = true; }},
                                         Case{"normalised",
                                              [](Recipe &r) {
                                                r.normalise = true, r.zeroRowEvery = 5;
                                                r.keyNorm = 7, r.queryNorm = 0.2f, r.normSpread = 2;
                                              }},
                                         Case{"checkpoints_after", [](Recipe &r) { r.every = 64; }},
                                         Case{"checkpoints_before", [](Recipe &r) { r.every = 128, r.before = true; }},
                                         Case{"scale_zero", [](Recipe &r) { r.scale = 0; }},
                                         Case{"tail", [](Recipe &r) { r.tail = 70; }}),
                         [](const auto &info) { return std::string(info.param.name); });

// The agreement above must be able to fail: one gate, beta or key changed a little is seen.
TEST(References, SmallChangesAreSeen) {
  Problem p = generate(recipe(), 11);
  Result before = recurrence(p);
  for (float *changed : {&p.g[400], &p.beta[400], &p.k[4000], &p.q[4000], &p.v[4000], &p.state[100]}) {
    float kept = *changed;
    *changed += 1e-3f;
    Result after = recurrence(p);
    EXPECT_GT(distance(after.output, before.output), 1e-9);
    *changed = kept;
  }
}

TEST(RoundingModel, OrdinaryInputsAreWithinTheBounds) {
  for (ElementType io : {ElementType::BF16, ElementType::F16}) {
    Recipe r = recipe();
    r.keyDim = r.valueDim = 128;
    r.lengths = {513};
    r.io = io;
    Problem p = generate(r, 4);
    Result want = recurrence(p), model = chunkwise(p, Rounding::kernel(io, io));
    double bound = io == ElementType::BF16 ? 5e-3 : 1e-3;
    Error o = compare(want.output, narrow(model.output), p.valueHeads, p.valueDim);
    Error s = compare(want.state, narrow(model.state), p.valueHeads, p.stateSize());
    EXPECT_TRUE(o.within(Bound::of(bound, p.valueDim))) << name(io) << " " << o.relative << " " << o.worstRow;
    EXPECT_TRUE(s.within(Bound::of(bound, p.stateSize()))) << name(io) << " " << s.relative << " " << s.worstRow;
    EXPECT_GT(o.relative, bound / 20) << "the model rounds nothing";
    EXPECT_GT(s.relative, bound / 20) << "the model rounds nothing";
  }
}

TEST(RoundingModel, Fp16ChainHelpsOnParallelKeys) {
  Recipe r = recipe();
  r.keyDim = r.valueDim = 128;
  r.lengths = {1024};
  r.valueHeads = 2;
  r.correlation = 0.99f;
  r.gates = G::Constant;
  r.beta = B::Uniform;
  r.strength = 2;
  Problem p = generate(r, 4);
  Result want = recurrence(p);
  double bf16 = distance(chunkwise(p, Rounding::kernel(ElementType::BF16, ElementType::BF16)).output, want.output);
  double f16 = distance(chunkwise(p, Rounding::kernel(ElementType::BF16, ElementType::F16)).output, want.output);
  EXPECT_LT(f16, bf16);
  EXPECT_LT(bf16, 0.1);
}

TEST(RoundingModel, DecayBelowTheFloorStaysAGate) {
  Recipe r = recipe();
  r.gates = G::Softplus;
  for (float strength : {2.0f, 16.0f})
    for (ElementType io : {ElementType::BF16, ElementType::F16}) {
      r.gate = strength;
      r.io = io;
      Problem p = generate(r, 5);
      Result want = recurrence(p), model = chunkwise(p, Rounding::kernel(io, io));
      Error o = compare(want.output, narrow(model.output), p.valueHeads, p.valueDim);
      Error s = compare(want.state, narrow(model.state), p.valueHeads, p.stateSize());
      EXPECT_TRUE(o.within(Bound::of(5e-3, p.valueDim)))
          << strength << " " << name(io) << " " << o.relative << " " << o.faults();
      EXPECT_TRUE(s.within(Bound::of(5e-3, p.stateSize())))
          << strength << " " << name(io) << " " << s.relative << " " << s.faults();
    }
}

TEST(Problem, OneHeadIsItsShareOfTheWhole) {
  Problem p = generate(recipe(), 6);
  Result whole = recurrence(p), one = recurrence(p.oneHead(3));
  for (size_t t = 0; t < size_t(p.tokens); ++t)
    for (size_t c = 0; c < p.valueDim; ++c)
      ASSERT_EQ(whole.output[(t * p.valueHeads + 3) * p.valueDim + c], one.output[t * p.valueDim + c]);
  EXPECT_EQ(whole.state[(5 * p.valueHeads + 3) * p.stateSize() + 1], one.state[5 * p.stateSize() + 1]);
}

} // namespace
} // namespace gdn::reference
