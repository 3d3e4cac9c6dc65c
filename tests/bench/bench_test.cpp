// What the benchmark makes of stamps and times, on synthetic ones.
#include "tests/device/gpu.h"
#include "tools/bench/report.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace gdn;
using namespace gdn::bench;

namespace {

constexpr double rate = 1.75; // clocks a nanosecond
// The truth that stamps are made from.
constexpr int64_t full = 3500, state = 2800, start = 4200, flag = 4900, hop = 3100, plan = 40000;

// What the writer of a block's stamps knows.
struct Sm {
  std::vector<int64_t> stamps = std::vector<int64_t>(stampsOfBlock);
  int64_t clock, offset; // offset: of this SM's clock from the others'
  size_t row = 0;

  // A piece that begins `before` clocks before its first chunk, now.
  void add(int64_t first, int64_t before, int64_t chunks, int64_t stateOnly, int64_t hops, int64_t work,
           int64_t after) {
    int64_t *to = &stamps[std::min<size_t>(row++, GDN_PROFILE_ROWS - 1) * GDN_PROFILE_COLUMNS];
    auto timer = [](int64_t clock) { return 1000000 + int64_t(double(clock) / rate); };
    to[GDN_PROFILE_BEGIN_NS] = timer(first - before);
    to[GDN_PROFILE_BEGIN] = offset + first - before;
    to[GDN_PROFILE_FIRST_CHUNK] = offset + first;
    to[GDN_PROFILE_LAST_CHUNK] = offset + first + work;
    to[GDN_PROFILE_STORED] = offset + first + work + after;
    to[GDN_PROFILE_CHUNKS] = chunks;
    to[GDN_PROFILE_KIND] = stateOnly + hops * 65536;
    to[GDN_PROFILE_END_NS] = timer(first + work + after);
    clock = first + work + after;
  }
};

void append(std::vector<int64_t> &all, const Sm &sm) { all.insert(all.end(), sm.stamps.begin(), sm.stamps.end()); }

// Blocks that work through sequences of `chunks` each: `start` lies partly before and partly behind the chunks.
std::vector<Block> whole(int64_t chunks, int pieces, std::mt19937 &random, int64_t noise) {
  std::vector<int64_t> all;
  for (int block = 0; block < 8; ++block) {
    Sm sm{.clock = 0, .offset = block * 1000003};
    for (int i = 0; i < pieces; ++i) {
      int64_t moved = noise ? int64_t(random() % uint64_t(noise)) : 0;
      sm.add(sm.clock + start / 2, start / 2, chunks, 0, 0, chunks * full + moved, start - start / 2);
    }
    append(all, sm);
  }
  return decode(all);
}

// A root, 4 times N and M, hops of twice 64 rows, 5 dependents.
std::vector<Block> chain() {
  constexpr int64_t middle = 4, chunks = 32, rootEnd = 900 + chunks * full;
  std::vector<int64_t> all;
  auto add = [&](auto... values) {
    Sm sm{.clock = 0, .offset = int64_t(all.size()) * 977};
    sm.add(values...);
    append(all, sm);
  };
  add(900, 900, chunks, 0, 0, chunks * full, 300);
  for (int64_t i = 0; i < 2 * middle; ++i)
    add(800, 800, chunks, chunks, 0, chunks * state, 300);
  int64_t hops = rootEnd + flag;
  add(hops, hops - 100, 0, 0, middle, middle * hop, 0);
  add(1000, 900, 0, 0, middle, hops + middle * hop - 1000, 0); // by the other copy
  for (int64_t i = 0; i <= middle; ++i) {
    int64_t first = hops + i * hop + (i ? flag : 0);
    add(first, first - 100, chunks, 0, 0, chunks * full, 300);
  }
  add(0, 0, 0, 0, 0, 0, 0); // nothing but its begin and end
  return decode(all);
}

std::vector<Round> rounds(int count, int64_t noise) {
  std::mt19937 random(1);
  std::vector<Round> all(static_cast<size_t>(count));
  for (Round &round : all) {
    round.longPieces = whole(128, 2, random, 0);
    round.shortPieces = whole(8, 20, random, 0);
    round.chains = {chain(), chain()};
    round.plan = plan;
    if (noise && &round == &all.back())
      round.shortPieces = whole(8, 20, random, noise);
  }
  return all;
}

Case someCase() {
  Case c = {};
  c.keyHeads = 16;
  c.valueHeads = 64;
  c.keyDim = c.valueDim = 128;
  c.io = ElementType::BF16;
  c.label = "4x8192";
  c.lengths = {8192, 8192, 8192, 8192};
  return c;
}

Measurement someMeasurement() {
  Measurement m;
  m.milliseconds = 0.60471;
  m.split = 1;
  m.clocks = Clocks{3994.4, 1786.2};
  return m;
}

TEST(Stamps, RowsThatWereNotWrittenAreNoPieces) {
  std::mt19937 random(1);
  std::vector<Block> blocks = whole(8, 3, random, 0);
  ASSERT_EQ(blocks.size(), 8u);
  EXPECT_EQ(blocks[0].size(), 3u);
  EXPECT_TRUE(decode(std::vector<int64_t>(3 * stampsOfBlock)).empty());
}

TEST(Stamps, ClocksAreThoseOfTheLongestPiece) {
  Sm sm{.clock = 0, .offset = 5};
  sm.add(100, 100, 2, 0, 0, 2 * 9000, 10);
  sm.add(50000, 100, 30, 0, 0, 30 * 4000, 10);
  std::optional<Clocks> clocks = clocksOf(decode(sm.stamps));
  ASSERT_TRUE(clocks);
  EXPECT_DOUBLE_EQ(clocks->perChunk, 4000);
  EXPECT_NEAR(clocks->megahertz, 1000 * rate, 1);
  EXPECT_FALSE(clocksOf(std::vector<Block>()));
}

TEST(Stamps, PhasesFollowEachOther) {
  // What ends a phase of a chunk begins the next of that role: together they are the whole chunk.
  for (size_t i = 1; i < phases.size(); ++i)
    if (std::string(phases[i].role) == phases[i - 1].role && phases[i].ofChunk == phases[i - 1].ofChunk) {
      EXPECT_EQ(phases[i].from, phases[i - 1].to) << phases[i].name;
    }
  Sm sm{.clock = 0, .offset = 0};
  sm.add(1000, 400, 2, 0, 0, 8000, 10);
  std::vector<Block> blocks = decode(sm.stamps);
  EXPECT_EQ(clocksOf(phases[0], blocks), std::vector<double>{400});
  for (const Phase &phase : phases)
    EXPECT_EQ(clocksOf(phase, blocks).empty(), phase.ofChunk) << phase.name; // no chunk was stamped
}

TEST(Calibrate, FindsTheCostsThatStampsWereMadeFrom) {
  std::vector<Cost> costs = costsOf(rounds(5, 0));
  ASSERT_EQ(costs.size(), 6u);
  const std::pair<const char *, int64_t> truth[] = {{"full", full}, {"state", state}, {"start", start},
                                                    {"flag", flag}, {"hop", hop},     {"plan", plan}};
  for (size_t i = 0; i < costs.size(); ++i) {
    EXPECT_STREQ(costs[i].name, truth[i].first);
    EXPECT_NEAR(costs[i].clocks, double(truth[i].second), 4) << costs[i].name; // the timer counts whole nanoseconds
    EXPECT_LT(costs[i].spread, 1e-3) << costs[i].name;
  }
  EXPECT_EQ(noisiest(costs, 0.05), nullptr);
}

TEST(Calibrate, OneNoisyRoundIsTooMuch) {
  std::vector<Cost> costs = costsOf(rounds(5, 2 * start));
  const Cost *worst = noisiest(costs, 0.05);
  ASSERT_NE(worst, nullptr);
  EXPECT_STREQ(worst->name, "start");
  EXPECT_GT(worst->spread, 0.05);
  EXPECT_EQ(noisiest(costs, worst->spread + 0.01), nullptr);
}

TEST(Calibrate, SaysWhichStampsAreNotThere) {
  auto message = [](std::vector<Round> rounds) -> std::string {
    try {
      costsOf(rounds);
    } catch (const gpu::Error &error) {
      return error.what();
    }
    return "";
  };
  std::vector<Round> some = rounds(1, 0);
  some[0].shortPieces.clear();
  EXPECT_EQ(message(some), "expected stamps of pieces, got none");
  some = rounds(1, 0);
  some[0].shortPieces = some[0].longPieces;
  EXPECT_EQ(message(some), "expected stamps of pieces of two lengths, got none");
  some = rounds(1, 0);
  some[0].chains[1] = some[0].longPieces;
  EXPECT_EQ(message(some), "expected stamps of chunks for the state alone, got none");
}

TEST(Calibrate, WritesWhatThePlannersCostsAreReadFrom) {
  EXPECT_EQ(
      costsFile({{"full", "a chunk", 3500.4, 0.012}, {"hop", "of 64 rows", 3100, 0}}, "NVIDIA H200", "2026-11-30", 3),
      "# What the parts of a forward cost on NVIDIA H200, by which the planner (templates/plan.cu) cuts work. Only "
      "their ratios count.\n"
      "#   full   a chunk\n"
      "#   hop    of 64 rows\n"
      "# How: gdn-bench calibrate, medians of 3 rounds, on 2026-11-30.\n"
      "name,value,unit,how\n"
      "full,3500,clk,measured within 1.2 %\n"
      "hop,3100,clk,measured within 0.0 %\n");
}

TEST(Report, RowsHaveTheColumnsOfResults) {
  const Origin origin{"2026-11-30", "NVIDIA H200", "0.1.0+abc", 13000};
  EXPECT_EQ(csvRow(origin, GDN_CUT_AUTO | GDN_KEYS_NORMALISED, someCase(), someMeasurement()),
            "2026-11-30,NVIDIA H200,1786,gdnc,0.1.0+abc,forward,16,64,4x8192,0.6047,3994\n");
  Measurement unstamped = someMeasurement();
  unstamped.clocks.reset();
  std::string row = csvRow(origin, GDN_CUT_OFF, someCase(), unstamped), head = csvHead;
  EXPECT_EQ(row, "2026-11-30,NVIDIA H200,,gdnc,0.1.0+abc,forward_uncut,16,64,4x8192,0.6047,\n");
  EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(head.begin(), head.end(), ','));
}

TEST(Report, WhatIsNotTheDefaultHasANameOfItsOwn) {
  Case c = someCase();
  EXPECT_EQ(operation(GDN_CUT_AUTO | GDN_KEYS_NORMALISED, c), "forward");
  EXPECT_EQ(operation(GDN_CUT_FAST, c), "forward_fast");
  EXPECT_EQ(operation(GDN_CUT_AUTO | GDN_CUT_INVARIANT, c), "forward_invariant");
  c.allDecay = true;
  EXPECT_EQ(operation(GDN_CUT_EXACT, c), "forward_exact_all_decay");
  c.rawGates = c.normalise = true;
  EXPECT_EQ(operation(GDN_CUT_AUTO, c), "forward_raw_gates_l2norm");
}

TEST(Report, JsonSaysWhatWasMeasuredAndWhatWasNot) {
  Measurement m = someMeasurement();
  nlohmann::json row = toJson(GDN_CUT_AUTO, someCase(), m);
  EXPECT_EQ(row["op"], "forward");
  EXPECT_EQ(row["lengths"], "4x8192");
  EXPECT_NEAR(row["of_floor"], 2560 / 3994.4, 1e-9);
  EXPECT_TRUE(row["error_o"].is_null());
  m.clocks.reset();
  EXPECT_TRUE(toJson(GDN_CUT_AUTO, someCase(), m)["clocks_per_chunk"].is_null());
}

TEST(Report, AProfileShowsKernelsAndThePhasesThatWereStamped) {
  std::mt19937 random(1);
  Profile profile{0.6, 0.005, 0.002, 0.593, whole(8, 3, random, 0)};
  nlohmann::json row = toJson(GDN_CUT_AUTO, someCase(), profile);
  EXPECT_EQ(row["kernels"]["plan"], 0.002);
  ASSERT_EQ(row["phases"].size(), 3u);
  EXPECT_EQ(row["phases"][1]["phase"], "hops and chunks");
  EXPECT_EQ(row["phases"][1]["clocks"], 8 * full);
  EXPECT_EQ(row["phases"][1]["samples"], 24);
  std::string table = text(someCase(), profile);
  EXPECT_NE(table.find("plan              0.0020 ms    0.3 %\n"), std::string::npos) << table;
  EXPECT_NE(table.find("state stored"), std::string::npos) << table;
}

} // namespace
