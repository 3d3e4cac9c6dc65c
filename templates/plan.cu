// Cuts a call's work into items and queues them: format/work.h says what the tables hold.
//
// The plan is one number, the deadline m, in full steps (a step: one chunk of a tile). Sequences are measured, gates of
// those that might be cut are read (plan/gates.h), a deadline a thread is tried against an estimate of the makespan
// (plan/deadline.h), and every cut follows in closed form, tile by tile (plan/cuts.h):
//   - a tile longer than m is cut by warm-up where its gates decay soon enough, else by transition: a root, middle
//     segments of which M and N are made at once, and dependents, as long as their hops leave them;
//   - all other tiles that are not short, and the runs between warm-ups, lie on a line as long as the blocks' time end
//     to end, and are handed over where a block's share ends.
// Every block measures; if gates are read, all share that, and the last one to be through makes the plan, else block 0.
// Nothing depends on the order of blocks or threads.
//
// GDN_FULL, GDN_STATE, GDN_START, GDN_FLAG, GDN_HOP, GDN_PLAN: clocks of a full step, of one for the state alone, of an
// item's start, of a flag with its 64 KB, of a hop of 64 rows, of this kernel.
#include "plan/items.h"

namespace {

// Shared memory: what is needed until tiles are cut, and then what a sort needs.
constexpr Int bins = 256, earlyBins = bins / 2, fewCuts = 112, keptOfWarp = 64;
union Memory {
  struct {
    LongSequences found;
    UnitSums ofUnit;
    LongTile tiles[mostLong];
    Length lengths[mostLong];
    Runs placed[mostLong];
    Kinds kinds;
  };
  struct {
    Int counts[warps][bins];
    Item items[warps][keptOfWarp];
  };
};

// Lists the tiles with more than `longest` chunks, and sums the others. `isListed`: their sequences already are.
__device__ Tiles listLong(const Call &call, const Most &lengths, Int longest, bool isListed, Memory &memory) {
  const bool invariant = call.shape.invariant(), warm = call.shape.flags & Warm;
  LongTile *tiles = invariant ? call.place<LongTile>(call.at.longs) : memory.tiles;
  const Int heads = call.shape.heads, capacity = invariant ? Int(call.at.longTiles) : quotient(mostLong, call.parts);
  Int count = 0;
  Most rest{lengths.sum, 0, 0};
#pragma unroll 1
  for (Int base = 0; base < call.shape.sequences; base += readers) {
    if (!isListed)
      listLong(call.loadOrNone(base + threadIdx.x), longest, false, memory.found);
    const Most found = memory.found.all;
    rest.sum -= found.sum;
    rest.most = max(rest.most, found.most);
#pragma unroll 1
    for (Int i = readers - 1 - threadIdx.x; i < found.count * heads && count + i < capacity; i += readers) {
      const Int at = quotient(i, heads), number = memory.found.numbers[at];
      tiles[count + i] = {base + number, i - at * heads, memory.found.spans[number].chunks(),
                          warm ? 0 : longestWarm + 1};
    }
    count += found.count * heads;
  }
  const Int placed = min(count, capacity);
  const float steps = float(rest.sum) * call.parts * heads + start * (call.tiles - float(count) * call.parts);
  return {tiles, placed, steps, rest.most, longest, placed == count};
}

// The longest warm-up of each of them, where it might be cut.
__device__ void findWarm(const Call &call, const Tiles &tiles) {
  const bool invariant = call.shape.invariant();
  const Int step = invariant ? cutLength : 1 << windowOf(call.shape), first = invariant ? step : 1;
  // A tile's threads: as many as fit of a power of two of tiles.
  const Int bits = min(32 - __clz(tiles.count - 1), 31 - __clz(threads)), mine = threadIdx.x >> bits,
            each = threads >> bits;
#pragma unroll 1
  for (Int at = threadIdx.x & ((1 << bits) - 1); at < tiles.count; at += threads) {
    const LongTile tile = tiles.tiles[at];
    const Int begin = call.span(tile.sequence).begin;
    Int most = 0;
#pragma unroll 4
    for (Int boundary = first + mine * step; boundary < tile.chunks; boundary += each * step)
      most = max(most, Int(__ldcg(warmAt(call, begin, boundary, tile.head))));
    atomicMax(&tiles.tiles[at].warm, most);
  }
  __syncthreads();
}

__device__ Plan choose(const Call &call, const Most &lengths, const Tiles &tiles, float low, Memory &memory) {
  const float share = (low + start * call.tiles * inverse(call.shape.blocks)) * (1 / packed);
  const bool invariant = call.shape.invariant();
  const float high = fminf(lengths.most, invariant ? cutLength : lengths.most) + start;
  const float m = fmaxf(high, share * 1.001f);
  Deadline deadline{m, false}; // nothing is cut for parallelism
  bool allLong = !invariant;
  if (tiles.count && !invariant) {
    findKinds(tiles, memory.kinds);
    deadline = search(call, tiles, low, high, deadline, fmaxf(high, share), memory.kinds);
    allLong = tiles.isLong(memory.kinds.least, deadline.m);
  }
  const float shortest = deadline.m / shortShare;
  const float run = fmaxf(deadline.m, start + 6);
  return {deadline, run, invariant ? 0 : hop, shortest, !allLong || tiles.most > shortest};
}

// The cut tiles: the first in shared memory, and few calls have more.
struct Cuts {
  CutTile *first, *more;
  __device__ CutTile *at(Int i) const { return (i < fewCuts ? first : more) + i; }
  // Of `count`, the number of the one that item `item` is of; those of a warp follow each other.
  __device__ Int of(Int item, Int count) const {
    const Int lane = threadIdx.x % 32, first = item - lane;
    auto ahead = [&](Int i) { return i < count ? at(i)->items - first : 32; }; // where its items begin
    Int low = 0, step = 1;
    while (step * 32 < count)
      step *= 32;
#pragma unroll 1
    for (; step; step /= 32)
      low += max(0, __popc(__ballot_sync(~0u, ahead(low + lane * step) <= 0)) - 1) * step;
    const Int next = ahead(low + 1 + lane);
    const Word begins = __reduce_or_sync(~0u, next < 32 ? 1u << next : 0);
    return low + __popc(begins & ((2u << lane) - 1));
  }
};

// Lists the tiles that are cut, and makes the items of those that stay whole, which go behind the other early ones in
// the order of memory. Returns what they come to.
__device__ Count listTiles(const Call &call, const Tiles &tiles, const Plan &plan, const Cuts &cuts, Memory &memory) {
  const Int count = tiles.count * call.parts, end = count + (plan.anyPlain || count < call.tiles ? call.tiles : 0);
  __shared__ float lineEnd;
  if (threadIdx.x / 32 == warps - 1) { // the last one to have a tile
    const bool any = !call.shape.invariant() && tiles.count;
    const float at = any ? placeWarm(tiles, call.parts, plan, memory.lengths, memory.placed) : 0;
    if (threadIdx.x % 32 == 0)
      lineEnd = at;
  }
  float line = 0;
  Count listed{};
#pragma unroll 1
  for (Int base = 0; base < end; base += threads) {
    const Int i = base + threadIdx.x;
    Candidate tile = candidate(call, tiles, plan, i, end);
    __syncthreads();
    if (base == 0)
      line = lineEnd;
    cutOnLine(plan, tile, memory.placed, i, line);
    const bool isCut = tile.way >= Candidate::Line, stays = tile.way == Candidate::Whole;
    Count need{}, total;
    if (isCut)
      need = countOf(call, tile.cut);
    need.whole = stays;
    const Count at = listed + prefix(need, isCut || stays, total);
    tile.cut.items = at.items;
    tile.cut.slots = at.slots;
    tile.cut.middle = at.middle;
    if (isCut && at.tiles < call.at.cutTiles)
      *cuts.at(at.tiles) = tile.cut;
    const Int chunks = tile.span.chunks();
    if (stays)
      store(call, Int(call.at.cutItems) + at.whole,
            itemOf(tile.span, tile.sequence, tile.head, tile.part * call.shape.columns, 0, chunks), chunks + start);
    listed = listed + total;
  }
  return listed;
}

// Copies the items of a warp, each to its lane's place: four lanes an item, so that memory is written in whole sectors.
__device__ void copyItems(const Item *items, Int count, Item *table, Int place) {
  constexpr Int each = sizeof(Item) / sizeof(uint4);
  const Int lane = threadIdx.x % 32;
#pragma unroll
  for (Int i = 0; i < each; ++i) {
    const Int item = (i * 32 + lane) / each, to = __shfl_sync(~0u, place, item);
    if (item < count)
      reinterpret_cast<uint4 *>(table + to)[lane % each] = reinterpret_cast<const uint4 *>(items + item)[lane % each];
  }
}

// Number `at` of the items of cut tiles, if it is `mine`, with the bin that it is sorted into: those with more behind
// them come first, and early ones before late ones.
__device__ Item sortable(const Call &call, const Plan &plan, const Count &listed, const Cuts &cuts, Int at, bool mine) {
  const float scale = earlyBins * 0.8f * inverse(plan.deadline.m); // few tails are longer than the deadline
  const Int number = cuts.of(at, listed.tiles);
  if (!mine)
    return {};
  const CutTile tile = *cuts.at(number); // all of it at once
  const bool isLinked = tile.part < 0;
  Piece piece = isLinked ? linkedPiece(call, plan, tile, listed.middle, at - tile.items)
                         : linePiece(call, plan, tile, listed.middle, at - tile.items);
  if (call.shape.flags & InPlace && !isLinked && tile.cuts)
    guard(call, plan, tile, listed.middle + listed.slots + number, piece);
  piece.item.tail = Int(piece.tail * 16);
  piece.item.bin = earlyBins - 1 - min(earlyBins - 1, Int(piece.tail * scale)) + (piece.late ? earlyBins : 0);
  return piece.item;
}

// How many items of this warp came before this lane's into its bin, where they are counted.
__device__ Int rankOf(Int (&counts)[bins], Int bin, bool mine) {
  const Int lane = threadIdx.x % 32;
  Word same = __ballot_sync(~0u, mine);
#pragma unroll
  for (Int bit = 1; bit < bins; bit *= 2) { // so many votes take less than one match of many values
    const Word with = __ballot_sync(~0u, bin & bit);
    same &= bin & bit ? with : ~with;
  }
  const Int first = counts[bin], rank = __popc(same & ((1u << lane) - 1));
  __syncwarp();
  if (mine && rank == 0)
    counts[bin] = first + __popc(same);
  __syncwarp();
  return first + rank;
}

// Turns the counts of bins into places. Returns how many early items there are.
__device__ Int placesOf(Int (&counts)[warps][bins]) {
  __shared__ Int early;
  static_assert(bins == threads);
  Int sum = 0, total;
#pragma unroll
  for (Int w = 0; w < warps; ++w)
    sum += counts[w][threadIdx.x];
  Int at = prefix(sum, sum > 0, total);
  if (threadIdx.x == earlyBins)
    early = at;
#pragma unroll
  for (Int w = 0; w < warps; ++w) {
    const Int count = counts[w][threadIdx.x];
    counts[w][threadIdx.x] = at;
    at += count;
  }
  __syncthreads();
  return early;
}

// Makes the items of cut tiles, in order: a stable sort by counting, warp by warp of equal shares, in two passes, for
// which as many items as there is room for are kept. Early items end where those that stay whole begin; late ones begin
// the table. Returns how many early ones there are.
__device__ Int orderItems(const Call &call, const Plan &plan, const Count &listed, const Cuts &cuts, Memory &memory) {
  Item *table = call.place<Item>(call.at.table);
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32, share = (listed.items + warps - 1) / warps;
  const Int begin = warp * share, end = min(listed.items, begin + share);
  Int(&counts)[bins] = memory.counts[warp];
  Item *kept = memory.items[warp];
#pragma unroll
  for (Int bin = lane; bin < bins; bin += 32)
    counts[bin] = 0;
  __syncthreads();
#pragma unroll 1
  for (Int base = begin; base < end; base += 32) {
    const bool mine = base + lane < end;
    Item item = sortable(call, plan, listed, cuts, base + lane, mine);
    item.bin += bins * rankOf(counts, item.bin, mine);
    if (mine && base < begin + keptOfWarp)
      kept[base - begin + lane] = item;
  }
  __syncthreads();
  const Int early = placesOf(memory.counts);
  auto place = [&](Int bin, Int rank) { return rank + (bin < earlyBins ? Int(call.at.cutItems) : 0) - early; };
#pragma unroll 1
  for (Int base = begin; base < min(end, begin + keptOfWarp); base += 32) {
    const Item *items = kept + (base - begin);
    const Int ranked = base + lane < end ? items[lane].bin : 0, bin = ranked % bins;
    copyItems(items, min(32, end - base), table, place(bin, counts[bin] + ranked / bins));
  }
  if (end <= begin + keptOfWarp)
    return early;
#pragma unroll
  for (Int i = lane; i < keptOfWarp; i += 32)
    atomicAdd(&counts[kept[i].bin % bins], 1);
  __syncwarp();
#pragma unroll 1
  for (Int base = begin + keptOfWarp; base < end; base += 32) {
    const bool mine = base + lane < end;
    const Item item = sortable(call, plan, listed, cuts, base + lane, mine);
    const Int rank = rankOf(counts, item.bin, mine);
    if (mine)
      table[place(item.bin, rank)] = item;
  }
  return early;
}

// What the planner needs of the layout, since one thread makes it.
__device__ Layout layoutOf(const Shape &shape) {
  Layout at = layout(shape, 2);
  at.items = at.slotValues = at.high = at.low = at.bytes = 0;
  return at;
}

// Tiles of so many columns, in the order of memory.
__device__ Header natural(Int columns) { return {Natural, 0, 0, 0, 0, 0, 0, Word(columns)}; }

__device__ void writeHeader(const Call &call, const Header &header) {
  if (threadIdx.x == 0)
    *call.place<Header>(0) = header;
}

__device__ bool fits(const Call &call, const Count &listed) {
  const Layout at = call.at; // all of it at once
  return listed.tiles <= at.cutTiles & listed.items <= at.cutItems & listed.middle <= at.matrices &
         listed.middle + listed.slots <= at.slots;
}

__device__ void makePlan(const Call &call, const Most &lengths, const Tiles &tiles, float low, Memory &memory) {
  __shared__ CutTile few[fewCuts];
  const Cuts cuts{few, call.place<CutTile>(call.at.cuts)};
  if (call.shape.flags & Warm && tiles.count)
    findWarm(call, tiles);
  const Plan plan = choose(call, lengths, tiles, low, memory);
  const Count listed = listTiles(call, tiles, plan, cuts, memory);
  // No place for the plan, as offsets that overlap may bring about: nothing is cut.
  if (!fits(call, listed) || !tiles.all)
    return writeHeader(call, natural(call.shape.columns));
  const Int slots = listed.middle + listed.slots, guards = call.shape.flags & InPlace ? listed.tiles : 0;
  const Int rows = (slots + guards) * flagWords / 4;
  static_assert(flagWords % 4 == 0);
#pragma unroll 1
  for (Int i = threads - 1 - threadIdx.x; i < rows; i += threads) // the first warps have items to make
    call.place<uint4>(call.at.flags)[i] = {};
  const Int early = orderItems(call, plan, listed, cuts, memory), first = Int(call.at.cutItems) - early;
  writeHeader(call, Header{Planned, Word(early + listed.whole), Word(listed.items - early), Word(slots),
                           Word(call.at.table + first * sizeof(Item)), Word(call.at.table), Word(call.at.flags),
                           Word(call.shape.columns)});
}

} // namespace

extern "C" __global__ void __launch_bounds__(readers, 1) // one block an SM: all registers that it can have
    gdn_plan(const void *offsets, int wide, int sequences, int length, int tokens, int heads, const char *g,
             long long gToken, long long gHead, int gType, const char *aLog, int aLogType, const char *dtBias,
             int dtBiasType, int options, char *workspace, int blocks, int keyDim, int valueDim, int columns,
             int flags) {
  asm volatile("griddepcontrol.launch_dependents;"); // the forward's blocks may set themselves up, and then wait
  __shared__ Layout at;
  __shared__ Memory memory;
  __shared__ bool isLast;
  const Shape shape{sequences, tokens, heads, keyDim, valueDim, columns, blocks, Word(flags)};
  const Int parts = quotient(valueDim, columns), count = sequences * heads * parts;
  const bool isListed = sequences <= readers;
  const Span *spans = isListed ? memory.found.spans : nullptr;
  const Call call{offsets,  wide != 0,  length,      g,         gToken, gHead, aLog,  dtBias, gType,
                  aLogType, dtBiasType, options & 3, workspace, shape,  parts, count, at,     spans};
  const Span first = call.loadOrNone(eachHasAll(shape) ? threadIdx.x % 32 : threadIdx.x);
  const Most lengths = measure(call, first);
  const float low = float(lengths.sum) * parts * heads * inverse(blocks); // steps a block, were they shared evenly
  const Int longest = shape.invariant() ? cutLength : Int(fminf(low, 1 << 30));
  const bool mustCut = shape.invariant() && lengths.most > longest;
  // Sequences of one length fill the blocks round by round: what a plan could win must be more than it takes.
  const bool equal = lengths.sum == lengths.most * sequences;
  const float rounds = quotient(count + blocks - 1, blocks), uncut = rounds * (lengths.most + start);
  const bool fills = equal && uncut <= (low + start * count * inverse(blocks)) * (1 / packed) + planSteps;
  const bool isShort = count >= 8 * blocks && lengths.most <= low * (1.f / shortShare);
  const bool halves = flags & Halves && leavesHalves(shape, lengths.most, lengths.sum);
  if (!mustCut && (count > mostTiles(shape) || isShort || fills || halves)) {
    if (blockIdx.x == 0)
      writeHeader(call, natural(halves ? columns / 2 : columns));
    return;
  }
  const bool reads = lengths.most > longest && flags & Warm, others = reads && gridDim.x > 1;
  if (!reads && blockIdx.x != 0)
    return;
  if (isListed)
    listLong(first, longest, eachHasAll(shape), memory.found);
  if (reads)
    readGates(call, longest, isListed, memory.found, memory.ofUnit);
  if (others)
    arrive(call, isLast);
  else if (threadIdx.x == 0)
    isLast = true;
  if (threadIdx.x == 32) // another warp, as the first waits for memory
    at = layoutOf(shape);
  auto isOver = [&] {
    __syncthreads();
    return !isLast;
  };
  if (shape.invariant() && isOver()) // then the list lies in memory
    return;
  const Tiles tiles = listLong(call, lengths, longest, isListed, memory);
  if (isOver())
    return;
  if (threadIdx.x < threads)
    makePlan(call, lengths, tiles, low, memory);
}
