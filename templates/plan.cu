// Cuts a call's work into items and queues them: format/work.h says what the tables hold.
//
// The plan is one number, the deadline m, in full steps (a step: one chunk of a tile). Sequences are measured, gates of
// those that might be cut are read (plan/gates.h), 64 deadlines are tried against an estimate of the makespan
// (plan/deadline.h), and every cut follows in closed form, tile by tile (plan/cuts.h):
//   - a tile longer than m is cut by warm-up where its gates decay soon enough, else by transition: a root, middle
//     segments of which M and N are made at once, and dependents, as long as their hops leave them;
//   - all other tiles that are not short, and the runs between warm-ups, lie on a line as long as the blocks' time end
//     to end, and are handed over where a block's share ends.
// Every block measures; if gates are read, all share that, and the last one to be through makes the plan, else block 0.
// Nothing depends on the order of blocks or threads.
//
// GDN_FULL, GDN_STATE, GDN_START, GDN_FLAG, GDN_HOP: clocks of a full step, of one for the state alone, of an item's
// start, of a flag with its 64 KB, of a hop of 64 rows.
#include "plan/items.h"

namespace {

__device__ Most measure(const Call &call) {
  Most mine{}, all;
#pragma unroll 4
  for (Int i = threadIdx.x; i < call.shape.sequences; i += threads) {
    const Int chunks = spanOf(call, i).chunks();
    mine = mine + Most{float(chunks), chunks};
  }
  prefix(mine, all);
  return all;
}

// Lists the tiles with more than `longest` chunks, and sums the others.
__device__ Tiles findLong(const Call &call, Int longest) {
  LongTile *tiles = call.place<LongTile>(call.at.longs);
  const Int heads = call.shape.heads, capacity = Int(call.at.longTiles);
  Int count = 0;
  Most rest{};
#pragma unroll 1
  for (Int base = 0; base < call.shape.sequences; base += threads) {
    const Int i = base + threadIdx.x, chunks = i < call.shape.sequences ? spanOf(call, i).chunks() : 0;
    const bool isLong = chunks > longest;
    Int total;
    const Int at = count + prefix(isLong ? heads : 0, total);
#pragma unroll 1
    for (Int head = 0; isLong && head < heads && at + head < capacity; ++head)
      tiles[at + head] = {i, head, chunks, longestWarm + 1};
    if (!isLong)
      rest = rest + Most{float(chunks), chunks};
    count += total;
  }
  __syncthreads();
  const Int placed = min(count, capacity);
#pragma unroll 1
  for (Int i = threadIdx.x; i < placed && call.shape.flags & Warm; i += threads) {
    const LongTile tile = tiles[i];
    const Int begin = spanOf(call, tile.sequence).begin;
    Int warm = 0;
    for (Int boundary = call.shape.invariant() ? cutLength : 1; boundary < tile.chunks; boundary += window)
      warm = max(warm, Int(__ldcg(warmAt(call, begin, boundary, tile.head))));
    tiles[i].warm = warm;
  }
  Most all;
  prefix(rest, all); // and the tiles are there
  all.sum = all.sum * call.parts * heads + start * (call.tiles - float(count) * call.parts);
  return {tiles, placed, all, longest, placed == count};
}

__device__ Plan choose(const Call &call, const Most &lengths, const Tiles &tiles, float low) {
  const float share = (low + start * call.tiles / call.shape.blocks) / packed;
  const bool invariant = call.shape.invariant();
  const float high = fminf(lengths.most, invariant ? cutLength : lengths.most) + start;
  const float m = fmaxf(high, share * 1.001f);
  Deadline deadline{fmaxf(high, share), m, m, m, 0, 0}; // nothing is cut for parallelism
  if (tiles.count && !invariant)
    deadline = search(call, tiles, low, high, deadline);
  return {deadline, 0, 0, invariant ? 0 : hop, deadline.m / shortShare};
}

// Lists the tiles that are cut, and makes the items of those that stay whole, which go behind the other early ones in
// the order of memory. Returns what they come to.
__device__ Count listTiles(const Call &call, const Tiles &tiles, const Plan &plan) {
  float line = placeLong(call, tiles, plan);
  const Int longBatches = (tiles.count * call.parts + threads - 1) / threads;
  Count listed{};
#pragma unroll 1
  for (Int batch = 0; batch < longBatches || (batch - longBatches) * threads < call.tiles; ++batch) {
    CutTile cut{};
    Whole tile{};
    bool mine;
    if (batch < longBatches) {
      mine = cutLong(call, tiles, plan, batch * threads + threadIdx.x, cut);
    } else {
      tile = wholeTile(call, tiles, plan, (batch - longBatches) * threads + threadIdx.x);
      mine = tile.any && !tile.isShort;
      float length;
      const float place = line + prefix(mine ? tile.span.chunks() + start : 0, length);
      cut = onLine(tile.span, tile.sequence, tile.head, tile.part, Runs{}, 0, place, plan.quantum);
      line += length;
    }
    const bool stays = tile.any && tile.isShort;
    Count need = mine ? countOf(call, cut) : Count{}, total;
    need.whole = stays;
    const Count at = listed + prefix(need, total);
    cut.items = at.items;
    cut.slots = at.slots;
    cut.middle = at.middle;
    if (mine && at.tiles < call.at.cutTiles)
      call.place<CutTile>(call.at.cuts)[at.tiles] = cut;
    const Int chunks = tile.span.chunks();
    if (stays)
      store(call, Int(call.at.cutItems) + at.whole,
            itemOf(tile.span, tile.sequence, tile.head, tile.part * call.shape.columns, 0, chunks), chunks + start);
    listed = listed + total;
  }
  return listed;
}

// Makes the items of cut tiles, those with more behind them first: a stable sort by counting, warp by warp of equal
// shares. Early items fill the first bins and end where those that stay whole begin; late ones begin the table. Returns
// how many early ones there are.
constexpr Int bins = 512, earlyBins = bins / 2;
static_assert(bins == threads);

__device__ Int orderItems(const Call &call, const Plan &plan, const Count &listed) {
  __shared__ Int counts[warps][bins];
  __shared__ Int early;
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32, share = (listed.items + threads - 1) / threads * 32;
  const Int end = min(listed.items, (warp + 1) * share);
  const float scale = earlyBins * 0.8f / plan.deadline.m; // few tails are longer than the deadline
#pragma unroll 4
  for (Int w = 0; w < warps; ++w)
    counts[w][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 1
  for (Int pass = 0; pass < 2; ++pass) {
#pragma unroll 1
    for (Int at = warp * share + lane; at - lane < end; at += 32) {
      Piece piece{};
      Int bin = bins;
      if (at < end) {
        const CutTile tile = call.place<CutTile>(call.at.cuts)[call.place<Int>(call.at.owners)[at]];
        piece = tile.part < 0 ? linkedPiece(call, plan, tile, listed.middle, at - tile.items)
                              : linePiece(call, plan, tile, listed.middle, at - tile.items);
        bin = earlyBins - 1 - min(earlyBins - 1, Int(piece.tail * scale)) + (piece.late ? earlyBins : 0);
      }
      const Word same = __match_any_sync(~0u, bin);
      const Int rank = __popc(same & ((1u << lane) - 1)), first = bin < bins ? counts[warp][bin] : 0;
      __syncwarp();
      if (bin < bins && rank == 0)
        counts[warp][bin] = first + __popc(same);
      if (bin < bins && pass == 1)
        store(call, first + rank + (piece.late ? -early : Int(call.at.cutItems) - early), piece.item, piece.tail);
      __syncwarp();
    }
    __syncthreads();
    if (pass == 1)
      break;
    Int sum = 0, total; // counts become places
#pragma unroll 4
    for (Int w = 0; w < warps; ++w)
      sum += counts[w][threadIdx.x];
    Int at = prefix(sum, total);
    if (threadIdx.x == earlyBins)
      early = at;
#pragma unroll 4
    for (Int w = 0; w < warps; ++w) {
      const Int count = counts[w][threadIdx.x];
      counts[w][threadIdx.x] = at;
      at += count;
    }
    __syncthreads();
  }
  return early;
}

__device__ void writeHeader(const Call &call, const Header &header) {
  if (threadIdx.x == 0)
    *call.place<Header>(0) = header;
}

// Slices of a run: beside transitions some, a hand-over each but for the last of a run, as far as there are slots.
__device__ Int slicesOf(const Call &call, const Deadline &deadline) {
  if (deadline.run >= deadline.m)
    return 1;
  const float slots = call.at.slots - call.at.matrices - deadline.linked;
  return max(1, min(slices, Int(fminf(deadline.run / leastSlice, 1 + slots * deadline.run / deadline.free))));
}

__device__ bool fits(const Call &call, const Count &listed) {
  return listed.tiles <= call.at.cutTiles && listed.items <= call.at.cutItems && listed.middle <= call.at.matrices &&
         listed.middle + listed.slots <= call.at.slots;
}

__device__ void makePlan(const Call &call, const Most &lengths, Int longest, float low) {
  const Tiles tiles = findLong(call, longest);
  Plan plan = choose(call, lengths, tiles, low);
  Count listed;
  Int count = slicesOf(call, plan.deadline);
#pragma unroll 1
  do { // fewer slices where there are more hand-overs than were expected
    plan.quantum = fmaxf(plan.deadline.run / count, start + 6);
    plan.run = plan.quantum * count;
    listed = listTiles(call, tiles, plan);
  } while (!fits(call, listed) && --count);
  if (!count || !tiles.all) // no place for the plan, as offsets that overlap may bring about: nothing is cut
    return writeHeader(call, Header{Natural});
  __syncthreads();
#pragma unroll 1
  for (Int i = threadIdx.x; i < listed.tiles; i += threads) {
    const CutTile tile = call.place<CutTile>(call.at.cuts)[i];
    const Int items = countOf(call, tile).items;
#pragma unroll 1
    for (Int j = 0; j < items; ++j)
      call.place<Int>(call.at.owners)[tile.items + j] = i;
  }
  const Int slots = listed.middle + listed.slots, rows = slots + listed.middle;
#pragma unroll 1
  for (Int i = threadIdx.x; i < rows * flagRows; i += threads)
    call.place<Word>(call.at.flags)[i] = 0;
  __syncthreads();
  const Int early = orderItems(call, plan, listed), first = Int(call.at.cutItems) - early;
  writeHeader(call, Header{Planned, Word(early + listed.whole), Word(listed.items - early), 0, 0,
                           Word(call.at.table + first * sizeof(Item)), Word(call.at.table), Word(call.at.flags),
                           Word(slots)});
}

} // namespace

extern "C" __global__ void __launch_bounds__(threads, 1) // one block an SM: all registers that it can have
    gdn_plan(const void *offsets, int wide, int sequences, int length, int tokens, int heads, const char *g,
             long long gToken, long long gHead, int gType, const char *aLog, int aLogType, const char *dtBias,
             int dtBiasType, int options, char *workspace, int blocks, int keyDim, int valueDim, int columns,
             int flags) {
  __shared__ Layout at;
  const Shape shape{sequences, tokens, heads, keyDim, valueDim, columns, blocks, Word(flags)};
  const Int parts = valueDim / columns, tiles = sequences * heads * parts;
  const Call call{offsets,  wide != 0,  length,       g,         gToken, gHead, aLog,  dtBias, gType,
                  aLogType, dtBiasType, options & 3, workspace, shape,  parts, tiles, at};
  if (threadIdx.x == 0)
    at = layout(shape, 2);
  const Most lengths = measure(call);
  const float low = lengths.sum * parts * heads / blocks; // steps a block, were they shared evenly
  const Int longest = shape.invariant() ? cutLength : Int(fminf(low, 1 << 30));
  const bool mustCut = shape.invariant() && lengths.most > longest;
  if (!mustCut && (tiles > mostTiles(shape) || (tiles >= 8 * blocks && lengths.most <= low / shortShare))) {
    if (blockIdx.x == 0)
      writeHeader(call, Header{Natural});
    return;
  }
  if (lengths.most > longest && flags & Warm) {
    readGates(call, longest);
    if (!lastOfAll(call))
      return;
  } else if (blockIdx.x != 0) {
    return;
  }
  makePlan(call, lengths, longest, low);
}
