// The deadline: what the plan that follows from one would take, and the one that would take least.
#pragma once
#include "plan/lengths.h"

namespace {

struct Deadline {
  float time;  // estimated makespan
  float m;     // tiles that are longer are cut for parallelism
  float limit; // of the path of those that are cut by transition
  float run;   // from one warm-up cut to the next
  float free;  // work of the tiles that no transition links
  Int linked;  // tiles that one does
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
  Int least;   // chunks of the shortest
  Int warmest; // the longest warm-up, in chunks, of those that decay; 0 where none does
  Word best;   // of the deadlines: a time, but for its last bits, and in these whose it is
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
  const float most = fminf(room * (1 / (1 + rootShare)), room - 1); // of d(x)
  const float b = most - hop / 2, square = b * b - 2 * hop * rest;
  if (!(rest > 0) || !(most > 0) || !(square >= 0))
    return {};
  auto first = [&](Int x) { return rest * inverse(x) + hop * (x + 1) / 2; };
  float root; // whatever its last bits are, it is rounded down
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square));
  Int x = max(1, Int((b - root) * (1 / hop) + 0.999f)); // where d(x) = most, or the one before
#pragma unroll 1
  while (first(x) > most && x <= maxHops)
    ++x;
  const float step = first(x);
  if (x >= maxHops || step - x * hop < 1 || chunks < 2 * (x + 2))
    return {};
  return {x, room - step, step};
}

// Sums and maxima over the threads that share a deadline.
constexpr Int lanes = 4;
static_assert(tries * lanes <= threads);
template <typename T> __device__ T sumOf(T x) {
#pragma unroll
  for (Int d = 1; d < lanes; d *= 2)
    x += __shfl_xor_sync(~0u, x, d);
  return x;
}
template <typename T> __device__ T mostOf(T x) {
#pragma unroll
  for (Int d = 1; d < lanes; d *= 2)
    x = max(x, __shfl_xor_sync(~0u, x, d));
  return x;
}

__device__ bool anyOf(bool x) { // of the threads that share a deadline
  return __ballot_sync(~0u, x) >> (threadIdx.x & (32 - lanes)) & ((1u << lanes) - 1);
}

// What the tiles that no transition links come to; `longest` is the longest item.
struct Free {
  float work, longest;
  bool possible;
};

// With runs of m between warm-ups, and with shorter ones. Returns whether a transition links any.
__device__ bool freeWork(const Call &call, const Tiles &tiles, const Kinds &kinds, float m, const float (&runs)[2],
                         Free (&sums)[2]) {
  bool linked = false;
  for (Free &sum : sums)
    sum = {0, tiles.most ? tiles.most + start : 0, true};
#pragma unroll 1
  for (Int i = threadIdx.x % lanes; i < kinds.count; i += lanes) {
    const Kind tile = kinds.kinds[i];
    const bool isLong = tiles.isLong(tile.chunks, m), decays = tile.warm <= longestWarm, isCut = isLong && decays;
    const float whole = isLong && !decays ? 0 : tile.chunks + start;
    const float extra = tile.warm * stateStep + start + 0.5f; // half a chunk is lost to rounding
    linked |= isLong && !decays;
#pragma unroll
    for (Int r = 0; r < 2; ++r) {
      const float cuts = (tile.chunks - runs[r]) * inverse(runs[r] - extra); // also where there are none: not to branch
      sums[r].possible &= !isCut || runs[r] > 1.5f * extra;
      sums[r].work += tile.count * (whole + (isCut ? cuts * extra : 0));
      sums[r].longest = fmaxf(sums[r].longest, isCut ? runs[r] : whole);
    }
  }
  for (Free &sum : sums)
    sum = {sumOf(sum.work) * call.parts + tiles.rest, mostOf(sum.longest), !anyOf(!sum.possible)};
  return anyOf(linked);
}

// What the tiles that are cut by transition come to: first what needs no other, then what does.
struct Linked {
  float first, second, path, root, step; // steps; the longest path, root and dependent
  Int roots, middle;                     // roots; M and N, of middle segments
  bool possible;
};
__device__ Linked linkedWork(const Call &call, const Tiles &tiles, const Kinds &kinds, float m, float limit) {
  Linked sum{0, 0, 0, 0, 0, 0, 0, true};
  const float scan = (call.shape.valueDim / 64) * hop * inverse(call.parts); // a segment and tile
  const bool hops = call.shape.hops();
#pragma unroll 1
  for (Int i = threadIdx.x % lanes; i < kinds.count; i += lanes) {
    const Kind tile = kinds.kinds[i];
    if (tile.warm <= longestWarm || !tiles.isLong(tile.chunks, m))
      continue;
    const Segments cut = segmentsOf(tile.chunks, limit);
    auto end = [&](Int j) { return cut.end(j, tile.chunks, hop); };
    const Int x = cut.middle, root = end(0), second = end(1), step = max(second - root, end(2) - second);
    sum.possible &= x > 0 & hops;
    sum.first += tile.count * (root + start + 2 * (stateStep * (end(x) - root) + x * start));
    sum.second += tile.count * (tile.chunks - root + (x + 1) * start + x * scan);
    sum.root = fmaxf(sum.root, root);
    sum.step = fmaxf(sum.step, step);
    sum.path = fmaxf(sum.path, root + step + linkedFixed);
    sum.roots += tile.count;
    sum.middle += tile.count * x;
  }
  sum.first = sumOf(sum.first) * call.parts;
  sum.second = sumOf(sum.second) * call.parts;
  sum.path = mostOf(sum.path);
  sum.root = mostOf(sum.root);
  sum.step = mostOf(sum.step);
  sum.roots = sumOf(sum.roots);
  sum.middle = sumOf(sum.middle);
  sum.possible = !anyOf(!sum.possible) && sum.middle <= call.at.matrices;
  return sum;
}

// Where little else is there, linked items run in waves: others beside them on blocks of their own, or `before` them.
__device__ float wavesOf(const Call &call, const Free &free, const Linked &linked, float m, float work, bool before) {
  const float blocks = call.shape.blocks, roots = linked.roots * call.parts, pairs = linked.middle * call.parts;
  const float own = before ? blocks : blocks - free.work * inverse(m);
  const float waves = own > roots ? ceilf(2 * pairs * inverse(own - roots)) : 0;
  const float first = fmaxf(fmaxf(linked.root + start, (linked.first + (before ? free.work : 0)) * inverse(own)),
                            waves * (stateStep * linked.step + start));
  const float second = ceilf((pairs + roots) * inverse(own)) * (linked.step + start);
  // Else there is no place, or some of the others would still run beside the dependents.
  const bool fits = own >= fmaxf(1, 0.1f * blocks) && !(before && free.longest > first);
  return fits ? fmaxf(fmaxf(work, linked.path), first + 2 * flag + second) : never;
}

// The plan that deadline m gives; its time is `never` where there is none.
__device__ Deadline estimate(const Call &call, const Tiles &tiles, const Kinds &kinds, float m) {
  const float blocks = call.shape.blocks, share = inverse(blocks);
  Deadline plan{never, m, m, m, 0, 0};
  const float runs[] = {m, fminf(m, fmaxf(m / 2, leastSlice * (kinds.warmest * stateStep + start)))};
  Free frees[2];
  const bool isLinked = freeWork(call, tiles, kinds, m, runs, frees);
  const bool many = isLinked && frees[0].work > manyShare * blocks * m;
  if (many) { // then runs leave slack, and so do paths
    plan.limit = m * pathShare;
    plan.run = runs[1];
  }
  const Free free = many ? frees[1] : frees[0];
  Linked linked{0, 0, 0, 0, 0, 0, 0, true};
  float work = 0, waves = never;
  if (__any_sync(~0u, isLinked)) {
    linked = linkedWork(call, tiles, kinds, m, plan.limit);
    work = (free.work + linked.first + linked.second) * share * (1 / packedLinked);
    static_assert(lanes >= 2); // one tries either way
    waves = wavesOf(call, free, linked, m, work, threadIdx.x % 2);
    waves = fminf(waves, __shfl_xor_sync(~0u, waves, 1));
  }
  plan.free = free.work;
  plan.linked = linked.roots;
  if (!frees[0].possible || !free.possible || !linked.possible)
    return plan;
  if (many)
    plan.time = fmaxf(fmaxf(work, linked.path * (1 / pathShare)), free.longest);
  else if (isLinked)
    plan.time = waves;
  else if (free.work <= packed * blocks * m)
    plan.time = fmaxf(free.work * share * (1 / packed), free.longest);
  return plan;
}

// The kinds of 32 tiles at a time, in the order of tiles.
__device__ void findKinds(const Tiles &tiles, Kinds &kinds) {
  const Int lane = threadIdx.x;
  Int count = 0, warmest = 0, least = tiles.tiles[0].chunks;
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
    warmest = max(warmest, __reduce_max_sync(~0u, tile.warm <= longestWarm ? tile.warm : 0));
  }
  if (lane == 0)
    kinds.count = count, kinds.least = least, kinds.warmest = warmest, kinds.best = ~0u;
  __syncthreads();
}
static_assert(longestWarm + 1 < 64);

// Tries deadlines from `low`, the blocks' mean, to `high`, the longest tile, in a geometric series. Of equal ones the
// smaller is taken.
__device__ Deadline search(const Call &call, const Tiles &tiles, float low, float high, const Deadline &uncut,
                           Kinds &kinds, Deadline *tried) {
  if (threadIdx.x < tries * lanes) {
    const Int mine = threadIdx.x / lanes;
    const float ratio = fmaxf(1.5f, high * inverse(low)) * 1.02f;
    const float m = low * exp2f(__log2f(ratio) * mine * (1.f / tries));
    const Deadline plan = estimate(call, tiles, kinds, m);
    const float most = plan.time * (plan.linked ? marginLinked : margin) + fee; // estimates of transitions err more
    if (threadIdx.x % lanes == 0 && m < high && most < uncut.time) {
      tried[mine] = plan;
      atomicMin(&kinds.best, (__float_as_uint(plan.time) & ~Word(tries - 1)) | mine);
    }
  }
  __syncthreads();
  const Word best = kinds.best;
  return best == ~0u ? uncut : tried[best % tries];
}

} // namespace
