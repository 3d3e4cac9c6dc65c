// How a call's work is cut: the contract between the planning kernel (templates/plan.cu), which fills the tables, the
// kernels that draw from them, and the host, which gives the workspace they lie in. Plain C++ without a library: NVRTC
// compiles it too.
//
// A *tile* is one V block of one v-head of one sequence. It is one item, or it is cut along its tokens into items that
// hand the state on through memory. In order, an item
//   1. takes a state: the caller's initial one, zeros, the identity, or that of a slot, once another item has stored
//   it;
//   2. makes `hops`: S <- M S + N, where M is matrix `segment` + i and N is slot `segment` + i, which then holds the
//   result;
//   3. runs `warm` chunks for the state alone: nothing of O is written;
//   4. runs the rest of its chunks;
//   5. stores the state: the caller's final one, a slot, a matrix, or nothing.
// The state of a sequence after a segment is M S + N, S the state before it: N comes of the segment's chunks from
// zeros, M from the identity and no values: what starts from Identity does not read V into its state.
#pragma once

#ifdef __CUDACC__
#define GDN_BOTH __host__ __device__
#else
#define GDN_BOTH
#endif

namespace gdn::work {

using Int = int;
using Word = unsigned;

// Where an item's state comes from or goes to, where it is not a slot.
enum Place : Int {
  Caller = -1,   // the caller's initial or final state
  Zeros = -2,    // as a source
  Identity = -3, // as a source
  Nowhere = -4,  // as a destination
};

struct alignas(16) Item {
  Int begin, end; // tokens of the packed axis; `warm` chunks count from `begin`
  Int sequence;
  Int head;   // v-head
  Int column; // first V column
  Int warm;   // chunks
  Int from;   // a slot, or a Place
  Int hops;
  Int segment;   // first slot and matrix of the hops
  Int fromCount; // of a slot: what its flags reach before it may be read: 1, or 2 where it holds N first and a state
                 // then
  Int to;        // a slot, or matrix m as matrixBase + m, or a Place
  // -1, or a row of flags behind those of the slots: items that take the caller's state raise it, and who stores that
  // of the tile where it lay waits until it reaches 1.
  Int guard;
  Int tail; // work that hangs on the item, itself included, in sixteenths of a chunk
  Int last; // 0; -1 ends the work
  Int bin;  // the planner's
  Int unused;
};
static_assert(sizeof(Item) == 64, "a kernel reads it in four vectors");

// An item that a block has drawn, in its shared memory.
struct alignas(16) Drawn {
  Item item;
  Int source, sink; // rows of the caller's states: the sequence's number, or what indices say
  // Checkpoints of the sequence, of a kernel that stores them: chunks before the item, chunks from one to the next, how
  // many of these are not asked for, the first's row, and how many follow from there.
  Int before, every, skips, row, rows;
  Int keyHead; // of the item's v-head
};
static_assert(sizeof(Drawn) == 96);

inline constexpr Int matrixBase = 1 << 20;
inline constexpr Int maxHops = 32;
// A flag for each 64 V rows of slot i, then for each 64 rows of matrix i: V <= 256.
inline constexpr Int flagRows = 4, flagWords = 2 * flagRows;

enum Mode : Word {
  Natural = 0,
  Planned = 1
}; // Natural: item i is tile i, in the order of memory; the tables are not read

// At the start of the workspace. The offsets are in bytes from there.
struct alignas(16) Header {
  Word mode;
  Word early, late;           // items in each queue
  Word slots;                 // that the plan uses
  Word earlyItems, lateItems; // offsets of the tables
  Word flags;                 // offset of Word [slots][flagWords]: how often these rows were stored
  Word columns;               // of a tile: a kernel whose tiles have others has nothing to do
  Word earlyNext, lateNext;   // tickets, drawn by atomic operations
  Word more[6];
};
static_assert(sizeof(Header) == 64, "a kernel reads what does not change in two vectors");

// Of what the planner's blocks tell each other behind the header: how many are through, and after how many chunks the
// state of each head is gone.
inline constexpr Int arrivalsPlace = 256, warmPlace = 512;

// What a plan may do.
enum Flags : Word {
  Warm = 1,      // warm-ups: |k| <= 1 and beta <= 2, so that what decays is gone
  Fast = 2,      // what decays to e^-10 is gone, not only what decays to e^-16.7 < 2^-24
  Invariant = 4, // a tile is cut at multiples of cutLength and nowhere else, whatever else the call holds
  InPlace = 8,   // states are stored where they were: pieces that take none must not be faster than those that do
  Halves = 16,   // a kernel with half the columns a tile follows, too: work that leavesHalves may be left to it, uncut
};

inline constexpr Int chunkTokens = 64;
inline constexpr Int cutLength = 32;   // chunks
inline constexpr Int longestWarm = 32; // chunks; heads that decay more slowly are cut by transition

// What a plan is made for, as far as the host knows it.
struct Shape {
  Int sequences, tokens, heads;  // N, T, HV
  Int keyDim, valueDim, columns; // K, V, V columns of a tile
  Int blocks;                    // that draw items, P
  Word flags;

  GDN_BOTH constexpr long long parts() const { return valueDim / columns; } // tiles of a v-head
  GDN_BOTH constexpr long long tiles() const { return parts() * sequences * heads; }
  GDN_BOTH constexpr bool hops() const { return keyDim == valueDim && (keyDim == 64 || keyDim == 128); }
  GDN_BOTH constexpr bool invariant() const { return flags & Invariant; }
};

// The planner reads gates by units of 8 heads and a window of boundaries between chunks, of which the window's chunks
// and 31 before are summed: the smaller it is the sooner it is done, as long as there is a block for each unit. But the
// block of a single unit waits for no other.
inline constexpr Int unitHeads = 8, leastWindow = 3, mostWindow = 5;   // powers of two
GDN_BOTH constexpr long long unitsOf(const Shape &shape, Int window) { // about: sequences begin units of their own
  return (((shape.tokens - 1) / chunkTokens >> window) + 1ll) * ((shape.heads + unitHeads - 1) / unitHeads);
}
GDN_BOTH constexpr Int windowOf(const Shape &shape) {
  Int window = unitsOf(shape, mostWindow) > 1 ? leastWindow : mostWindow;
  while (window < mostWindow && unitsOf(shape, window) > shape.blocks)
    ++window;
  return window;
}

// Beyond so many tiles none is long enough to be worth a table of all. Not in invariant mode, whose cuts are no choice.
GDN_BOTH constexpr long long mostTiles(const Shape &shape) { return 512ll * shape.blocks; }

// Whether a plan could cut anything, by what the host knows: of a dense batch the `length` of its sequences, else 0.
// Nothing is cut of many short tiles, nor where the blocks are as good as full anyway: within 4 % and a chunk and a
// half.
GDN_BOTH constexpr bool needsPlan(const Shape &shape, Int length) {
  long long tiles = shape.tiles(), chunks = (length + chunkTokens - 1) / chunkTokens, blocks = shape.blocks;
  if (shape.invariant() && (length == 0 || chunks > cutLength))
    return true;
  if (length == 0)
    return tiles <= mostTiles(shape);
  long long waves = (tiles + blocks - 1) / blocks;
  return tiles < 16 * blocks && 100 * waves * chunks > 104 * tiles * chunks / blocks + 150;
}

// Whether work is better left uncut in tiles of half the columns, that take two thirds of the time each, where those
// still run all at once: by the chunks of the longest sequence and of all. By measurement: against what a plan takes,
// the pieces' beginnings and, where all blocks have their share, what cuts cost on the average of gates.
GDN_BOTH constexpr bool leavesHalves(const Shape &shape, long long longest, long long chunks) {
  long long tiles = 1ll * shape.sequences * shape.heads, blocks = shape.blocks;
  return 2 * tiles <= blocks && 68 * longest * blocks <= 1700 * blocks + 135 * chunks * shape.heads;
}

// Where everything lies in the workspace: offsets in bytes. What the host knows bounds it:
//   - tiles are cut by transition or warm-up where they are longer than the blocks' mean, so fewer than P, and by
//     hand-over where they are longer than a sixteenth of it, so fewer than 16 P;
//   - 2 P middle segments, each of 256 tokens or more on the average, keep the blocks busy; roots and hand-overs take
//     slots of their own, 3 P of them, one for 128 tokens at most;
//   - in invariant mode a tile is cut every cutLength chunks.
// A deadline whose plan would need more is not tried, or makes fewer hand-overs.
struct Layout {
  long long items;    // capacity of the tables together
  long long cutTiles; // that are not whole, and the items that they are cut into
  long long cutItems;
  long long longTiles;
  long long slots, matrices;           // the first slots belong to the matrices
  long long table, flags, longs, cuts; // the planner's, which each plan rewrites
  // The kernels': float [slots][V][K]; twice io [matrices][K][K].
  long long slotValues, high, low;
  long long bytes;

  GDN_BOTH constexpr bool fits() const { return slots <= matrixBase && matrices <= matrixBase && longs < 1ll << 32; }
};

inline constexpr Int tileBytes = 64, longBytes = 16; // of the planner's records

GDN_BOTH constexpr Layout layout(const Shape &shape, Int ioBytes) {
  auto least = [](long long a, long long b) { return a < b ? a : b; };
  long long blocks = shape.blocks, heads = shape.heads, parts = shape.parts(), tokens = shape.tokens;
  bool invariant = shape.invariant();
  long long cuts = invariant ? tokens / (cutLength * chunkTokens) * heads : 0;
  Layout l{};
  l.longTiles = invariant ? cuts : blocks;
  l.cutTiles = least(shape.tiles(), 17 * blocks + cuts * parts);
  l.cutItems = l.cutTiles + 24 * blocks + cuts * (3 * parts + flagRows);
  l.items = (invariant ? shape.tiles() : least(shape.tiles(), mostTiles(shape))) + l.cutItems;
  l.matrices = !shape.hops() ? 0 : invariant ? cuts : least(2 * blocks, tokens / 256 * heads);
  l.slots = l.matrices + cuts + least(3 * blocks, (tokens + 127) / 128 * heads * parts);
  long long end = warmPlace;
  auto take = [&](long long bytes) {
    long long at = end;
    end = (end + bytes + 255) & ~255ll;
    return at;
  };
  take(shape.flags & Warm ? (tokens / chunkTokens + 1) * heads : 0);
  l.table = take(l.items * sizeof(Item));
  l.flags = take((l.slots + l.cutTiles) * flagWords * 4);  // the latter for guards
  l.longs = take(invariant ? l.longTiles * longBytes : 0); // else they lie in shared memory
  l.cuts = take(l.cutTiles * tileBytes);
  l.slotValues = take(l.slots * shape.valueDim * shape.keyDim * 4);
  l.high = take(l.matrices * shape.keyDim * shape.keyDim * ioBytes);
  l.low = take(l.matrices * shape.keyDim * shape.keyDim * ioBytes);
  l.bytes = end;
  return l;
}

} // namespace gdn::work
