// Items, of cut tiles and whole ones.
#pragma once
#include "plan/cuts.h"

namespace {

struct Piece {
  Item item;
  float tail; // steps
  bool late;
};

// Of these chunks of a tile.
__device__ Item itemOf(Span span, Int sequence, Int head, Int column, Int begin, Int end) {
  Item item{};
  item.begin = span.begin + begin * chunkTokens;
  item.end = min(span.begin + end * chunkTokens, span.end);
  item.sequence = sequence;
  item.head = head;
  item.column = column;
  item.from = item.to = Caller;
  item.guard = -1;
  item.fromCount = 1;
  return item;
}

// Where a run other than the first begins, and the warm-up of one that begins there; in chunks.
__device__ float runBegin(const CutTile &tile, Int run) { return tile.first + (run - 1) * tile.step; }
__device__ Int warmUp(const Call &call, const CutTile &tile, Int first) {
  return min(first, Int(*warmAt(call, tile.begin, first, tile.head)));
}

// A piece of a tile on the line, in chunks: one of its runs, or of its slices.
struct Slice {
  Int first, last, warm;
  float tail;
};

// Of item j of a tile. A tile lies on the line with its end first: so its early part, which must run first, comes first
// in one block's share, and its late part last in another's.
__device__ Slice sliceOf(const Call &call, const Plan &plan, const CutTile &tile, Int j) {
  const Int chunks = tile.chunks(), end = tile.cuts + tile.hands;
  auto edge = [&](Int i) { // where piece i begins
    const float cut = tile.cuts ? runBegin(tile, i) : chunks - tile.slice - (tile.hands - i) * (plan.run - start);
    return i == 0 ? 0 : i > end ? chunks : Int(rintf(cut));
  };
  const Int first = edge(j), last = edge(j + 1), more = tile.cuts ? 0 : tile.hands - j; // slices that wait for this one
  const Int warm = tile.cuts && j ? warmUp(call, tile, first) : 0;
  const float rest = (more ? chunks : last) - first;
  return {first, last, warm, rest + (more + 1) * start + more * flag + warm * stateStep};
}

__device__ Piece linePiece(const Call &call, const Plan &plan, const CutTile &tile, Int middle, Int j) {
  const Slice slice = sliceOf(call, plan, tile, j);
  Item item = itemOf({tile.begin, tile.end}, tile.sequence, tile.head, tile.part * call.shape.columns,
                     slice.first - slice.warm, slice.last);
  const Int slot = middle + tile.slots + j; // the last slice hands nothing over
  item.warm = slice.warm;
  item.from = j && !tile.cuts ? slot - 1 : slice.warm < slice.first ? Zeros : Caller;
  item.to = j == tile.cuts + tile.hands ? Caller : tile.cuts ? Nowhere : slot;
  return {item, slice.tail, false};
}

// Where states are stored in place, of a tile with runs that may be through before another has taken the caller's
// state. Who takes it comes before who waits for that, as early items may only wait for those before them.
__device__ void guard(const Call &call, const Plan &plan, const CutTile &tile, Int row, Piece &piece) {
  const bool takes = piece.item.from == Caller, stores = piece.item.to == Caller;
  if (takes || stores)
    piece.item.guard = row;
  if (takes)
    piece.tail = fmaxf(piece.tail, sliceOf(call, plan, tile, tile.cuts).tail);
  if (!stores)
    return;
  Int taking = 1; // warm-ups may reach back to the sequence's begin
#pragma unroll 1
  for (Int run = 1, first; run <= tile.cuts && (first = Int(rintf(runBegin(tile, run)))) <= longestWarm; ++run)
    taking += warmUp(call, tile, first) == first;
#pragma unroll
  for (Int i = 0; i < flagRows; ++i)
    call.place<Int>(call.at.flags)[row * flagWords + i] = 1 - taking;
}

// Item j of a tile that is cut by transition: roots; M and N of each middle segment; scans, of 64 rows each and then of
// the hops that one makes; dependents. V is 64 or 128 where there are hops.
__device__ Piece linkedPiece(const Call &call, const Plan &plan, const CutTile &tile, Int middle, Int j) {
  const Int x = tile.cuts, parts = call.parts, root = middle + tile.slots;
  const Int makers = 2 * x * parts, rows = call.shape.valueDim / 64, scans = rows * ((x + maxHops - 1) / maxHops);
  const Int maker = j - parts, scan = maker - makers, dependent = scan - scans;
  const bool isRoot = maker < 0, isMaker = !isRoot && scan < 0, isScan = !isRoot && !isMaker && dependent < 0;
  const Int scanRow = scan >> (rows - 1), done = scanRow * maxHops; // hops of the scans before
  const Int index = isRoot ? j : isMaker ? maker : dependent, ofParts = call.ofParts(index);
  const Int segment = isRoot ? 0 : isMaker ? 1 + ofParts / 2 : isScan ? done + 1 : 1 + ofParts;
  const Int part = index - ofParts * parts;
  auto end = [&](Int i) { return Segments{x, tile.first, tile.step}.end(i, tile.chunks(), plan.fall); };
  const Int first = segment ? end(segment - 1) : 0, last = isScan ? first : end(segment), size = last - first;
  const Int column = isScan ? (scan - scanRow * rows) * 64 : part * call.shape.columns;
  Item item = itemOf({tile.begin, tile.end}, tile.sequence, tile.head, column, first, last);
  if (isScan)
    item.end = item.begin;
  // From the end of what a hop needs to the tile's.
  const float after = 2 * flag + start + tile.step + (hop - plan.fall) * x - hop * max(0, segment - 1);
  if (isRoot) {
    item.to = root;
    return {item, size + start + after, false};
  }
  if (isMaker) {
    const bool isMatrix = ofParts % 2 == 0;
    item.warm = size;
    item.from = isMatrix ? Identity : Zeros;
    item.to = tile.middle + segment - 1 + (isMatrix ? matrixBase : 0);
    return {item, size * stateStep + start + after, false};
  }
  const bool isFirst = segment == 1; // it follows the root; else the segment before, whose slot held N first
  item.from = isFirst ? root : tile.middle + segment - 2;
  item.fromCount = isFirst ? 1 : 2;
  item.to = isScan || segment <= x ? Nowhere : Caller;
  if (isScan) {
    item.hops = min(maxHops, x - done);
    item.segment = tile.middle + done;
  }
  // Scans go before what waits for them, which rounding to chunks may have made longer than `step`.
  return {item, isScan ? after + 1 : size + start, true};
}

__device__ void store(const Call &call, Int at, Item item, float tail) {
  item.tail = Int(tail * 16);
  call.place<Item>(call.at.table)[at] = item;
}

} // namespace
