// How soon the state decays before each boundary between chunks, of the sequences that may be cut.
#pragma once
#include "plan/lengths.h"

namespace {

// A row is a chunk of 8 heads: a warp sums their gates. All blocks share the rows. Then one walks along each tile that
// may be cut, for how many chunks before any boundary leave nothing of the state.
constexpr Int tokenLanes = 32 / rowHeads, rowLength = chunkTokens / tokenLanes; // values that a lane sums

// Log decays in fixed point, which come to the same in any order. Rounded up; what is cut off is enough alone or, where
// the state grows, too much for 31 others.
constexpr float decayUnit = 1 << 12;
__device__ Int fixedDecay(float decay) {
  constexpr float most = 640;
  return Int(ceilf((decay <= most ? fmaxf(decay, -20) : most) * decayUnit));
}
__device__ Int goneDecay(const Call &call) {
  return call.shape.flags & Fast ? Int(-10 * decayUnit) : Int(-16.7f * decayUnit); // e^-16.7 < 2^-24
}

// That of a chunk which is not the last of its sequence, as that is before no boundary.
__device__ Int *decayAt(const Call &call, Int begin, Int chunk, Int head) {
  // The next sequence begins behind the last chunk that counts: no two meet.
  return call.place<Int>(decayPlace) + head * decaysOf(call.shape) + begin / chunkTokens + chunk;
}

__device__ float halfOf(unsigned short bits, Int type) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return type == 1 ? __uint_as_float(Word(bits) << 16) : value;
}
__device__ float valueOf(const char *data, Int type) {
  return type == 0 ? *reinterpret_cast<const float *>(data)
                   : halfOf(*reinterpret_cast<const unsigned short *>(data), type);
}

// Rows that a warp reads at a time, as far as they are there: those that are not lie nowhere. Of computed gates one.
constexpr Int together = 2;

// What a lane sums of them: values `step` bytes apart, all on their way at a time.
template <typename Raw, typename Value>
__device__ void sumRows(const char *const (&at)[together], long long step, float (&sums)[together], Value value) {
  Raw raw[together][rowLength];
#pragma unroll
  for (Int r = 0; r < together; ++r)
    if (at[r])
#pragma unroll
      for (Int i = 0; i < rowLength; ++i)
        raw[r][i] = *reinterpret_cast<const Raw *>(at[r] + i * step);
#pragma unroll
  for (Int r = 0; r < together; ++r)
    if (at[r])
#pragma unroll
      for (Int i = 0; i < rowLength; ++i)
        sums[r] += value(raw[r][i]);
}

// The same of a gate that must be computed. What the fast functions round is far below what a threshold is about; a
// softplus below 2^-24 reads as none, which is on the safe side.
__device__ float sumComputed(const Call &call, const char *at, long long step, Int head) {
  const bool raw = call.options & 2;
  const float rate = raw ? __expf(valueOf(call.aLog + head * (call.aLogType ? 2 : 4), call.aLogType)) : 0;
  const float bias = raw && call.dtBias ? valueOf(call.dtBias + head * (call.dtBiasType ? 2 : 4), call.dtBiasType) : 0;
  float sum = 0;
#pragma unroll 8
  for (Int i = 0; i < rowLength; ++i) {
    const float x = valueOf(at + i * step, call.gType) + bias;
    sum += raw ? -rate * (fmaxf(x, 0) + __logf(1 + __expf(-fabsf(x)))) : __logf(x);
  }
  return sum;
}

// Row `row` of a sequence and others `turns` apart, of `rows`; `groups` heads' of a chunk follow each other.
__device__ void readRows(const Call &call, Span span, Int row, Int turns, Int rows, Int groups) {
  const Int lane = threadIdx.x % 32, last = call.shape.heads - 1, type = call.gType, bytes = type == 0 ? 4 : 2;
  const long long ofToken = call.gToken * bytes, step = ofToken * tokenLanes;
  Int chunks[together], heads[together];
  const char *at[together];
#pragma unroll
  for (Int r = 0; r < together; ++r, row += turns) {
    chunks[r] = groups == 1 ? row : row / groups;
    heads[r] = (row - chunks[r] * groups) * rowHeads + lane % rowHeads;
    const Int token = span.begin + chunks[r] * chunkTokens + lane / rowHeads;
    at[r] = row < rows && !(r && call.options) ? call.g + min(heads[r], last) * call.gHead * bytes + token * ofToken
                                               : nullptr;
  }
  float sums[together] = {};
  if (call.options)
    sums[0] = sumComputed(call, at[0], step, min(heads[0], last));
  else if (type == 0)
    sumRows<float>(at, step, sums, [](float g) { return g; });
  else
    sumRows<unsigned short>(at, step, sums, [&](unsigned short g) { return halfOf(g, type); });
#pragma unroll
  for (Int r = 0; r < together; ++r) {
#pragma unroll
    for (Int d = rowHeads; d < 32; d *= 2)
      sums[r] += __shfl_xor_sync(~0u, sums[r], d);
    if (lane < rowHeads && heads[r] <= last && at[r])
      *decayAt(call, span.begin, chunks[r], heads[r]) = fixedDecay(sums[r]);
  }
}

// All warps of all blocks take rows by turns.
__device__ void readGates(const Call &call, Int longest, bool isListed, LongSequences &found) {
  const Int groups = (call.shape.heads + rowHeads - 1) / rowHeads, turns = gridDim.x * readerWarps;
  const Int step = call.options ? turns : together * turns;
  Int next = blockIdx.x + gridDim.x * (threadIdx.x / 32);
#pragma unroll 1
  for (Int base = 0; base < call.shape.sequences; base += readers) {
    if (!isListed)
      listLong(call.loadOrNone(base + threadIdx.x), longest, false, found);
    const Int count = found.all.count;
#pragma unroll 1
    for (Int i = 0; i < count; ++i) {
      const Span span = found.spans[found.numbers[i]];
      const Int rows = (span.chunks() - 1) * groups;
#pragma unroll 1
      for (; next < rows; next += step)
        readRows(call, span, next, turns, rows, groups);
      next -= rows + (next >= rows + turns ? turns : 0); // it may be the second row's turn
    }
  }
}

// Along a tile go 8, 16 or 32 lanes of a warp, each with eight chunks at a time. In shared memory lie a warp's rows of
// 32 sums from the tile's start on, those of a lane below each other and behind those of the 32 chunks before.
constexpr Int stretch = 8, fewestLanes = 8, walkRows = longestWarm / fewestLanes + stretch;
struct Walk {
  Int sums[readerWarps][walkRows][32];
};

// Adds to each what comes before: of the tile's lanes, in the order of chunks, and `before` these, which then is the
// sum of all.
__device__ void addUp(Int (&sums)[stretch], Int lanes, Int &before) {
  const Int lane = threadIdx.x % 32, place = lane & (lanes - 1);
#pragma unroll 1
  for (Int d = 1; d < lanes; d *= 2)
#pragma unroll
    for (Int i = 0; i < stretch; ++i) {
      const Int other = __shfl_sync(~0u, sums[i], lane - d);
      sums[i] += place >= d ? other : 0;
    }
#pragma unroll
  for (Int i = 0; i < stretch; ++i) {
    const Int all = __shfl_sync(~0u, sums[i], lane | (lanes - 1));
    sums[i] += before;
    before += all;
  }
}

// How many chunks before any boundary of a tile leave nothing of the state, or reach the sequence's start; more than
// longestWarm where those do not. No tile has more than `most` boundaries.
__device__ Int warmOf(const Call &call, const LongTile &tile, Int bits, Int most, Int (&rows)[walkRows][32]) {
  constexpr Int none = 1 << 28, start = 1 << 30; // far more than 32 chunks come to
  const Int lane = threadIdx.x % 32, lanes = 1 << bits, place = lane & (lanes - 1), firstLane = lane - place;
  const Int halo = longestWarm >> bits, boundaries = tile.chunks - 1, gone = goneDecay(call);
  const Int others = call.shape.invariant() ? cutLength - 1 : 0; // bits of no boundary
  const Word ofTile = (2u << (lanes - 1)) - 1 << firstLane;
  const Int *decays = decayAt(call, call.span(tile.sequence).begin, place, tile.head);
  Int next[stretch], sums[stretch], few = 0, before = 0;
  auto load = [&](Int first) {
#pragma unroll
    for (Int i = 0; i < stretch; ++i)
      next[i] = first + i * lanes + place < boundaries ? decays[first + i * lanes] : 0;
  };
  auto isShort = [&](Int chunks) { // before some boundary
    const Int at = place - min(chunks, longestWarm), *from = &rows[halo + (at >> bits)][firstLane + (at & (lanes - 1))];
    Int ends[2] = {-start, -start};
#pragma unroll
    for (Int i = 0; i < stretch; ++i)
      ends[i % 2] = max(ends[i % 2], sums[i] - from[i * 32]);
    return (__ballot_sync(~0u, max(ends[0], ends[1]) >= gone) & ofTile) && chunks <= longestWarm;
  };
  load(0);
#pragma unroll 1
  for (Int i = 0; i < halo; ++i)
    rows[stretch + i][lane] = start; // from the sequence's start on nothing is dropped
#pragma unroll 1
  for (Int first = 0; first < most; first += stretch * lanes) {
#pragma unroll
    for (Int i = 0; i < stretch; ++i)
      sums[i] = next[i];
    if (first + stretch * lanes < most)
      load(first + stretch * lanes);
    addUp(sums, lanes, before);
#pragma unroll 1
    for (Int i = 0; i < halo; ++i)
      rows[i][lane] = rows[stretch + i][lane];
#pragma unroll
    for (Int i = 0; i < stretch; ++i) {
      const Int boundary = first + i * lanes + place + 1;
      rows[halo + i][lane] = sums[i];
      sums[i] -= boundary <= boundaries && !(boundary & others) ? 0 : none;
    }
    __syncwarp();
    bool more = first > 0; // then by one or two at most, as a rule
    while (more) {
      const bool mine = isShort(few + 1);
      few += mine;
      more = __any_sync(~0u, mine);
    }
    if (first == 0)
#pragma unroll
      for (Int step = 6; step; step = step == 6 ? 1 : 0) { // of five numbers at once the first that is enough
        Word shorts = 0;
#pragma unroll
        for (Int i = 0; i < 5; ++i)
          shorts |= Word(isShort(few + step * (i + 1))) << i;
        few += step * (__ffs(~shorts) - 1);
      }
    __syncwarp();
  }
  // From the start is no way out where nothing decays: then the last boundary would go back all the way, too.
  const bool stays = boundaries <= longestWarm && !(boundaries & others) && before >= gone;
  return stays ? longestWarm + 1 : few + 1;
}
static_assert(longestWarm == 32 && walkRows - stretch == 4);

// The longest warm-up of each of them; `most` chunks has the longest.
__device__ void findWarm(const Call &call, const Tiles &tiles, Int most, Walk &walk) {
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  auto bitsFor = [](Int count, Int each) { return count > 2 * each ? 5 : count > each ? 4 : 3; };
  const Int bits = min(8 - bitsFor(tiles.count, readerWarps), bitsFor(most, fewestLanes * stretch)),
            together = 32 >> bits;
#pragma unroll 1
  for (Int first = warp * together; first < tiles.count; first += readerWarps * together) {
    const Int at = first + (lane >> bits);
    const LongTile tile = at < tiles.count ? tiles.tiles[at] : LongTile{};
    const Int warm = warmOf(call, tile, bits, most - 1, walk.sums[warp]);
    if (at < tiles.count)
      tiles.tiles[at].warm = warm;
  }
  __syncthreads();
}

// Of a boundary of a tile that decays.
__device__ Int warmUp(const Call &call, const CutTile &tile, Int boundary) {
  constexpr Int together = 8;
  const Int *decays = decayAt(call, tile.begin, boundary - 1, tile.head), gone = goneDecay(call);
  Int decay = 0;
#pragma unroll 1
  for (Int done = 0; done < min(boundary, longestWarm); done += together) {
    Int sums[together];
#pragma unroll
    for (Int i = 0; i < together; ++i)
      sums[i] = done + i < boundary ? decays[-done - i] : 0;
    Word below = 0; // a bit for each number of chunks
#pragma unroll
    for (Int i = 0; i < together; ++i) {
      decay += sums[i];
      below |= Word(decay < gone) << i;
    }
    if (below)
      return min(done + __ffs(below), boundary);
  }
  return min(boundary, longestWarm);
}

// Tells that the block is through; `isLast`, from the next barrier on, whether all others were. The counter is tagged,
// since the workspace holds whatever it may at first: then one block sets the tag and the others count again. The last
// one leaves it as the next plan wants it.
__device__ void arrive(const Call &call, bool &isLast) {
  constexpr unsigned long long tag = 0x504c414eull << 32, mask = ~0ull << 32;
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  auto *arrivals = call.place<unsigned long long>(arrivalsPlace);
  auto count = [&] { // for the block, of whose writes the barrier has told this thread
    unsigned long long before;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(arrivals) : "memory");
    return before;
  };
  unsigned long long before = count();
#pragma unroll 1
  for (unsigned long long seen = before + 1; (before & mask) != tag;) {
    const unsigned long long found = atomicCAS(arrivals, seen, tag + 1);
    if (found == seen)
      before = tag;
    else if ((found & mask) == tag)
      before = count();
    else
      seen = found;
  }
  isLast = Word(before) + 1 == gridDim.x;
  if (isLast)
    atomicExch(arrivals, tag);
}

} // namespace
