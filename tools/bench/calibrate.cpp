#include "tools/bench/calibrate.h"
#include "tests/device/gpu.h"
#include <algorithm>
#include <cmath>

namespace gdn::bench {

namespace {

[[noreturn]] void lacks(const char *what) {
  throw gpu::Error(std::string("expected stamps of ") + what + ", got none");
}

// From a piece's beginning until its state is stored.
struct Period {
  double clocks, chunks;
};
Period periodOf(const std::vector<Block> &blocks) {
  std::vector<double> clocks, chunks;
  for (const Block &block : blocks)
    for (const Piece &piece : block) {
      clocks.push_back(piece.clocks(GDN_PROFILE_BEGIN, GDN_PROFILE_STORED));
      chunks.push_back(double(piece.chunks()));
    }
  if (clocks.empty())
    lacks("pieces");
  return {median(clocks), median(chunks)};
}

// The pieces of a sequence that is cut by transition.
struct Chain {
  std::vector<double> stateOnly; // clocks of a chunk
  std::vector<Piece> hops;
  std::vector<Piece> whole; // the root, then the dependents
};
Chain chainOf(const std::vector<Block> &blocks) {
  Chain chain;
  for (const Block &block : blocks)
    for (const Piece &piece : block) {
      if (piece.hops() && !piece.chunks())
        chain.hops.push_back(piece);
      else if (piece.chunks() && piece.stateOnly() == piece.chunks())
        chain.stateOnly.push_back(piece.hopsAndChunks() / double(piece.chunks()));
      else if (piece.chunks() && !piece.stateOnly())
        chain.whole.push_back(piece);
    }
  if (chain.stateOnly.empty())
    lacks("chunks for the state alone");
  if (chain.hops.empty())
    lacks("hops");
  if (chain.whole.size() < 2)
    lacks("pieces behind hops");
  auto begins = [](const Piece &piece) { return piece.nanoseconds(GDN_PROFILE_FIRST_CHUNK); };
  std::sort(chain.whole.begin(), chain.whole.end(),
            [&](const Piece &a, const Piece &b) { return begins(a) < begins(b); });
  return chain;
}

// Of 64 rows. The blocks that hop for rows of another copy than the one that stamps pass the time of the root in it.
double hopOf(const Chain &chain) {
  double least = HUGE_VAL;
  for (const Piece &piece : chain.hops)
    least = std::min(least, piece.hopsAndChunks() / double(piece.hops()));
  return least;
}

// The first dependent begins once the root's state is stored and loaded.
double flagOf(const Chain &chain) {
  const Piece &root = chain.whole[0], &dependent = chain.whole[1];
  return (dependent.nanoseconds(GDN_PROFILE_FIRST_CHUNK) - root.nanoseconds(GDN_PROFILE_LAST_CHUNK)) *
         root.clocksANanosecond();
}

} // namespace

std::vector<Cost> costsOf(const std::vector<Round> &rounds) {
  Cost costs[] = {{"full", "a chunk of an item with 128 V columns"},
                  {"state", "of one that makes the state alone"},
                  {"start", "of an item: its first loads, and the store of its state"},
                  {"flag", "a state of 64 KB from one item to another through memory"},
                  {"hop", "S <- M S + N of 64 rows"},
                  {"plan", "what the planning kernel takes"}};
  std::vector<double> values[std::size(costs)];
  for (const Round &round : rounds) {
    Period large = periodOf(round.longPieces), small = periodOf(round.shortPieces);
    if (large.chunks <= small.chunks)
      lacks("pieces of two lengths");
    std::vector<double> stateOnly, hops, flags;
    for (const std::vector<Block> &blocks : round.chains) {
      Chain chain = chainOf(blocks);
      stateOnly.insert(stateOnly.end(), chain.stateOnly.begin(), chain.stateOnly.end());
      hops.push_back(hopOf(chain));
      flags.push_back(flagOf(chain));
    }
    double full = (large.clocks - small.clocks) / (large.chunks - small.chunks),
           start = small.clocks - small.chunks * full;
    double clocks[] = {full, median(stateOnly), start, median(flags), median(hops), round.plan};
    for (size_t i = 0; i < std::size(costs); ++i)
      values[i].push_back(clocks[i]);
  }
  for (size_t i = 0; i < std::size(costs); ++i) {
    costs[i].clocks = median(values[i]);
    if (costs[i].clocks < 1)
      lacks(costs[i].name);
    auto [low, high] = std::minmax_element(values[i].begin(), values[i].end());
    costs[i].spread = (*high - *low) / costs[i].clocks;
  }
  return {std::begin(costs), std::end(costs)};
}

const Cost *noisiest(const std::vector<Cost> &costs, double limit) {
  auto most =
      std::max_element(costs.begin(), costs.end(), [](const Cost &a, const Cost &b) { return a.spread < b.spread; });
  return most != costs.end() && most->spread > limit ? &*most : nullptr;
}

std::string costsFile(const std::vector<Cost> &costs, const std::string &gpu, const std::string &date, size_t rounds) {
  std::string text = "# What the parts of a forward cost on " + gpu +
                     ", by which the planner (templates/plan.cu) cuts work. Only their ratios count.\n";
  char line[256];
  for (const Cost &cost : costs) {
    std::snprintf(line, sizeof line, "#   %-6s %s\n", cost.name, cost.meaning);
    text += line;
  }
  text += "# How: gdn-bench calibrate, medians of " + std::to_string(rounds) + " rounds, on " + date +
          ".\nname,value,unit,how\n";
  for (const Cost &cost : costs) {
    std::snprintf(line, sizeof line, "%s,%.0f,clk,measured within %.1f %%\n", cost.name, cost.clocks,
                  100 * cost.spread);
    text += line;
  }
  return text;
}

} // namespace gdn::bench
