#include "tools/bench/stamps.h"
#include <algorithm>
#include <cstring>

namespace gdn::bench {

namespace {

constexpr Phase table[] = {
    {"chain", "state of the piece there", GDN_PROFILE_BEGIN, GDN_PROFILE_FIRST_CHUNK, false},
    {"chain", "hops and chunks", GDN_PROFILE_FIRST_CHUNK, GDN_PROFILE_LAST_CHUNK, false},
    {"chain", "state stored", GDN_PROFILE_LAST_CHUNK, GDN_PROFILE_STORED, false},
    {"aux", "K and Q there", GDN_PROFILE_AUX_BEGIN, GDN_PROFILE_AUX_KQ, true},
    {"aux", "K K^T", GDN_PROFILE_AUX_KQ, GDN_PROFILE_AUX_KK, true},
    {"aux", "diagonal blocks inverted", GDN_PROFILE_AUX_KK, GDN_PROFILE_AUX_SOLVED, true},
    {"aux", "T", GDN_PROFILE_AUX_SOLVED, GDN_PROFILE_AUX_T, true},
    {"aux", "Q K^T", GDN_PROFILE_AUX_T, GDN_PROFILE_AUX_QK, true},
    {"aux", "P", GDN_PROFILE_AUX_QK, GDN_PROFILE_AUX_P, true},
    {"chain", "K S and Q S", GDN_PROFILE_STATE_BEGIN, GDN_PROFILE_STATE_KS, true},
    {"chain", "W, and T there", GDN_PROFILE_STATE_KS, GDN_PROFILE_STATE_W, true},
    {"chain", "U", GDN_PROFILE_STATE_W, GDN_PROFILE_STATE_U, true},
    {"chain", "P there", GDN_PROFILE_STATE_U, GDN_PROFILE_STATE_P, true},
    {"chain", "new state", GDN_PROFILE_STATE_P, GDN_PROFILE_STATE_S, true},
};

} // namespace

const std::span<const Phase> phases = table;

double Piece::clocksANanosecond() const {
  double time = clocks(GDN_PROFILE_BEGIN_NS, GDN_PROFILE_END_NS);
  return time > 0 ? clocks(GDN_PROFILE_BEGIN, GDN_PROFILE_STORED) / time : 0;
}

double Piece::nanoseconds(gdn_profile_column column) const {
  double rate = clocksANanosecond(), after = clocks(GDN_PROFILE_BEGIN, column);
  return double(stamps[GDN_PROFILE_BEGIN_NS]) + (rate > 0 ? after / rate : 0);
}

std::vector<Block> decode(std::span<const int64_t> stamps) {
  std::vector<Block> blocks;
  for (; stamps.size() >= stampsOfBlock; stamps = stamps.subspan(stampsOfBlock)) {
    Block block;
    for (size_t row = 0; row < GDN_PROFILE_ROWS; ++row) {
      Piece piece;
      std::memcpy(piece.stamps, &stamps[row * GDN_PROFILE_COLUMNS], sizeof piece.stamps);
      if (piece[GDN_PROFILE_END_NS])
        block.push_back(piece);
    }
    if (!block.empty())
      blocks.push_back(std::move(block));
  }
  return blocks;
}

double span(const std::vector<Block> &blocks) {
  int64_t first = INT64_MAX, last = 0;
  for (const Block &block : blocks)
    for (const Piece &piece : block) {
      first = std::min(first, piece[GDN_PROFILE_BEGIN_NS]);
      last = std::max(last, piece[GDN_PROFILE_END_NS]);
    }
  return last > first ? double(last - first) : 0;
}

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::optional<Clocks> clocksOf(const std::vector<Block> &blocks) {
  std::vector<double> perChunk, megahertz;
  for (const Block &block : blocks) {
    const Piece &longest = *std::max_element(block.begin(), block.end(),
                                             [](const Piece &a, const Piece &b) { return a.chunks() < b.chunks(); });
    if (longest.chunks() <= 0 || longest.hopsAndChunks() <= 0)
      continue;
    perChunk.push_back(longest.hopsAndChunks() / double(longest.chunks()));
    if (double rate = longest.clocksANanosecond(); rate > 0)
      megahertz.push_back(1e3 * rate);
  }
  if (perChunk.empty() || megahertz.empty())
    return std::nullopt;
  return Clocks{median(perChunk), median(megahertz)};
}

std::vector<double> clocksOf(const Phase &phase, const std::vector<Block> &blocks) {
  std::vector<double> clocks;
  for (const Block &block : blocks)
    for (const Piece &piece : block)
      if (piece[phase.from] && piece[phase.to])
        clocks.push_back(piece.clocks(phase.from, phase.to));
  return clocks;
}

} // namespace gdn::bench
