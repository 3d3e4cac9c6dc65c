// What the profile variant stamps, decoded: all that knows how gdn.h lays its rows out.
#pragma once
#include "gdn/gdn.h"
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gdn::bench {

// One piece of work of a block.
struct Piece {
  int64_t stamps[GDN_PROFILE_COLUMNS];

  int64_t operator[](gdn_profile_column column) const { return stamps[column]; }
  int64_t chunks() const { return stamps[GDN_PROFILE_CHUNKS]; }
  int64_t stateOnly() const { return stamps[GDN_PROFILE_KIND] & 0xffff; } // of the chunks
  int64_t hops() const { return stamps[GDN_PROFILE_KIND] >> 16; }
  double clocks(gdn_profile_column from, gdn_profile_column to) const { return double(stamps[to] - stamps[from]); }
  double hopsAndChunks() const { return clocks(GDN_PROFILE_FIRST_CHUNK, GDN_PROFILE_LAST_CHUNK); } // clocks
  double clocksANanosecond() const;
  double nanoseconds(gdn_profile_column column) const; // of the GPU's timer, at a stamp of the SM's clock
};

// The pieces of a block in order, those whose rows were written: at most GDN_PROFILE_ROWS, of which the last is the
// block's last.
using Block = std::vector<Piece>;

constexpr size_t stampsOfBlock = size_t(GDN_PROFILE_ROWS) * GDN_PROFILE_COLUMNS;
// Of [SMs, rows, columns], zero where nothing was written. Blocks that had no piece are left out.
std::vector<Block> decode(std::span<const int64_t> stamps);

// Nanoseconds from the first piece's beginning to the last one's end.
double span(const std::vector<Block> &blocks);

// 0 for no values.
double median(std::vector<double> values);

// Medians over the blocks, of the longest piece of each.
struct Clocks {
  double perChunk, megahertz;
};
std::optional<Clocks> clocksOf(const std::vector<Block> &blocks);

// From a stamp to the next one of a role: an item's, or those of a chunk of its.
struct Phase {
  const char *role, *name;
  gdn_profile_column from, to;
  bool ofChunk;
};
extern const std::span<const Phase> phases;

// Clocks of a phase in each piece that has stamped it.
std::vector<double> clocksOf(const Phase &phase, const std::vector<Block> &blocks);

} // namespace gdn::bench
