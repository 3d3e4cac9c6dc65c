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

constexpr Int placings = 8;

__device__ float modulo(float x, float y) { return x - floorf(x * inverse(y)) * y; }

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
  const Int cuts = max(0, Int(ceilf((chunks - first - least) * inverse(step))));
  return {cuts, first, step, chunks + start + cuts * extra};
}

// Hand-overs in a run of `size` chunks that begins at `at` on the line: where a quantum of it ends.
__device__ Int handsOf(float size, float at, float quantum, float &slice) {
  float room = quantum - modulo(at, quantum);
  if (room <= start + leastRest)
    room += quantum;
  slice = room - start;
  const float more = size - leastRest - slice;
  return more < 0 ? 0 : Int(more * inverse(quantum - start)) + 1;
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

// A tile, and where it goes. None: with another, or it is listed elsewhere. Fixed: as `cut` says.
struct Candidate {
  enum { None, Whole, Line, Fixed } way;
  Span span;
  Int sequence, head, part;
  Int warm; // on the line: longest warm-up, or more where runs are not cut
  CutTile cut;
};

// Number i of the tiles that might be cut for parallelism and then all, in the order of memory. Those that are not stay
// whole where they are short.
__device__ Candidate candidate(const Call &call, const Tiles &tiles, const Plan &plan, Int i) {
  const Int count = tiles.count * call.parts, place = i < count ? i : i - count;
  const Int ofHead = call.parts == 1 ? place : quotient(place, call.parts), part = place - ofHead * call.parts;
  if (i >= count + call.tiles)
    return {};
  LongTile tile{0, 0, 0, longestWarm + 1};
  if (i < count) {
    tile = tiles.tiles[ofHead];
  } else {
    tile.sequence = quotient(ofHead, call.shape.heads);
    tile.head = ofHead - tile.sequence * call.shape.heads;
  }
  const Span span = spanOf(call, tile.sequence);
  const Int chunks = span.chunks();
  const bool invariant = call.shape.invariant(), decays = tile.warm <= longestWarm;
  const bool isLong = invariant ? chunks > tiles.longest : tiles.isLong(chunks, plan.deadline.m);
  Candidate found{Candidate::None, span, tile.sequence, tile.head, part, tile.warm};
  if (isLong != i < count)
    return found;
  if (!isLong || (decays && !invariant)) {
    found.way = !isLong && chunks <= plan.shortest ? Candidate::Whole : Candidate::Line;
    return found;
  }
  bool linked = !decays;
  Segments segments;
  if (invariant) { // root, a middle segment and a rest at least, or whole
    const Int pieces = (chunks + cutLength - 1) / cutLength;
    linked = linked && pieces > 2 && call.shape.hops();
    segments = {linked ? pieces - 2 : decays ? pieces - 1 : 0, cutLength, cutLength};
  } else {
    segments = segmentsOf(chunks, plan.deadline.limit);
  }
  found.way = linked && part ? Candidate::None : Candidate::Fixed;
  found.cut = {tile.sequence,      span.begin,      span.end,      tile.head,
               linked ? -1 : part, segments.middle, segments.root, segments.step};
  return found;
}

// Cuts the tiles that lie on the line, end to end from `line` on, which then is where they end. What tiles with
// warm-ups come to depends on where they lie: they are placed by what they came to at the place before.
__device__ void placeOnLine(const Plan &plan, Candidate &tile, bool anyWarm, float &line) {
  const bool mine = tile.way == Candidate::Line, decays = mine && tile.warm <= longestWarm;
  const Int chunks = tile.span.chunks();
  Runs runs{0, 0, 0, mine ? chunks + start : 0};
  float place = 0, total = -1;
  if (decays)
    runs = runsOf(chunks, tile.warm, plan.run / 2, plan.run);
#pragma unroll 1
  for (Int i = 0; i < (anyWarm ? placings : 1); ++i) {
    const float before = total;
    place = line + prefix(runs.length, mine, total);
    if (decays)
      runs = runsOf(chunks, tile.warm, place, plan.run);
    if (total == before)
      break;
  }
  line += total;
  if (mine)
    tile.cut =
        onLine(tile.span, tile.sequence, tile.head, tile.part, runs, decays ? tile.warm : 0, place, plan.quantum);
}

} // namespace
