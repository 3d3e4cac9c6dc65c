// How soon the state decays before each boundary between chunks, of the sequences that may be cut.
#pragma once
#include "plan/lengths.h"

namespace {

// A unit is some boundaries of a sequence, a window, times 8 heads. It sums the gates of its chunks and of those before
// that its first boundary might go back to; then each boundary walks back until the sum is below the threshold, or to
// the sequence's start, from where the initial state is at hand. A byte a boundary holds the chunks; that of a unit's
// first boundary the most of the unit, from which a tile's most is read.
constexpr Int headGroup = unitHeads, halo = longestWarm - 1, tokenLanes = 32 / headGroup;
constexpr Int rows =
    (halo + (1 << mostWindow) + readerWarps - 1) / readerWarps; // chunks that a warp reads, all at once
static_assert((headGroup << mostWindow) <= readers && cutLength % (1 << mostWindow) == 0);

__device__ unsigned char *warmAt(const Call &call, Int begin, Int boundary, Int head) {
  // Boundaries within a sequence are 64 tokens apart, and its last is before the next one's first by more: no two meet.
  return call.place<unsigned char>(warmPlace) + (begin / chunkTokens + boundary) * (long long)call.shape.heads + head;
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

constexpr Int rowLength = chunkTokens / tokenLanes; // values that a lane sums of a chunk

// The sums of `count` rows, of values `step` bytes and rows `apart` bytes apart. Of two rows all values are on their
// way at a time, as many as a block's share of the bandwidth keeps there.
template <typename Raw, typename Value>
__device__ void sumRows(const char *at, long long step, long long apart, Int count, float (&sums)[rows], Value value) {
  constexpr Int together = 2;
  Raw raw[together][rowLength];
#pragma unroll
  for (Int next = 0; next < rows + together; ++next, at += apart) {
    const Int done = next - together;
    if (done >= 0 && done < count)
#pragma unroll
      for (Int i = 0; i < rowLength; ++i)
        sums[done] += value(raw[next % together][i]);
    if (next < rows && next < count)
#pragma unroll
      for (Int i = 0; i < rowLength; ++i)
        raw[next % together][i] = *reinterpret_cast<const Raw *>(at + i * step);
  }
}

// The same of a gate that must be computed, row by row. What the fast functions round is far below what a threshold is
// about; a softplus below 2^-24 reads as none, which is on the safe side.
__device__ void sumComputed(const Call &call, const char *at, long long step, long long apart, Int count, Int head,
                            float (&sums)[rows]) {
  const bool raw = call.options & 2;
  const float rate = raw ? __expf(valueOf(call.aLog + head * (call.aLogType ? 2 : 4), call.aLogType)) : 0;
  const float bias = raw && call.dtBias ? valueOf(call.dtBias + head * (call.dtBiasType ? 2 : 4), call.dtBiasType) : 0;
#pragma unroll 1
  for (Int r = 0; r < count; ++r, at += apart) {
    float sum = 0;
#pragma unroll 8
    for (Int i = 0; i < rowLength; ++i) {
      const float x = valueOf(at + i * step, call.gType) + bias;
      sum += raw ? -rate * (fmaxf(x, 0) + __logf(1 + __expf(-fabsf(x)))) : __logf(x);
    }
#pragma unroll
    for (Int each = 0; each < rows; ++each)
      sums[each] += each == r ? sum : 0;
  }
}

// The log decays of `count` chunks that end within the sequence, from one token on and `apart` tokens apart, of which
// this lane sums every fourth token.
__device__ void decayOf(const Call &call, Int token, Int apart, Int count, Int head, float (&sums)[rows]) {
  const Int type = call.gType, bytes = type == 0 ? 4 : 2;
  const long long ofToken = call.gToken * bytes, step = ofToken * tokenLanes, ofRow = ofToken * apart;
  const char *first = call.g + head * call.gHead * bytes + token * ofToken;
  if (call.options)
    sumComputed(call, first, step, ofRow, count, head, sums);
  else if (type == 0)
    sumRows<float>(first, step, ofRow, count, sums, [](float g) { return g; });
  else
    sumRows<unsigned short>(first, step, ofRow, count, sums, [&](unsigned short g) { return halfOf(g, type); });
#pragma unroll
  for (Int d = headGroup; d < 32; d *= 2)
#pragma unroll
    for (Int r = 0; r < rows; ++r)
      sums[r] += __shfl_xor_sync(~0u, sums[r], d);
}

// Chunks before the boundary, whose sums end at `sums`, `headGroup` apart.
__device__ Int warmOf(const float *sums, Int boundary, Int chunks, float gone) {
  const Int most = min(boundary, longestWarm);
  float decay = 0;
  Word below = 0; // a bit for each number of chunks
#pragma unroll
  for (Int i = 0; i < longestWarm; ++i) { // before the sequence they are zero
    decay += sums[-i * headGroup];
    below |= Word(decay < gone) << i;
  }
  if (below)
    return __ffs(below);
  // From the start is no way out where nothing decays: then the last boundary would go back all the way, too.
  return most < boundary || boundary == chunks - 1 ? longestWarm + 1 : most;
}
static_assert(longestWarm <= 32 && halo * headGroup <= readers);

// In shared memory.
struct UnitSums {
  float sums[(halo + (1 << mostWindow)) * headGroup];
  Int most[headGroup];
};

__device__ void readUnit(const Call &call, Span span, Int window, Int unit, Int firstHead, UnitSums &ofUnit) {
  float *sums = ofUnit.sums;
  Int *most = ofUnit.most;
  const Int lane = threadIdx.x % 32, heads = call.shape.heads, chunks = span.chunks(), from = (unit << window) - halo;
  const Int mineHead = min(firstHead + lane % headGroup, heads - 1), token = span.begin + lane / headGroup;
  const Int end = min(chunks - 1, (unit + 1) << window); // the last chunk is before no boundary
  const Int first = max(from, 0) + threadIdx.x / 32, count = (end - first + readerWarps - 1) / readerWarps;
  float ofRows[rows] = {};
  if (count > 0)
    decayOf(call, token + first * chunkTokens, readerWarps * chunkTokens, count, mineHead, ofRows);
  __syncthreads(); // `sums` and `most` of the unit before
  if (threadIdx.x < headGroup)
    most[threadIdx.x] = 0;
  if (Int(threadIdx.x) < -from * headGroup)
    sums[threadIdx.x] = 0;
#pragma unroll
  for (Int r = 0; r < rows; ++r)
    if (r < count && lane < headGroup)
      sums[(first - from + r * readerWarps) * headGroup + lane] = ofRows[r];
  __syncthreads();
  const Int row = threadIdx.x / headGroup, column = threadIdx.x % headGroup, head = firstHead + column;
  const Int boundary = (unit << window) + row + 1;
  const bool mine = row >> window == 0 && boundary < chunks && head < heads;
  const float gone = call.shape.flags & Fast ? -10 : -16.7f; // e^-16.7 < 2^-24
  const Int warm = mine ? warmOf(sums + halo * headGroup + threadIdx.x, boundary, chunks, gone) : 0;
  if (mine)
    atomicMax(&most[column], warm);
  __syncthreads();
  if (mine)
    *warmAt(call, span.begin, boundary, head) = (unsigned char)(row ? warm : most[column]);
}

// All blocks take units by turns, each by where it lies, so that none needs the others' number.
__device__ void readGates(const Call &call, Int longest, bool isListed, LongSequences &found, UnitSums &ofUnit) {
  const Int groups = (call.shape.heads + headGroup - 1) / headGroup, grid = gridDim.x, window = windowOf(call.shape);
#pragma unroll 1
  for (Int base = 0; base < call.shape.sequences; base += readers) {
    if (!isListed)
      listLong(call.loadOrNone(base + threadIdx.x), longest, false, found);
#pragma unroll 1
    for (Int i = 0; i < found.all.count; ++i) {
      const Span span = found.spans[found.numbers[i]];
      const Int units = (span.chunks() - 2 >> window) + 1, first = span.begin / chunkTokens >> window;
      const Int turn = Int(blockIdx.x) - (first - quotient(first, grid) * grid);
#pragma unroll 1
      for (Int u = turn < 0 ? turn + grid : turn; u < units * groups; u += grid) {
        const Int unit = groups == 1 ? u : quotient(u, groups);
        readUnit(call, span, window, unit, (u - unit * groups) * headGroup, ofUnit);
      }
    }
    __syncthreads();
  }
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
