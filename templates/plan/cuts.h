// Where each tile is cut, by the deadline.
#pragma once
#include "plan/deadline.h"
#include "plan/gates.h"

namespace {

struct Plan {
  Deadline deadline;
  float run;      // of the line: from a cut to the next
  float fall;     // by which each dependent segment is shorter than the one before, where none rises
  float shortest; // chunks: tiles up to it stay whole
  bool anyPlain;  // tiles lie on the line that are not cut by warm-up
};

__device__ float modulo(float x, float y) { return x - floorf(x * inverse(y)) * y; }

// How a tile on the line is cut by warm-up: chunks before the first cut, and how many cuts there are.
struct Runs {
  float first, cuts;
};

// What of a tile decides that: its length on the line without cuts, what a cut moves on, 1 / that, and the cuts where
// it begins with no room.
struct alignas(16) Length {
  float size, step, each, most;
};

// Where the tiles with warm-ups lie on the line, one after the other by a warp: a run ends where a block's share does,
// and what a tile comes to depends on where it begins. Returns where the line goes on.
__device__ float placeWarm(const Tiles &tiles, Int parts, const Plan &plan, Length *lengths, Runs *placed) {
  const Int count = tiles.count * parts;
#pragma unroll 1
  for (Int i = threadIdx.x % 32; i < count; i += 32) {
    const LongTile tile = tiles.tiles[quotient(i, parts)];
    const bool mine = tile.warm <= longestWarm && tiles.isLong(tile.chunks, plan.deadline.m);
    const float step = plan.run - (tile.warm * stateStep + start), size = tile.chunks + start, each = inverse(step);
    lengths[i] = mine ? Length{size, step, each, (size - lastMore) * each + 0.4999f} : Length{};
  }
  __syncwarp();
  float room = plan.run; // from here to where the share ends
  Length next = lengths[0];
#pragma unroll 4
  for (Int i = 0; i < count; ++i) {
    const Length tile = next;
    next = lengths[min(i + 1, count - 1)];
    // Below so much a tile begins a share rather than that its first run outlasts one. A comparison would take longer.
    constexpr float huge = 0x1p96f, enough = start + least;
    room = fminf(plan.run, room + huge * __saturatef(huge * enough - huge * room));
    constexpr float whole = 3 << 22; // rounds up, but for what is far below a chunk, four times as fast as a conversion
    const float cuts = fmaxf(0, tile.most - room * tile.each + whole - whole);
    placed[i] = {room - start, cuts};
    room = cuts * tile.step + (room - tile.size);
  }
  return plan.run - room;
}

// Hand-overs of a tile at `at` on the line: where a run of it ends.
__device__ Int handsOf(Int chunks, float at, float run, float &slice) {
  float room = run - modulo(at, run);
  if (room <= start + leastRest)
    room += run;
  slice = room - start;
  const float more = chunks - leastRest - slice;
  return more < 0 ? 0 : Int(more * inverse(run - start)) + 1;
}

__device__ Count countOf(const Call &call, const CutTile &tile) {
  const Int x = tile.cuts;
  if (tile.part < 0)
    return {1, call.parts * (3 * x + 2) + call.shape.valueDim / 64 * ((x + maxHops - 1) / maxHops), 1, x, 0};
  return {1, 1 + x + tile.hands, tile.hands, 0, 0};
}

// A tile, and where it goes. None: with another, or it is listed elsewhere. Fixed: as `cut` says.
struct Candidate {
  enum { None, Whole, Line, Fixed } way;
  Span span;
  Int sequence, head, part;
  Int warm; // on the line: longest warm-up, or more where runs are not cut
  CutTile cut;
};

// Number i of `end`: the tiles that might be cut for parallelism and then all, in the order of memory. Those that are
// not stay whole where they are short.
__device__ Candidate candidate(const Call &call, const Tiles &tiles, const Plan &plan, Int i, Int end) {
  const Int count = tiles.count * call.parts, place = i < count ? i : i - count;
  const Int ofHead = call.ofParts(place), part = place - ofHead * call.parts;
  if (i >= end)
    return {};
  LongTile tile{0, 0, 0, longestWarm + 1};
  if (i < count) {
    tile = tiles.tiles[ofHead];
  } else {
    tile.sequence = quotient(ofHead, call.shape.heads);
    tile.head = ofHead - tile.sequence * call.shape.heads;
  }
  const Span span = call.span(tile.sequence);
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
    segments = segmentsOf(chunks, plan.deadline);
  }
  found.way = linked && part ? Candidate::None : Candidate::Fixed;
  found.cut = {tile.sequence,      span.begin,      span.end,      tile.head,
               linked ? -1 : part, segments.middle, segments.root, segments.step};
  return found;
}

// Cuts the tiles that lie on the line: those with warm-ups as they are placed, and the others, if there are any, end to
// end from `line` on, which then is where they end.
__device__ void cutOnLine(const Plan &plan, Candidate &tile, const Runs *placed, Int i, float &line) {
  const bool mine = tile.way == Candidate::Line, decays = mine && tile.warm <= longestWarm, plain = mine && !decays;
  const Int chunks = tile.span.chunks();
  float place = 0, total = 0;
  if (plan.anyPlain)
    place = line + prefix(plain ? chunks + start : 0, plain, total);
  line += total;
  if (!mine)
    return;
  tile.cut = {tile.sequence, tile.span.begin, tile.span.end, tile.head, tile.part};
  if (plain) {
    tile.cut.hands = handsOf(chunks, place, plan.run, tile.cut.slice);
  } else {
    tile.cut.cuts = Int(placed[i].cuts);
    tile.cut.first = placed[i].first;
    tile.cut.step = plan.run - (tile.warm * stateStep + start);
  }
}

} // namespace
