// A plan that templates/plan.cu makes on the emulator, what its tables must hold to, and how long the work would take.
#pragma once
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

namespace gdn::emu::test {

using namespace gdn::work;

const char *const ptx =
#include GDN_PLAN_PTX
    ;

// In full steps: the costs that the planner is compiled with.
constexpr double stateStep = 2160.0 / 3600, start = 1500.0 / 3600, flagTime = 3000.0 / 3600, hopTime = 1900.0 / 3600;

// Mix: a quarter of the heads does not decay; Gap: the middle of a sequence; Grow, Wild, Lost: there the state grows,
// beyond any warm-up, or is no number.
enum Gates { Zero, Decay, Mix, Gap, Grow, Wild, Lost };

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
    if (gates == Grow && token >= 10000 && token < 10100)
      return 0.5f;
    if (token == 10000 && gates >= Wild)
      return gates == Wild ? 1e4f : std::nanf("");
    return decayed;
  }
};

struct Plan {
  std::string error;
  Shape shape;
  Layout at;
  Header header;
  std::vector<Item> early, late;
  std::vector<Int> guards; // rows of flags behind those of the slots, the first flag of each
  bool operator==(const Plan &other) const {
    auto equal = [](const std::vector<Item> &a, const std::vector<Item> &b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Item)) == 0);
    };
    return std::memcmp(&header, &other.header, sizeof header) == 0 && equal(early, other.early) &&
           equal(late, other.late);
  }
};

inline std::vector<int64_t> offsetsOf(const Problem &problem) {
  if (!problem.offsets.empty())
    return problem.offsets;
  std::vector<int64_t> offsets{0};
  for (int64_t length : problem.lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

// One launch, or more on one workspace, which holds anything at first; the last plan.
inline Plan makePlan(const Problem &problem, int launches = 1, int64_t tokens = -1, const Options &options = {}) {
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
  for (auto [first, count, items] : {std::tuple(header.earlyItems, header.early, &plan.early),
                                     std::tuple(header.lateItems, header.late, &plan.late)}) {
    int64_t begin = (first - plan.at.table) / static_cast<int64_t>(sizeof(Item));
    EXPECT_TRUE(first % sizeof(Item) == 0 && begin >= 0 && begin + count <= plan.at.items);
    auto *table = reinterpret_cast<Item *>(workspace.data() + first);
    items->assign(table, table + count);
  }
  EXPECT_TRUE(header.late == 0 || header.lateItems + header.late * sizeof(Item) <= header.earlyItems);
  EXPECT_EQ(header.earlyNext + header.lateNext, 0u);
  EXPECT_LE(header.slots, plan.at.slots);
  const Word *flags = reinterpret_cast<Word *>(workspace.data() + header.flags);
  for (int64_t i = 0; i < header.slots * flagWords; i++)
    EXPECT_EQ(flags[i], 0u);
  for (int64_t i = 0; i < plan.at.cutTiles; i++)
    plan.guards.push_back(static_cast<Int>(flags[(header.slots + i) * flagWords]));
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
    checkGuards();
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
      EXPECT_GE(item.to, matrix);
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

  // In place, what is stored while others may not have taken the state waits for them; they are drawn before it.
  void checkGuards() {
    struct Tile {
      std::vector<size_t> takes;
      size_t stores = 0;
      bool cold = false; // a run begins in zeros, which therefore waits for nothing
    };
    std::map<Key, Tile> tiles;
    for (size_t i = 0; i < plan.early.size(); i++) {
      const Item &item = plan.early[i];
      Tile &tile = tiles[{item.sequence, item.head, item.column}];
      bool stateOnly = item.warm * chunkTokens >= item.end - item.begin;
      tile.cold |= item.from == Zeros && !stateOnly;
      if (item.from == Caller)
        tile.takes.push_back(i);
      if (item.to == Caller)
        tile.stores = i;
    }
    for (auto &[key, tile] : tiles) {
      bool guarded = problem.flags & InPlace && tile.cold;
      Int row = guarded ? plan.early[tile.stores].guard : -1;
      for (size_t i : tile.takes) {
        EXPECT_EQ(plan.early[i].guard, row);
        EXPECT_TRUE(!guarded || i <= tile.stores);
      }
      if (guarded) {
        EXPECT_EQ(plan.guards.at(row - static_cast<Int>(plan.header.slots)), 1 - static_cast<Int>(tile.takes.size()));
      }
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

} // namespace gdn::emu::test
