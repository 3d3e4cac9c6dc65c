// How soon the state decays before each boundary between chunks, of the sequences that may be cut.
#pragma once
#include "plan/lengths.h"

namespace {

// A unit is `window` boundaries of a sequence times 8 heads. It sums the gates of its chunks and of those before that
// its first boundary might go back to; then each boundary walks back until the sum is below the threshold, or to the
// sequence's start, from where the initial state is at hand. A byte a boundary holds the chunks; that of a unit's first
// boundary the most of the unit, from which a tile's most is read.
constexpr Int window = 32, headGroup = 8, halo = longestWarm - 1, tokenLanes = 32 / headGroup;
static_assert(window * headGroup <= readers && window == longestWarm);

__device__ unsigned char *warmAt(const Call &call, Int begin, Int boundary, Int head) {
  // Boundaries within a sequence are 64 tokens apart, and its last is before the next one's first by more: no two meet.
  return call.place<unsigned char>(call.at.warm) + (begin / chunkTokens + boundary) * (long long)call.shape.heads +
         head;
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

// The sums of two rows of 16 values, `step` bytes apart, `inFlight` of each loaded together.
template <Int inFlight, typename Load>
__device__ float2 sumRows(const char *one, const char *other, long long step, Load load) {
  float2 sum{};
#pragma unroll inFlight
  for (Int i = 0; i < chunkTokens / tokenLanes; ++i) {
    sum.x += load(one + i * step);
    sum.y += load(other + i * step);
  }
  return sum;
}

// The log decays of two chunks that end within the sequence, of which this lane sums every fourth token. What the fast
// functions round is far below what a threshold is about; a softplus below 2^-24 reads as none, which is on the safe
// side.
__device__ float2 decayOf(const Call &call, Int firstToken, Int otherToken, Int head) {
  const Int bytes = call.gType == 0 ? 4 : 2, type = call.gType;
  const long long token = call.gToken * bytes, step = token * tokenLanes;
  const char *g = call.g + head * call.gHead * bytes, *one = g + firstToken * token, *other = g + otherToken * token;
  float2 sum;
  if (call.options) {
    const bool raw = call.options & 2;
    const float rate = raw ? __expf(valueOf(call.aLog + head * (call.aLogType ? 2 : 4), call.aLogType)) : 0;
    const float bias =
        raw && call.dtBias ? valueOf(call.dtBias + head * (call.dtBiasType ? 2 : 4), call.dtBiasType) : 0;
    sum = sumRows<4>(one, other, step, [&](const char *at) {
      const float x = valueOf(at, type) + bias;
      return raw ? -rate * (fmaxf(x, 0) + __logf(1 + __expf(-fabsf(x)))) : __logf(x);
    });
  } else if (type == 0) {
    sum = sumRows<16>(one, other, step, [](const char *at) { return *reinterpret_cast<const float *>(at); });
  } else {
    sum = sumRows<16>(one, other, step,
                      [&](const char *at) { return halfOf(*reinterpret_cast<const unsigned short *>(at), type); });
  }
#pragma unroll
  for (Int d = headGroup; d < 32; d *= 2) {
    sum.x += __shfl_xor_sync(~0u, sum.x, d);
    sum.y += __shfl_xor_sync(~0u, sum.y, d);
  }
  return sum;
}

// Chunks before the boundary, whose sums end at `sums`, `headGroup` apart.
__device__ Int warmOf(const float *sums, Int boundary, Int chunks, float gone) {
  const Int most = min(boundary, longestWarm);
  float decay = 0;
  Word below = 0; // a bit for each number of chunks
#pragma unroll 8
  for (Int i = 0; i < longestWarm; ++i) {
    decay += i < most ? sums[-i * headGroup] : 0;
    below |= Word(decay < gone) << i;
  }
  if (below)
    return __ffs(below);
  // From the start is no way out where nothing decays: then the last boundary would go back all the way, too.
  return most < boundary || boundary == chunks - 1 ? longestWarm + 1 : most;
}
static_assert(longestWarm <= 32);

__device__ void readUnit(const Call &call, Span span, Int unit, Int firstHead) {
  __shared__ float sums[(halo + window) * headGroup];
  __shared__ Int most[headGroup];
  const Int lane = threadIdx.x % 32, heads = call.shape.heads, chunks = span.chunks(), from = unit * window - halo;
  const Int mineHead = min(firstHead + lane % headGroup, heads - 1), token = span.begin + lane / headGroup;
  __syncthreads(); // `sums` and `most` of the unit before
  if (threadIdx.x < headGroup)
    most[threadIdx.x] = 0;
  const Int end = min(chunks - 1, from + halo + window); // the last chunk is before no boundary
#pragma unroll 1
  for (Int chunk = max(from, 0) + threadIdx.x / 32; chunk < end; chunk += 2 * readerWarps) {
    const Int other = min(chunk + readerWarps, end - 1);
    const float2 sum = decayOf(call, token + chunk * chunkTokens, token + other * chunkTokens, mineHead);
    if (lane < headGroup) {
      sums[(chunk - from) * headGroup + lane] = sum.x;
      if (chunk + readerWarps < end)
        sums[(other - from) * headGroup + lane] = sum.y;
    }
  }
  __syncthreads();
  const Int row = threadIdx.x / headGroup, column = threadIdx.x % headGroup, head = firstHead + column;
  const Int boundary = unit * window + row + 1;
  const bool mine = row < window && boundary < chunks && head < heads;
  const float gone = call.shape.flags & Fast ? -10 : -16.7f; // e^-16.7 < 2^-24
  const Int warm = mine ? warmOf(sums + halo * headGroup + threadIdx.x, boundary, chunks, gone) : 0;
  if (mine)
    atomicMax(&most[column], warm);
  __syncthreads();
  if (mine)
    *warmAt(call, span.begin, boundary, head) = (unsigned char)(row ? warm : most[column]);
}

// All blocks take units by turns, each by where it lies, so that none needs the others' number.
__device__ void readGates(const Call &call, Int longest, bool isListed, LongSequences &found) {
  const Int groups = (call.shape.heads + headGroup - 1) / headGroup, grid = gridDim.x;
#pragma unroll 1
  for (Int base = 0; base < call.shape.sequences; base += readers) {
    if (!isListed)
      listLong(spanOrNone(call, base + threadIdx.x), base, readers, longest, found);
#pragma unroll 1
    for (Int i = 0; i < found.all.count; ++i) {
      const Span span = found.spans[i];
      const Int units = (span.chunks() - 2) / window + 1, first = span.begin / (window * chunkTokens);
      const Int turn = Int(blockIdx.x) - (first - quotient(first, grid) * grid);
#pragma unroll 1
      for (Int u = turn < 0 ? turn + grid : turn; u < units * groups; u += grid) {
        const Int unit = quotient(u, groups);
        readUnit(call, span, unit, (u - unit * groups) * headGroup);
      }
    }
    __syncthreads();
  }
}

__device__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); } // __threadfence waits for more

// Whether all other blocks are through. The counter is tagged, since the workspace holds whatever it may at first:
// `seen` is what it held when the block began. The last one leaves it as the next plan wants it.
__device__ bool lastOfAll(const Call &call, unsigned long long seen) {
  __shared__ bool last;
  constexpr unsigned long long tag = 0x504c414eull << 32, mask = ~0ull << 32;
  __syncthreads();
  if (threadIdx.x == 0) {
    auto *arrivals = call.place<unsigned long long>(call.at.arrivals);
    fence(); // for the block, of whose writes the barrier has told this thread
    if ((seen & mask) != tag)
      atomicCAS(arrivals, seen, tag);
    last = Word(atomicAdd(arrivals, 1ull)) + 1 == gridDim.x;
    fence();
    if (last)
      atomicExch(arrivals, tag);
  }
  __syncthreads();
  return last;
}

} // namespace
