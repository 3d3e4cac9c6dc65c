// The planner (templates/plan.cu): what its tables promise, for many shapes, and how long the work would take.
#include "format/work.h"
#include "harness.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

using namespace gdn::emu;
using namespace gdn::emu::test;
using namespace gdn::work;

namespace {

const char *const ptx =
#include GDN_PLAN_PTX
    ;

// In full steps: the costs that the planner is compiled with.
constexpr double stateStep = 2160.0 / 3600, start = 1500.0 / 3600, flagTime = 3000.0 / 3600, hopTime = 1900.0 / 3600;

enum Gates { Zero, Decay, Mix, Gap }; // Mix: a quarter of the heads does not decay; Gap: the middle of a sequence

// 64 of them sum to -3.22: six chunks go below -16.7.
constexpr float decayed = -3.22f / 64;

struct Problem {
  std::vector<int64_t> lengths;
  int heads = 8;
  Gates gates = Mix;
  int blocks = 132;
  Word flags = Warm;
  int keyDim = 128, valueDim = 128, columns = 128;
  int gridBlocks = 5;                // of the planner
  std::vector<int64_t> offsets = {}; // instead of lengths: whatever they are
  bool dense = false, wide = false;
  int element = 0, options = 0;

  float gate(int64_t token, int head) const {
    bool quarter = head < std::max(1, heads / 4);
    if (gates == Zero || (gates == Mix && quarter) || (gates == Gap && token >= 10000 && token < 13000))
      return 0;
    return decayed;
  }
};

struct Plan {
  std::string error;
  Shape shape;
  Layout at;
  Header header;
  std::vector<Item> early, late;
  bool operator==(const Plan &other) const {
    auto equal = [](const std::vector<Item> &a, const std::vector<Item> &b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Item)) == 0);
    };
    return std::memcmp(&header, &other.header, sizeof header) == 0 && equal(early, other.early) &&
           equal(late, other.late);
  }
};

std::vector<int64_t> offsetsOf(const Problem &problem) {
  if (!problem.offsets.empty())
    return problem.offsets;
  std::vector<int64_t> offsets{0};
  for (int64_t length : problem.lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

// One launch, or more on one workspace, which holds anything at first; the last plan.
Plan makePlan(const Problem &problem, int launches = 1, int64_t tokens = -1, const Options &options = {}) {
  std::vector<int64_t> offsets = offsetsOf(problem);
  if (tokens < 0)
    tokens = offsets.back();
  Machine machine;
  Buffer<int64_t> wide(machine, offsets.size());
  Buffer<int32_t> narrow(machine, offsets.size());
  for (size_t i = 0; i < offsets.size(); i++)
    wide[i] = offsets[i], narrow[i] = static_cast<int32_t>(offsets[i]);
  bool read = problem.flags & Warm;
  constexpr float aLog = 0.5f, dtBias = -1.25f;
  Buffer<float> aLogs(machine, problem.heads, aLog), dtBiases(machine, problem.heads, dtBias);
  Buffer<float> g(machine, read && problem.element == 0 ? tokens * problem.heads : 1);
  Buffer<uint16_t> half(machine, read && problem.element != 0 ? tokens * problem.heads : 1);
  for (int64_t token = 0; read && token < tokens; token++)
    for (int head = 0; head < problem.heads; head++) {
      float value = problem.gate(token, head);
      if (problem.options & 1)
        value = std::exp(value);
      if (problem.options & 2) // softplus(x) = -value / e^aLog
        value = std::log(std::expm1(-value / std::exp(aLog))) - dtBias;
      if (problem.element == 0)
        g[token * problem.heads + head] = value;
      else
        half[token * problem.heads + head] =
            problem.element == 1 ? std::bit_cast<uint32_t>(value) >> 16 : std::bit_cast<uint16_t>(_Float16(value));
    }
  Plan plan;
  plan.shape = {static_cast<int>(offsets.size()) - 1,
                static_cast<int>(tokens),
                problem.heads,
                problem.keyDim,
                problem.valueDim,
                problem.columns,
                problem.blocks,
                problem.flags};
  plan.at = layout(plan.shape, 2);
  Buffer<uint8_t> workspace(machine, plan.at.slotValues, 0xab); // what lies behind is not the planner's
  Launch what;
  what.entry = "gdn_plan";
  what.grid = {static_cast<uint32_t>(problem.gridBlocks), 1, 1}, what.block = {512, 1, 1};
  const void *values = problem.element == 0 ? static_cast<const void *>(g.data()) : half.data();
  const void *cu = problem.dense ? nullptr : problem.wide ? static_cast<const void *>(wide.data()) : narrow.data();
  what.params = {param(cu),
                 param(int(problem.wide)),
                 param(plan.shape.sequences),
                 param(problem.dense ? static_cast<int>(problem.lengths[0]) : 0),
                 param(plan.shape.tokens),
                 param(plan.shape.heads),
                 param(values),
                 param(int64_t(problem.heads)),
                 param(int64_t(1)),
                 param(problem.element),
                 param(aLogs.data()),
                 param(0),
                 param(dtBiases.data()),
                 param(0),
                 param(problem.options),
                 param(workspace.data()),
                 param(problem.blocks),
                 param(problem.keyDim),
                 param(problem.valueDim),
                 param(problem.columns),
                 param(problem.flags)};
  for (int i = 0; i < launches && plan.error.empty(); i++)
    plan.error = run(machine, ptx, what, options).error;
  std::memcpy(&plan.header, workspace.data(), sizeof(Header));
  if (!plan.error.empty() || plan.header.mode != Planned)
    return plan;
  const Header &header = plan.header;
  EXPECT_LE(int64_t(header.early) + header.late, plan.at.items);
  EXPECT_EQ(header.earlyItems, plan.at.table);
  EXPECT_EQ(header.lateItems, header.earlyItems + header.early * sizeof(Item));
  if (int64_t(header.early) + header.late > plan.at.items)
    return plan;
  auto *items = reinterpret_cast<Item *>(workspace.data() + header.earlyItems);
  plan.early.assign(items, items + header.early);
  plan.late.assign(items + header.early, items + header.early + header.late);
  EXPECT_EQ(header.earlyNext + header.lateNext, 0u);
  EXPECT_LE(header.slots, plan.at.slots);
  const Word *flags = reinterpret_cast<Word *>(workspace.data() + header.flags);
  for (int64_t i = 0; i < header.slots * flagRows; i++)
    EXPECT_EQ(flags[i], 0u);
  return plan;
}

// ---- What must hold

struct Range {
  int64_t begin, end;
  auto operator<=>(const Range &) const = default;
};

// Checks that the tables say what work.h says.
class Checker {
public:
  Checker(const Problem &problem, const Plan &plan) : problem(problem), plan(plan), offsets(offsetsOf(problem)) {}

  void check() {
    for (const Item &item : plan.early)
      note(item);
    for (const Item &item : plan.late)
      note(item);
    for (const Item &item : plan.early)
      checkItem(item);
    for (const Item &item : plan.late)
      checkItem(item);
    checkCoverage();
  }

private:
  using Key = std::tuple<int, int, int>; // sequence, head, V column
  static constexpr int matrix = matrixBase;

  Range sequence(int i) const {
    auto clamp = [&](int64_t x) { return std::clamp<int64_t>(x, 0, plan.shape.tokens); };
    int64_t begin = clamp(offsets[i]);
    return {begin, std::max(begin, clamp(offsets[i + 1]))};
  }

  int width(const Item &item) const { return item.hops ? 64 : plan.shape.columns; }

  // What each item stores, by slot and 64 rows, in the order of the stores.
  void note(const Item &item) {
    ASSERT_TRUE(item.sequence >= 0 && item.sequence < plan.shape.sequences && item.head >= 0 &&
                item.head < problem.heads);
    for (int row = item.column / 64; row < (item.column + width(item) + 63) / 64; row++) {
      if (item.to >= 0)
        stores[{item.to, row}].push_back({&item, item.end});
      for (int hop = 0; hop < item.hops; hop++)
        hopped[{item.segment + hop, row}].push_back(&item);
    }
    if (item.warm * chunkTokens >= item.end - item.begin && item.end > item.begin)
      return; // state only
    Range range{item.begin + int64_t(item.warm) * chunkTokens, item.end};
    if (!item.hops)
      outputs[{item.sequence, item.head, item.column}].push_back(range);
    if (item.to == Caller)
      finals[{item.sequence, item.head, item.column}]++;
  }

  void checkItem(const Item &item) {
    Range tokens = sequence(item.sequence);
    EXPECT_TRUE(item.begin >= tokens.begin && item.end <= tokens.end && item.begin <= item.end);
    EXPECT_EQ((item.begin - tokens.begin) % chunkTokens, 0);
    EXPECT_TRUE(item.end == tokens.end || (item.end - tokens.begin) % chunkTokens == 0);
    EXPECT_TRUE(item.column >= 0 && item.column + width(item) <= plan.shape.valueDim);
    EXPECT_TRUE(item.valueHead == item.head || item.valueHead == problem.heads);
    EXPECT_TRUE(item.warm >= 0 && item.hops >= 0 && item.hops <= maxHops && item.last == 0);
    if (item.to >= matrix)
      EXPECT_LT(item.to - matrix, plan.at.matrices);
    else
      EXPECT_LT(item.to, static_cast<int>(plan.header.slots));
    checkSource(item, tokens);
    for (int hop = 0; hop < item.hops; hop++)
      checkHop(item, hop);
  }

  // The token before which a state in a slot is the tile's, by the item that stores it last.
  int64_t stateAt(const Item &item, int slot, int row) {
    auto owner = hopped.find({slot, row});
    const Item *by;
    int64_t at;
    if (owner != hopped.end()) {
      EXPECT_EQ(owner->second.size(), 1u);
      EXPECT_EQ(item.fromCount, 2);
      by = owner->second.front();
      at = stores[{slot, row}].front().second; // where N's segment ends
    } else {
      EXPECT_EQ(item.fromCount, 1);
      auto &by1 = stores[{slot, row}];
      EXPECT_EQ(by1.size(), 1u) << "slot " << slot;
      if (by1.empty())
        return -1;
      by = by1.front().first, at = by1.front().second;
    }
    EXPECT_TRUE(by->sequence == item.sequence && by->head == item.head);
    EXPECT_TRUE(item.tail <= by->tail || owner != hopped.end()); // its writer's ticket comes earlier
    return at;
  }

  void checkSource(const Item &item, Range tokens) {
    if (item.from >= 0) {
      EXPECT_EQ(item.warm, 0);
      for (int row = item.column / 64; row < (item.column + width(item) + 63) / 64; row++)
        EXPECT_EQ(stateAt(item, item.from, row), item.begin);
    } else if (item.from == Caller) {
      EXPECT_EQ(item.begin, tokens.begin);
    } else if (item.from == Identity) {
      EXPECT_TRUE(item.to >= matrix && item.valueHead == problem.heads);
    } else {
      EXPECT_EQ(item.from, Zeros);
      bool stateOnly = item.warm * chunkTokens >= item.end - item.begin;
      if (stateOnly) {
        EXPECT_TRUE(item.to >= 0 && item.to < matrix);
        return;
      }
      // A warm-up long enough that what was before it is gone.
      double sum = 0;
      for (int64_t token = item.begin; token < item.begin + int64_t(item.warm) * chunkTokens; token++)
        sum += problem.gate(token, item.head);
      EXPECT_LT(sum, problem.flags & Fast ? -9.99 : -16.69);
      EXPECT_LE(item.warm, longestWarm);
    }
  }

  void checkHop(const Item &item, int hop) {
    int slot = item.segment + hop, row = item.column / 64;
    auto &n = stores[{slot, row}];
    ASSERT_EQ(n.size(), 1u) << "N of slot " << slot;
    const Item *segment = n.front().first;
    EXPECT_TRUE(segment->sequence == item.sequence && segment->head == item.head && segment->from == Zeros);
    int64_t before = hop ? stores[{slot - 1, row}].front().second : stateAt(item, item.from, row);
    EXPECT_EQ(segment->begin, before);
    for (int column = 0; column < plan.shape.keyDim / 64; column++) { // all of M
      auto &m = stores[{matrix + slot, column}];
      ASSERT_EQ(m.size(), 1u) << "M " << slot;
      const Item *made = m.front().first;
      EXPECT_TRUE(made->sequence == item.sequence && made->head == item.head && made->from == Identity);
      EXPECT_TRUE(made->begin == segment->begin && made->end == segment->end);
    }
  }

  void checkCoverage() {
    for (int i = 0; i < plan.shape.sequences; i++)
      for (int head = 0; head < problem.heads; head++)
        for (int column = 0; column < plan.shape.valueDim; column += plan.shape.columns) {
          Key key{i, head, column};
          ASSERT_EQ(finals[key], 1) << "sequence " << i << " head " << head;
          auto &ranges = outputs[key];
          std::sort(ranges.begin(), ranges.end());
          Range tokens = sequence(i);
          ASSERT_EQ(ranges.front().begin, tokens.begin);
          ASSERT_EQ(ranges.back().end, tokens.end);
          for (size_t j = 1; j < ranges.size(); j++)
            ASSERT_EQ(ranges[j].begin, ranges[j - 1].end);
        }
  }

  const Problem &problem;
  const Plan &plan;
  std::vector<int64_t> offsets;
  std::map<std::pair<int, int>, std::vector<std::pair<const Item *, int64_t>>> stores;
  std::map<std::pair<int, int>, std::vector<const Item *>> hopped;
  std::map<Key, std::vector<Range>> outputs;
  std::map<Key, int> finals;
};

// ---- How long it takes

// Blocks that draw items as the kernel does, in the order in which they fall free. The makespan in full steps; none if
// an item waits for one that no block has drawn.
class Draw {
public:
  Draw(const Plan &plan, int blocks) : plan(plan), free(blocks, 0.0) {}

  std::optional<double> run() {
    size_t e = 0, l = 0;
    while (e < plan.early.size() || l < plan.late.size()) {
      auto block = std::min_element(free.begin(), free.end());
      bool late = l < plan.late.size() && (e == plan.early.size() ||
                                           (plan.late[l].tail >= plan.early[e].tail && isReady(plan.late[l], *block)));
      if (!runItem(late ? plan.late[l++] : plan.early[e++], *block))
        return std::nullopt;
    }
    return *std::max_element(free.begin(), free.end());
  }

private:
  // When rows of a slot were stored so often, the flag's way included.
  std::optional<double> stored(int slot, int row, int times) const {
    auto it = seen.find({slot, row});
    if (it == seen.end() || it->second.size() < static_cast<size_t>(times))
      return std::nullopt;
    return it->second[times - 1] + flagTime;
  }

  int rows(const Item &item) const { return item.hops ? 1 : (plan.shape.columns + 63) / 64; }

  // Calls `need` with all that an item waits for; its hops by number, -1 what it begins with.
  template <typename Need> void needs(const Item &item, Need need) const {
    if (item.from >= 0)
      for (int row = 0; row < rows(item); row++)
        need(-1, item.from, item.column / 64 + row, item.fromCount);
    for (int hop = 0; hop < item.hops; hop++) {
      need(hop, item.segment + hop, item.column / 64, 1);
      for (int column = 0; column < plan.shape.keyDim / 64; column++)
        need(hop, matrixBase + item.segment + hop, column, 1);
    }
  }

  bool isReady(const Item &item, double now) const {
    bool all = true;
    needs(item, [&](int, int slot, int row, int times) {
      std::optional<double> at = stored(slot, row, times);
      all &= at && *at <= now;
    });
    return all;
  }

  bool runItem(const Item &item, double &now) {
    bool possible = true;
    auto await = [&](int which) {
      needs(item, [&](int hop, int slot, int row, int times) {
        std::optional<double> at = stored(slot, row, times);
        if (hop == which)
          possible &= at.has_value(), now = std::max(now, at.value_or(0));
      });
    };
    await(-1);
    now += item.hops ? start / 2 : start;
    for (int hop = 0; hop < item.hops; hop++) {
      await(hop);
      now += hopTime;
      seen[{item.segment + hop, item.column / 64}].push_back(now);
    }
    int chunks = (item.end - item.begin + chunkTokens - 1) / chunkTokens;
    now += item.warm * stateStep + chunks - item.warm;
    if (item.to >= 0)
      for (int row = 0; row < rows(item); row++)
        seen[{item.to, item.column / 64 + row}].push_back(now);
    return possible;
  }

  const Plan &plan;
  std::vector<double> free;
  std::map<std::pair<int, int>, std::vector<double>> seen;
};

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
        Expected{"ragged_decay", ragged, 32, Decay, 90.0}, Expected{"1024x8_mix", repeat(8, 1024), 8, Mix, 15.4},
        Expected{"28672_4096_mix", {28672, 4096}, 64, Mix, 289.5},
        Expected{"8192x4_mix", repeat(4, 8192), 48, Mix, 191.8},
        Expected{"packed_mix", {0, 5000, 0, 0, 300, 9000, 0}, 32, Mix, 70.1},
        Expected{"4096x8_zero", repeat(8, 4096), 16, Zero, 64.4}, Expected{"1x131072_mix", {131072}, 8, Mix, 185.1},
        Expected{"128x40_decay", repeat(40, 128), 16, Decay, 12.1},
        Expected{"1x16384x4_decay", {16384}, 4, Decay, 13.2},
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

TEST(PlanKinds, FastWarmUpsAreShorter) {
  auto most = [](const Plan &plan) {
    Int warm = 0;
    for (const Item &item : plan.early)
      warm = std::max(warm, item.warm);
    return warm;
  };
  EXPECT_EQ(most(checked({{16384}, 8, Decay})), 6);
  EXPECT_EQ(most(checked({{16384}, 8, Decay, 132, Warm | Fast})), 4);
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
  EXPECT_EQ(checked({std::vector<int64_t>(3, 0), 2, Zero}).early.size(), 6u);
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
std::set<std::array<Int, 9>> cutsOf(const Plan &plan, Int sequence, Int begin) {
  std::set<std::array<Int, 9>> cuts;
  for (const std::vector<Item> *items : {&plan.early, &plan.late})
    for (const Item &item : *items)
      if (item.sequence == sequence)
        cuts.insert({item.begin - begin, item.end - begin, item.head, item.column, item.warm, item.hops,
                     item.from < 0 ? item.from : 0, item.to < 0 ? item.to : item.to / matrixBase,
                     item.valueHead == plan.shape.heads});
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
