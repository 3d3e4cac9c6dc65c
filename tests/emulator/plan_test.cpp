// The planner (templates/plan.cu): what its tables promise, for many shapes, and how long the work would take.
#include "plan_case.h"

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

Plan checked(const Problem &problem, int64_t tokens = -1) {
  Plan plan = makePlan(problem, 1, tokens);
  EXPECT_EQ(plan.error, "");
  if (plan.error.empty() && plan.header.mode == Planned) {
    Checker(problem, plan).check();
    for (int blocks : {1, 2, 7, 132})
      EXPECT_TRUE(Draw(plan, blocks).run()) << blocks << " blocks: an item waits for what none has drawn";
  }
  return plan;
}

const std::vector<int64_t> ragged{1, 7, 63, 64, 65, 1000, 4096, 16384};

// ---- Against the rule as it was simulated

struct Expected {
  const char *name;
  std::vector<int64_t> lengths;
  int heads;
  Gates gates;
  double steps; // simulated
};
void PrintTo(const Expected &expected, std::ostream *out) { *out << expected.name; }

std::vector<int64_t> repeat(int times, int64_t length, std::vector<int64_t> more = {}) {
  std::vector<int64_t> lengths(times, length);
  lengths.insert(lengths.end(), more.begin(), more.end());
  return lengths;
}

class Makespan : public testing::TestWithParam<Expected> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, Makespan,
    testing::Values(
        Expected{"1x2048_mix", {2048}, 8, Mix, 13.0}, Expected{"1x2048_zero", {2048}, 8, Zero, 11.8},
        Expected{"1x2048_decay", {2048}, 8, Decay, 8.0}, Expected{"1x8192_mix", {8192}, 8, Mix, 23.0},
        Expected{"1x8192_zero", {8192}, 8, Zero, 22.0}, Expected{"1x8192_decay", {8192}, 8, Decay, 14.0},
        Expected{"1x32768_mix", {32768}, 8, Mix, 53.4}, Expected{"1x32768_zero", {32768}, 8, Zero, 71.8},
        Expected{"1x32768_decay", {32768}, 8, Decay, 38.0}, Expected{"1x32768x32_mix", {32768}, 32, Mix, 165.5},
        Expected{"1x32768x64_mix", {32768}, 64, Mix, 309.1}, Expected{"1x32768x64_zero", {32768}, 64, Zero, 357.7},
        Expected{"ragged_mix", ragged, 8, Mix, 33.4}, Expected{"ragged_zero", ragged, 8, Zero, 46.6},
        Expected{"ragged_decay", ragged, 32, Decay, 90.0}, Expected{"28672_4096_mix", {28672, 4096}, 64, Mix, 289.5},
        Expected{"8192x4_mix", repeat(4, 8192), 48, Mix, 191.8},
        Expected{"packed_mix", {0, 5000, 0, 0, 300, 9000, 0}, 32, Mix, 70.1},
        Expected{"1x131072_mix", {131072}, 8, Mix, 185.1}, Expected{"1x16384x4_decay", {16384}, 4, Decay, 13.2},
        Expected{"200x300_20000_mix", repeat(300, 200, {20000}), 8, Mix, 112.9}),
    [](auto &info) { return info.param.name; });

TEST_P(Makespan, IsThatOfTheRule) {
  const Expected &expected = GetParam();
  Problem problem{expected.lengths, expected.heads, expected.gates};
  Plan plan = checked(problem);
  ASSERT_EQ(plan.header.mode, Planned);
  std::optional<double> steps = Draw(plan, problem.blocks).run();
  ASSERT_TRUE(steps);
  std::printf("%-20s %6.1f of %6.1f, %zu + %zu items\n", expected.name, *steps, expected.steps, plan.early.size(),
              plan.late.size());
  EXPECT_LT(*steps, 1.1 * expected.steps); // neighbouring deadlines pack by luck
}

// ---- Kinds of calls

TEST(PlanKinds, OfOtherDimensions) {
  for (Gates gates : {Zero, Decay, Mix, Gap})
    for (int blocks : {1, 7, 132}) {
      SCOPED_TRACE(gates);
      checked({{16384, 100}, 4, gates, blocks, Warm, 128, 128, 64}); // two blocks share a head
      checked({{16384, 100}, 4, gates, blocks, Warm, 64, 64, 64});
      checked({{0, 16384, 100, 0}, 4, gates, blocks, Warm, 96, 192, 64}); // no transitions
    }
}

TEST(PlanKinds, OfOtherHeads) {
  for (int heads : {1, 3, 9, 48})
    checked({{20000, 700, 64}, heads, Gap});
}

int itemsFrom(const Plan &plan, Int place) {
  auto from = [&](const Item &item) { return item.from == place; };
  return static_cast<int>(std::count_if(plan.early.begin(), plan.early.end(), from));
}

TEST(PlanKinds, WithoutTransitionsWhereTheStateIsNotSquare) {
  Plan plan = checked({{16384}, 4, Zero, 132, Warm, 96, 192, 64});
  EXPECT_EQ(itemsFrom(plan, Identity), 0);
  EXPECT_GT(itemsFrom(checked({{16384}, 4, Zero}), Identity), 0);
}

TEST(PlanKinds, WithoutWarmUpsWhereTheyAreNotAllowed) {
  Problem problem{{16384}, 8, Decay, 132, 0}; // its gates are not even read
  Plan plan = checked(problem);
  EXPECT_GT(itemsFrom(plan, Identity), 0);
  for (const Item &item : plan.early)
    EXPECT_TRUE(item.from != Zeros || item.to >= 0);
  EXPECT_TRUE(plan == checked({{16384}, 8, Zero, 132, 0}));
}

Int longestWarmUp(const Plan &plan) {
  Int warm = 0;
  for (const Item &item : plan.early)
    warm = std::max(warm, item.warm);
  return warm;
}

TEST(PlanKinds, FastWarmUpsAreShorter) {
  EXPECT_EQ(longestWarmUp(checked({{16384}, 8, Decay})), 6);
  EXPECT_EQ(longestWarmUp(checked({{16384}, 8, Decay, 132, Warm | Fast})), 4);
}

TEST(PlanKinds, WarmUpsReachBackOverWhatGrowsOrATransitionDoes) {
  Plan plan = checked({{16384}, 64, Grow});
  EXPECT_GT(longestWarmUp(plan), 6);
  EXPECT_EQ(itemsFrom(plan, Identity), 0);
  for (Gates gates : {Wild, Lost})
    EXPECT_GT(itemsFrom(checked({{16384}, 8, gates}), Identity), 0);
}

TEST(PlanKinds, NoItemOutlastsTheOthers) { // where all heads decay, and blocks have more than a warm-up or two to do
  for (auto [heads, length] :
       {std::pair{4, 8192}, {8, 4096}, {8, 8192}, {8, 32768}, {16, 4096}, {32, 2048}, {64, 2048}}) {
    double work = 0, longest = 0;
    for (const Item &item : checked({{length}, heads, Decay}).early) {
      double time = start + (item.end - item.begin) / chunkTokens - item.warm * (1 - stateStep);
      work += time, longest = std::max(longest, time);
    }
    EXPECT_LT(longest, 1.1 * work / 132 + 1) << heads << " heads of " << length << " tokens";
  }
}

TEST(PlanKinds, GuardsStatesThatAreStoredInPlace) {
  int guards = 0;
  for (Word flags : {Word(Warm | InPlace), Word(Warm | Fast | InPlace), Word(Warm | Invariant | InPlace)})
    for (int blocks : {3, 7, 40, 132})
      for (auto &lengths : {ragged, {3000}, {5000, 4000, 300}, {40000, 70}})
        for (const Item &item : checked({lengths, 8, Decay, blocks, flags}).early)
          guards += item.to == Caller && item.guard >= 0;
  EXPECT_GT(guards, 100);
  checked({{16384, 100}, 4, Mix, 132, Warm | InPlace, 128, 128, 64});
}

TEST(PlanKinds, WhateverTheOffsetsAndGatesAreStoredIn) {
  Problem problem{{4096, 4096}, 8, Mix};
  Plan plan = checked(problem);
  problem.wide = true;
  EXPECT_TRUE(plan == makePlan(problem));
  problem.dense = true;
  EXPECT_TRUE(plan == makePlan(problem));
  for (int element : {1, 2}) {
    problem.element = element;
    EXPECT_TRUE(plan == makePlan(problem)) << "element type " << element;
  }
  problem.element = 0;
  for (int options : {1, 2}) {
    problem.options = options;
    EXPECT_TRUE(plan == makePlan(problem)) << "options " << options;
  }
}

TEST(PlanKinds, ManyShortTilesStayInTheOrderOfMemory) {
  EXPECT_EQ(makePlan({std::vector<int64_t>(70000, 1), 8, Zero}).header.mode, Natural);
  EXPECT_EQ(makePlan({std::vector<int64_t>(4000, 1), 8, Zero}).header.mode, Natural);
  EXPECT_EQ(makePlan({std::vector<int64_t>(20, 0), 64, Zero}).header.mode, Natural);
  EXPECT_EQ(checked({{0, 0, 64}, 2, Zero}).early.size(), 6u);
}

TEST(PlanKinds, SequencesOfOneLengthThatFillTheBlocksStayInTheOrderOfMemory) {
  for (auto [count, length, heads] : {std::tuple{8, 4096, 16}, {4, 8192, 64}, {40, 128, 16}, {8, 1024, 8}})
    EXPECT_EQ(makePlan({repeat(count, length), heads, Mix}).header.mode, Natural) << count << "x" << length;
  EXPECT_EQ(makePlan({repeat(4, 8192), 48, Mix}).header.mode, Planned); // two rounds, the second of them half empty
  std::vector<int64_t> unequal = repeat(4, 8192);
  unequal[0] = 6000;
  EXPECT_EQ(makePlan({unequal, 64, Mix}).header.mode, Planned);
  EXPECT_EQ(makePlan({repeat(4, 8192), 64, Mix, 132, Warm | Invariant}).header.mode, Planned);
}

TEST(PlanKinds, EqualSequencesForHalfTheBlocksAreLeftToHalves) {
  std::vector<int64_t> lengths = repeat(16, 2048);
  auto header = [&](Word flags) { return makePlan({lengths, 4, Mix, 132, Warm | flags}).header; };
  EXPECT_EQ(header(Halves).mode, Natural);
  EXPECT_EQ(header(Halves).columns, 64u);
  EXPECT_EQ(header(0).mode, Planned);
  lengths[3] = 9000;
  EXPECT_EQ(header(Halves).mode, Planned);
  EXPECT_EQ(header(Halves).columns, 128u);
}

TEST(PlanKinds, LongSequencesAmongMany) { // more than a block has threads, and both before and behind that many
  std::vector<int64_t> lengths = repeat(700, 70, {20000});
  lengths[3] = 9000;
  Plan plan = checked({lengths, 8, Mix});
  EXPECT_GT(itemsFrom(plan, Identity), 0);
  EXPECT_EQ(checked({lengths, 8, Mix, 132, Warm | Invariant}).header.mode, Planned);
}

// ---- The same plan each time

TEST(PlanAlways, IsTheSame) {
  Problem problem{ragged, 8, Mix};
  Plan plan = makePlan(problem);
  EXPECT_TRUE(plan == makePlan(problem, 3)) << "on a workspace that holds a plan";
  for (int grid : {1, 2, 16, 40}) {
    problem.gridBlocks = grid;
    EXPECT_TRUE(plan == makePlan(problem)) << grid << " blocks plan";
  }
}

TEST(PlanAlways, IsTheSameUnderEverySchedule) {
  Problem problem{{3000, 20000}, 8, Mix};
  Plan plan = makePlan(problem);
  for (Schedule schedule : {Schedule::Earliest, Schedule::Latest, Schedule::Random}) {
    Options options;
    options.schedule = schedule, options.seed = 1, options.detect = true;
    Plan again = makePlan(problem, 2, -1, options);
    EXPECT_EQ(again.error, "");
    EXPECT_TRUE(plan == again);
  }
}

// ---- Offsets that are wrong

TEST(PlanOffsets, OfAnyKindAreClamped) {
  const std::vector<int64_t> bad[] = {{0, 5000, 3000, 20000},
                                      {-7, 9000, 12000},
                                      {100, 1 << 30, 200, 1 << 30},
                                      {20000, 0},
                                      {0, 20000, 0, 20000, 0, 20000, 0, 20000},
                                      {500, 500, 12001, 12002}};
  for (const std::vector<int64_t> &offsets : bad)
    for (int blocks : {3, 132}) {
      Problem problem{{}, 8, Zero, blocks, 0};
      problem.offsets = offsets, problem.wide = true;
      checked(problem, 20000);
      for (Word flags : {Word(Warm), Word(Warm | Invariant), Word(Invariant)}) {
        problem.flags = flags;
        EXPECT_EQ(makePlan(problem, 1, 20000).error, "");
      }
    }
}

// ---- Invariant mode

// The items of one sequence, without what depends on where it lies in the call.
std::set<std::array<Int, 8>> cutsOf(const Plan &plan, Int sequence, Int begin) {
  std::set<std::array<Int, 8>> cuts;
  for (const std::vector<Item> *items : {&plan.early, &plan.late})
    for (const Item &item : *items)
      if (item.sequence == sequence)
        cuts.insert({item.begin - begin, item.end - begin, item.head, item.column, item.warm, item.hops,
                     item.from < 0 ? item.from : 0, item.to < 0 ? item.to : item.to / matrixBase});
  return cuts;
}

TEST(PlanInvariant, CutsDependOnTheSequenceAlone) {
  for (Gates gates : {Zero, Decay, Mix}) {
    Word flags = Warm | Invariant;
    Plan alone = checked({{20000}, 8, gates, 132, flags});
    ASSERT_EQ(alone.header.mode, Planned);
    auto cuts = cutsOf(alone, 0, 0);
    EXPECT_EQ(cuts, cutsOf(checked({{20000}, 8, gates, 7, flags}), 0, 0));
    EXPECT_EQ(cuts, cutsOf(checked({{500, 0, 9000, 20000, 4097}, 8, gates, 132, flags}), 3, 9500));
    std::vector<int64_t> many(400, 70);
    many.push_back(20000);
    EXPECT_EQ(cuts, cutsOf(checked({many, 8, gates, 132, flags}), 400, 28000));
  }
}

TEST(PlanInvariant, ScansGoOnWhereOneMakesTooFewHops) {
  Plan plan = checked({{131072}, 2, Zero, 132, Invariant});
  int scans = 0;
  for (const Item &item : plan.late)
    scans += item.hops > 0;
  EXPECT_EQ(scans, 2 * 2 * 2); // 62 hops
}

TEST(PlanInvariant, ShortSequencesAreNeverCut) {
  Plan plan = checked({std::vector<int64_t>(5, 2048), 4, Zero, 132, Invariant});
  EXPECT_EQ(plan.early.size(), 20u);
  EXPECT_EQ(makePlan({std::vector<int64_t>(4000, 1), 8, Zero, 132, Invariant}).header.mode, Natural);
}

// ---- What the host knows

TEST(PlanNeed, IsSeenFromShapes) {
  auto needs = [](int sequences, int length, int heads, Word flags = 0) {
    return needsPlan(Shape{sequences, sequences * length, heads, 128, 128, 128, 132, flags}, length);
  };
  EXPECT_TRUE(needs(1, 32768, 8));
  EXPECT_TRUE(needs(8, 1024, 8));
  EXPECT_FALSE(needs(256, 128, 64)); // saturated
  EXPECT_FALSE(needs(33, 64, 4));    // as many tiles as blocks
  EXPECT_FALSE(needs(4, 8192, 64));  // two waves, the second one nearly full
  EXPECT_TRUE(needs(3, 8192, 48));   // nearly empty
  EXPECT_FALSE(needs(1, 64, 8));     // one chunk
  EXPECT_TRUE(needs(256, 4096, 64, Invariant));
  EXPECT_FALSE(needs(256, 2048, 64, Invariant));
  EXPECT_TRUE(needsPlan(Shape{100, 0, 8, 128, 128, 128, 132, 0}, 0)); // packed
  EXPECT_FALSE(needsPlan(Shape{70000, 70000, 8, 128, 128, 128, 132, 0}, 0));
}

} // namespace
