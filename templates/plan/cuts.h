// Where each tile is cut, by the deadline.
#pragma once
#include "plan/deadline.h"
#include "plan/gates.h"

namespace {

struct Plan {
  Deadline deadline;
  float run, quantum; // of the line: from a warm-up cut to the next, and from any cut to the next
  float fall;         // by which each dependent segment is shorter than the one before
  float shortest;     // chunks: tiles up to it stay whole
};

__device__ float modulo(float x, float y) { return x - floorf(x / y) * y; }

// Where a tile that lies at `at` on the line is cut by warm-up: a run ends where a block's share does.
struct Runs {
  Int cuts;
  float first, step, length; // length on the line
};
__device__ Runs runsOf(Int chunks, Int warm, float at, float run) {
  float room = run - modulo(at, run);
  if (room < start + least)
    room += run;
  const float extra = warm * stateStep + start, first = room - start, step = run - extra;
  const Int cuts = max(0, Int(ceilf((chunks - first - least) / step)));
  return {cuts, first, step, chunks + start + cuts * extra};
}

// Hand-overs in a run of `size` chunks that begins at `at` on the line: where a quantum of it ends.
__device__ Int handsOf(float size, float at, float quantum, float &slice) {
  float room = quantum - modulo(at, quantum);
  if (room <= start + leastRest)
    room += quantum;
  slice = room - start;
  const float more = size - leastRest - slice;
  return more < 0 ? 0 : Int(more / (quantum - start)) + 1;
}

// A tile at `at` on the line, cut by warm-up as `runs` says.
__device__ CutTile onLine(Span span, Int sequence, Int head, Int part, const Runs &runs, Int warm, float at,
                          float quantum) {
  CutTile tile{sequence, span.begin, span.end, head, part, runs.cuts, runs.first, runs.step};
  const Int chunks = span.chunks();
  tile.firstHands = handsOf(runs.cuts ? runs.first : chunks, at, quantum, tile.firstSlice);
  if (runs.cuts) { // runs but the first begin with a warm-up, where a quantum begins
    const float last = chunks - (runs.first + (runs.cuts - 1) * runs.step);
    tile.hands = handsOf(runs.step, warm * stateStep, quantum, tile.slice);
    tile.lastHands = handsOf(last, warm * stateStep, quantum, tile.slice);
  }
  return tile;
}

__device__ Count countOf(const Call &call, const CutTile &tile) {
  const Int x = tile.cuts;
  if (tile.part < 0)
    return {1, call.parts * (3 * x + 2) + call.shape.valueDim / 64 * ((x + maxHops - 1) / maxHops), 1, x, 0};
  const Int hands = tile.firstHands + (x ? (x - 1) * tile.hands + tile.lastHands : 0);
  return {1, 1 + x + hands, hands, 0, 0};
}

// Where the long tiles that decay lie on the line: each begins where the one before ends, which depends on its cuts.
__device__ float placeLong(const Call &call, const Tiles &tiles, const Plan &plan) {
  __shared__ float end;
  if (threadIdx.x == 0) {
    end = 0;
#pragma unroll 1
    for (Int i = 0; i < tiles.count * call.parts && !call.shape.invariant(); ++i) {
      const LongTile tile = tiles.tiles[i / call.parts];
      if (tile.warm > longestWarm || !tiles.isLong(tile.chunks, plan.deadline.m))
        continue;
      call.place<float>(call.at.places)[i] = end;
      end += runsOf(tile.chunks, tile.warm, end, plan.run).length;
    }
  }
  __syncthreads();
  return end;
}

// Number i of the tiles that are cut for parallelism, into `cut`; false where it is none, or cut with another.
__device__ bool cutLong(const Call &call, const Tiles &tiles, const Plan &plan, Int i, CutTile &cut) {
  if (i >= tiles.count * call.parts)
    return false;
  const LongTile tile = tiles.tiles[i / call.parts];
  const Int part = i % call.parts;
  const Span span = spanOf(call, tile.sequence);
  const bool decays = tile.warm <= longestWarm;
  if (call.shape.invariant()) { // root, a middle segment and a rest at least, or whole
    const Int segments = (tile.chunks + cutLength - 1) / cutLength;
    const bool linked = !decays && segments > 2 && call.shape.hops();
    const Int cuts = linked ? segments - 2 : decays ? segments - 1 : 0;
    cut = {tile.sequence, span.begin, span.end, tile.head, linked ? -1 : part, cuts, cutLength, cutLength};
    return !linked || part == 0;
  }
  if (!tiles.isLong(tile.chunks, plan.deadline.m))
    return false;
  if (decays) {
    const float at = call.place<float>(call.at.places)[i];
    const Runs runs = runsOf(tile.chunks, tile.warm, at, plan.run);
    cut = onLine(span, tile.sequence, tile.head, part, runs, tile.warm, at, plan.quantum);
    return true;
  }
  const Segments segments = segmentsOf(tile.chunks, plan.deadline.limit);
  cut = {tile.sequence, span.begin, span.end, tile.head, -1, segments.middle, segments.root, segments.step};
  return part == 0;
}

// Number i of all tiles, in the order of memory; none if it is cut for parallelism.
struct Whole {
  Span span;
  Int sequence, head, part;
  bool any, isShort; // short ones stay whole, others lie on the line
};
__device__ Whole wholeTile(const Call &call, const Tiles &tiles, const Plan &plan, Int i) {
  if (i >= call.tiles)
    return {};
  const Int ofHead = i / call.parts, sequence = ofHead / call.shape.heads, head = ofHead - sequence * call.shape.heads;
  const Span span = spanOf(call, sequence);
  const Int chunks = span.chunks();
  const bool isLong = call.shape.invariant() ? chunks > tiles.longest : tiles.isLong(chunks, plan.deadline.m);
  return {span, sequence, head, i - ofHead * call.parts, !isLong, chunks <= plan.shortest};
}

} // namespace
