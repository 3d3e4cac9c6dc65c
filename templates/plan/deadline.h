// The deadline: what the plan that follows from one would take, and the one that would take least.
#pragma once
#include "plan/lengths.h"

namespace {

struct Deadline {
  float m;    // tiles that are longer are cut for parallelism
  bool twice; // makers of those that are cut by transition may take turns, two rounds of them while a root runs
};

// Tiles of equal length that decay alike are counted once.
struct alignas(16) Kind {
  Int chunks, warm, count;
  Int unused; // read with the others, at once
};

// Long tiles, and a sum of the others, which no deadline cuts for parallelism.
struct Tiles {
  LongTile *tiles;
  Int count;
  float rest;  // steps of the others
  Int most;    // chunks of the longest of them
  Int longest; // chunks: of it or shorter ones
  bool all;    // there was a place for all
  __device__ bool isLong(Int chunks, float m) const { return chunks > longest && chunks + start > m; }
};
struct Kinds {
  Kind kinds[mostLong];
  Int count;
  Int least; // chunks of the shortest
  Word best; // of the deadlines: a time, but for its last bits, and in these whose it is
};

// How a tile is cut by transition: a root, `middle` segments of which M and N are made, and a rest; segments but the
// root have dependents. In steps, from A on, when root and first makers have run, a scan makes a hop each `hop`, and
// whatever a hop needs or makes possible has just the time for it that there is until then, or from then to the end:
//   segment j + 1, j = 0 .. middle, is min((A + j hop) / stateStep, room - A - j hop) long, the root A - start / 2,
// where `room` is what starts and flags leave of the deadline. The extra work hardly depends on the number of segments.
struct Segments {
  Int middle;       // 0: there is no such cut
  float root, step; // step = room - A
  __device__ float begin() const { return root + start / 2; }
  __device__ float maker(float j) const { // what one of segment j + 1 takes
    return fminf(begin() + j * hop, (step - j * hop) * stateStep) + start;
  }
  // Segments that makers bound, before those that dependents do.
  __device__ Int rising() const { return risingOf(begin() + step, begin(), middle); }
  static __device__ Int risingOf(float room, float begin, Int middle) {
    const float peak = room * (stateStep / (1 + stateStep));
    // At the most so many that another one's way is up, too, with all that it moves.
    const Int most = Int(ceilf(middle * (stateStep / (1 + stateStep)))) - 1;
    return max(0, min(most, Int(ceilf((peak - begin) * (1 / hop)))));
  }
  // Of segment j; `fall` in the place of `hop`, as where all are of one length nothing rises.
  __device__ Int end(Int j, Int chunks, float fall) const {
    const Int up = fall > 0 ? min(j, rising()) : 0, ups = up * (up - 1) / 2;
    const float risen = (up * begin() + ups * hop) * (1 / stateStep),
                fallen = (j - up) * step - (j * (j - 1) / 2 - ups) * fall;
    return j > middle ? chunks : Int(rintf(root + risen + fallen));
  }
};

// The fewest segments that end by the deadline, and of these the longest root. `twice`: one that is as long as two
// rounds of makers.
__device__ Segments segmentsOf(Int chunks, const Deadline &deadline) {
  const float room = deadline.m - linkedFixed, all = chunks + start / 2, more = all - room;
  // The quadratic in their number whose root it is: where nothing rises; and where the first is as long as the last.
  const float b = deadline.twice ? (room - start) * (1 / (1 + 2 * stateStep)) - hop / 2 : room - (1 + stateStep) * hop;
  const float square = b * b - 2 * hop * (deadline.twice ? more : (1 + stateStep) * more);
  if (!(b > 0) || !(square >= 0))
    return {};
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square));
  const Int x = max(1, Int((b - root) * (1 / hop) + 0.99f));
  if (x > maxHops || chunks < 2 * (x + 2))
    return {};
  float begin;
  Int rising = 0;
#pragma unroll 1
  for (Int next = 0;; rising = next) { // the sum of lengths is concave in A, and linear for as many that rise
    const float slope = x - rising * (1 + 1 / stateStep), ups = rising * (rising - 1) * (1 + 1 / stateStep);
    begin = ((x + 1 - rising) * room - hop / 2 * (x * (x + 1) - ups) - all) * inverse(slope);
    next = Segments::risingOf(room, begin, x);
    if (next <= rising)
      break;
  }
  if (begin < 1 + start / 2 || room - begin - x * hop < 1)
    return {};
  return {x, begin - start / 2, room - begin};
}

// The time that a plan would take, `never` where there is none. Runs of m keep blocks of their own busy, and what
// transitions link has the others.
__device__ float estimate(const Call &call, const Tiles &tiles, const Kinds &kinds, const Deadline &deadline) {
  const float blocks = call.shape.blocks, m = deadline.m;
  const float scan = (call.shape.valueDim / 64) * hop * inverse(call.parts); // a segment and tile
  const bool hops = call.shape.hops();
  float free = 0, linked = 0; // steps
  Int roots = 0, middle = 0;
  Segments most{};
  bool possible = true;
#pragma unroll 1
  for (Int i = 0; i < kinds.count; ++i) {
    const Kind tile = kinds.kinds[i];
    const bool isLong = tiles.isLong(tile.chunks, m);
    if (isLong && tile.warm > longestWarm) {
      const Segments cut = segmentsOf(tile.chunks, deadline);
      const Int x = cut.middle;
      possible &= x > 0 & hops;
      const float made = cut.end(x, tile.chunks, hop) - cut.root;
      linked += tile.count * (tile.chunks + (3 * x + 2) * start + 2 * stateStep * made + x * scan);
      roots += tile.count;
      middle += tile.count * x;
      if (x > most.middle)
        most = cut;
    } else {
      const float extra = tile.warm * stateStep + start + 0.5f;  // half a chunk is lost to rounding
      const float cuts = (tile.chunks - m) * inverse(m - extra); // also where there are none: not to branch
      possible &= !isLong || m > 1.5f * extra;
      free += tile.count * (tile.chunks + start + (isLong ? cuts * extra : 0));
    }
  }
  if (!possible || middle > call.at.matrices)
    return never;
  free *= call.parts;
  linked *= call.parts;
  roots *= call.parts;
  middle *= call.parts;
  const bool fills = tiles.most * shortShare <= m; // what gaps there are
  const float own = blocks - (free + (fills ? 0 : tiles.rest)) * inverse(m), share = inverse(blocks);
  if (!roots)
    return (free + tiles.rest) * share > packed * m ? never : m;
  if (own <= roots)
    return never;
  const float work =
      ((free + tiles.rest) * (1 / packed) + linked * inverse(packedLeast + own * share * packedMore)) * share;
  // Makers take turns on the blocks beside the roots, those that are needed sooner first; then dependents.
  const float turns = 2 * middle * inverse(own - roots), rounds = ceilf(turns), each = most.middle * inverse(turns);
  const float needed = most.begin() + start + (rounds - 1) * each * hop; // by the scan, the first of the last round
  const float late = rounds > 1 ? fmaxf(0, rounds * most.maker(rounds * each / 2) - needed) : 0;
  const float after = (roots + middle) * inverse(own), more = fmaxf(1, (after + ceilf(after)) / 2) - 1;
  return fmaxf(m + late + more * (most.step + start), work);
}

// The kinds of 32 tiles at a time, in the order of tiles.
__device__ void findKinds(const Tiles &tiles, Kinds &kinds) {
  const Int lane = threadIdx.x;
  Int count = 0, least = tiles.tiles[0].chunks;
#pragma unroll 1
  for (Int base = 0; lane < 32 && base < tiles.count; base += 32) {
    const bool mine = base + lane < tiles.count;
    const LongTile tile = mine ? tiles.tiles[base + lane] : LongTile{};
    const Word same = __match_any_sync(~0u, mine ? tile.chunks * 64 + tile.warm : -1), before = (1u << lane) - 1;
    const bool first = mine && !(same & before);
    const Word firsts = __ballot_sync(~0u, first);
    if (first)
      kinds.kinds[count + __popc(firsts & before)] = {tile.chunks, tile.warm, __popc(same)};
    count += __popc(firsts);
    least = min(least, __reduce_min_sync(~0u, mine ? tile.chunks : least));
  }
  if (lane == 0)
    kinds.count = count, kinds.least = least, kinds.best = ~0u;
  __syncthreads();
}
static_assert(longestWarm + 1 < 64);

// Tries deadlines from `low`, the blocks' mean, to `high`, the longest tile, in a geometric series, a thread each. Of
// equal ones that is taken which leaves makers more time, then the smaller. Returns `uncut`, which takes `time`, where
// none wins enough.
__device__ Deadline search(const Call &call, const Tiles &tiles, float low, float high, const Deadline &uncut,
                           float time, Kinds &kinds) {
  const float from = fmaxf(low, linkedFixed), ratio = fmaxf(1.5f, high * inverse(from)) * 1.02f;
  auto deadline = [&](Int i) { return Deadline{from * exp2f(__log2f(ratio) * (i / 2) * (2.f / threads)), i % 2 == 0}; };
  const Deadline mine = deadline(threadIdx.x);
  const float takes = estimate(call, tiles, kinds, mine);
  static_assert((threads & (threads - 1)) == 0);
  if (mine.m < high && takes * margin + fee < time)
    atomicMin(&kinds.best, (__float_as_uint(takes) & ~Word(threads - 1)) | threadIdx.x);
  __syncthreads();
  const Word best = kinds.best;
  return best == ~0u ? uncut : deadline(best % threads);
}

} // namespace
