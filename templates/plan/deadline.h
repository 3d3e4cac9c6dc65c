// The deadline: what the plan that follows from one would take, and the one that would take least.
#pragma once
#include "plan/common.h"

namespace {

struct Deadline {
  float time;  // estimated makespan
  float m;     // tiles that are longer are cut for parallelism
  float limit; // of the path of those that are cut by transition
  float run;   // from one warm-up cut to the next
  float free;  // work of the tiles that no transition links
  Int linked;  // tiles that one does
};

// Long tiles, and a sum of the others, which no deadline cuts for parallelism.
struct Tiles {
  const LongTile *tiles;
  Int count;
  Most rest;   // steps, and the longest's chunks
  Int longest; // chunks: of it or shorter ones
  bool all;    // there was a place for all
  __device__ bool isLong(Int chunks, float m) const { return chunks > longest && chunks + start > m; }
};

// The fewest segments whose path, a root and then one dependent segment, ends by the limit. Each dependent is shorter
// by one hop than the one before, so that all end together: for x middle segments the first takes
//   d(x) = rest / x + hop (x + 1) / 2   where rest is what root and one dependent cannot take,
// which must leave rootShare d for the root. Fewest is cheapest: the extra work hardly depends on the number.
struct Segments {
  Int middle; // 0: there is no such cut
  float root, step;
  // Of segment j, each shorter by `fall` than the one before.
  __device__ Int end(Int j, Int chunks, float fall) const {
    return j > middle ? chunks : Int(rintf(root + j * step - fall * (j * (j - 1) / 2)));
  }
};

__device__ Segments segmentsOf(Int chunks, float limit) {
  const float room = limit - linkedFixed, rest = chunks - room;
  const float most = fminf(room / (1 + rootShare), room - 1); // of d(x)
  const float b = most - hop / 2, square = b * b - 2 * hop * rest;
  if (!(rest > 0) || !(most > 0) || !(square >= 0))
    return {};
  auto first = [&](Int x) { return rest / x + hop * (x + 1) / 2; };
  Int x = max(1, Int((b - sqrtf(square)) / hop)); // where d(x) = most, rounded down
#pragma unroll 1
  while (first(x) > most && x <= maxHops)
    ++x;
  const float step = first(x);
  if (x >= maxHops || step - x * hop < 1 || chunks < 2 * (x + 2))
    return {};
  return {x, room - step, step};
}

// Sums and maxima over the 8 threads that share a deadline.
constexpr Int lanes = threads / tries;
template <typename T> __device__ T sumOf(T x) {
  for (Int d = 1; d < lanes; d *= 2)
    x += __shfl_xor_sync(~0u, x, d);
  return x;
}
template <typename T> __device__ T mostOf(T x) {
  for (Int d = 1; d < lanes; d *= 2)
    x = max(x, __shfl_xor_sync(~0u, x, d));
  return x;
}

// What the tiles that no transition links come to, with runs of `run` between warm-ups; `longest` is the longest item,
// `warmest` the longest warm-up.
struct Free {
  float work, longest, warmest;
  bool possible, linked;
};
__device__ Free freeWork(const Call &call, const Tiles &tiles, float m, float run) {
  Free sum{0, tiles.rest.most ? tiles.rest.most + start : 0, 0, true, false};
#pragma unroll 1
  for (Int i = threadIdx.x % lanes; i < tiles.count; i += lanes) {
    const LongTile tile = tiles.tiles[i];
    const float whole = tile.chunks + start, warm = tile.warm * stateStep + start;
    const bool decays = tile.warm <= longestWarm;
    if (decays)
      sum.warmest = fmaxf(sum.warmest, warm);
    if (!tiles.isLong(tile.chunks, m)) {
      sum.work += whole;
      sum.longest = fmaxf(sum.longest, whole);
    } else if (!decays) {
      sum.linked = true;
    } else {
      const float extra = warm + 0.5f; // half a chunk is lost to rounding
      sum.possible &= run > 1.5f * extra;
      sum.work += whole + (tile.chunks - run) / (run - extra) * extra;
      sum.longest = fmaxf(sum.longest, run);
    }
  }
  sum.work = sumOf(sum.work) * call.parts + tiles.rest.sum;
  sum.longest = mostOf(sum.longest);
  sum.warmest = mostOf(sum.warmest);
  sum.possible = !mostOf(Int(!sum.possible));
  sum.linked = mostOf(Int(sum.linked));
  return sum;
}

// What the tiles that are cut by transition come to: first what needs no other, then what does.
struct Linked {
  float first, second, path, root, step; // steps; the longest path, root and dependent
  Int roots, middle;                     // roots; M and N, of middle segments
  bool possible;
};
__device__ Linked linkedWork(const Call &call, const Tiles &tiles, float m, float limit) {
  Linked sum{0, 0, 0, 0, 0, 0, 0, true};
  const float hops = call.shape.valueDim / 64 * hop / call.parts; // a segment and tile
#pragma unroll 1
  for (Int i = threadIdx.x % lanes; i < tiles.count; i += lanes) {
    const LongTile tile = tiles.tiles[i];
    if (tile.warm <= longestWarm || !tiles.isLong(tile.chunks, m))
      continue;
    const Segments cut = segmentsOf(tile.chunks, limit);
    auto end = [&](Int j) { return cut.end(j, tile.chunks, hop); };
    const Int x = cut.middle, root = end(0), second = end(1), step = max(second - root, end(2) - second);
    sum.possible &= x > 0 && call.shape.hops();
    sum.first += root + start + 2 * (stateStep * (end(x) - root) + x * start);
    sum.second += tile.chunks - root + (x + 1) * start + x * hops;
    sum.path = fmaxf(sum.path, root + step + linkedFixed);
    sum.root = fmaxf(sum.root, root);
    sum.step = fmaxf(sum.step, step);
    sum.roots += 1;
    sum.middle += x;
  }
  sum.first = sumOf(sum.first) * call.parts;
  sum.second = sumOf(sum.second) * call.parts;
  sum.path = mostOf(sum.path);
  sum.root = mostOf(sum.root);
  sum.step = mostOf(sum.step);
  sum.roots = sumOf(sum.roots);
  sum.middle = sumOf(sum.middle);
  sum.possible = !mostOf(Int(!sum.possible)) && sum.middle <= call.at.matrices;
  return sum;
}

// Where little else is there, linked items run in waves: others beside them on blocks of their own, or before them.
__device__ float wavesOf(const Call &call, const Free &free, const Linked &linked, float m, float work) {
  const float blocks = call.shape.blocks, roots = linked.roots * call.parts, pairs = linked.middle * call.parts;
  float best = never;
#pragma unroll 1
  for (Int before = 0; before < 2; ++before) {
    const float own = before ? blocks : blocks - free.work / m;
    if (own < fmaxf(1, 0.1f * blocks))
      continue;
    const float waves = own > roots ? ceilf(2 * pairs / (own - roots)) : 0;
    const float first = fmaxf(fmaxf(linked.root + start, (linked.first + (before ? free.work : 0)) / own),
                              waves * (stateStep * linked.step + start));
    if (before && free.longest > first) // some of the others would still run beside the dependents
      continue;
    const float second = ceilf((pairs + roots) / own) * (linked.step + start);
    best = fminf(best, fmaxf(fmaxf(work, linked.path), first + 2 * flag + second));
  }
  return best;
}

// The plan that deadline m gives; its time is `never` where there is none.
__device__ Deadline estimate(const Call &call, const Tiles &tiles, float m) {
  const float blocks = call.shape.blocks;
  Deadline plan{never, m, m, m, 0, 0};
  Free free;
  bool many = false, possible = true;
#pragma unroll 1
  for (Int pass = 0; pass < 2; ++pass) {
    free = freeWork(call, tiles, m, plan.run);
    possible &= free.possible;
    if (pass || !free.linked || free.work <= manyShare * blocks * m)
      continue;
    many = true; // then runs leave slack, and so do paths
    plan.limit = m * pathShare;
    plan.run = fminf(m, fmaxf(m / 2, leastSlice * free.warmest));
  }
  const Linked linked = linkedWork(call, tiles, m, plan.limit);
  plan.free = free.work;
  plan.linked = linked.roots;
  const float work = (free.work + linked.first + linked.second) / blocks / packedLinked;
  if (!possible || !linked.possible)
    return plan;
  if (many)
    plan.time = fmaxf(fmaxf(work, linked.path / pathShare), free.longest);
  else if (free.linked)
    plan.time = wavesOf(call, free, linked, m, work);
  else if (free.work <= packed * blocks * m)
    plan.time = fmaxf(free.work / blocks / packed, free.longest);
  return plan;
}

// Tries deadlines from `low`, the blocks' mean, to `high`, the longest tile, in a geometric series.
__device__ Deadline search(const Call &call, const Tiles &tiles, float low, float high, const Deadline &uncut) {
  __shared__ Deadline tried[tries];
  __shared__ Word best; // a time, but for its last bits, and in these whose it is: the smaller deadline of equal ones
  const Int mine = threadIdx.x / lanes;
  float ratio = fmaxf(1.5f, high / low) * 1.02f, m = low;
  for (Int i = 1; i < tries; i *= 2)
    ratio = sqrtf(ratio); // the 64th root
  for (Int i = 1; i < tries; i *= 2, ratio *= ratio)
    if (mine & i)
      m *= ratio;
  const Deadline plan = estimate(call, tiles, m);
  if (threadIdx.x == 0)
    best = ~0u;
  __syncthreads();
  if (threadIdx.x % lanes == 0 && m < high && plan.time * margin + fee < uncut.time) {
    tried[mine] = plan;
    atomicMin(&best, (__float_as_uint(plan.time) & ~Word(tries - 1)) | mine);
  }
  __syncthreads();
  return best == ~0u ? uncut : tried[best % tries];
}

} // namespace
