// How soon the state decays before each boundary between chunks, of the sequences that may be cut.
#pragma once
#include "plan/common.h"

namespace {

// A unit is `window` boundaries of a sequence times 8 heads. It sums the gates of its chunks and of those before that
// its first boundary might go back to; then each boundary walks back until the sum is below the threshold, or to the
// sequence's start, from where the initial state is at hand. A byte a boundary holds the chunks; that of a unit's first
// boundary the most of the unit, from which a tile's most is read.
constexpr Int window = 32, headGroup = 8, halo = longestWarm - 1;
static_assert((window + halo) * headGroup <= threads && window == longestWarm);

__device__ unsigned char *warmAt(const Call &call, Int begin, Int boundary, Int head) {
  // Boundaries within a sequence are 64 tokens apart, and its last is before the next one's first by more: no two meet.
  return call.place<unsigned char>(call.at.warm) +
         (begin / chunkTokens + boundary) * (long long)call.shape.heads + head;
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

// The log decay of a chunk that ends within the sequence. What the fast functions round is far below what a threshold
// is about; a softplus below 2^-24 reads as none, which is on the safe side.
__device__ float decayOf(const Call &call, Int firstToken, Int head) {
  const Int bytes = call.gType == 0 ? 4 : 2;
  const long long step = call.gToken * bytes;
  const char *g = call.g + firstToken * step + head * call.gHead * bytes;
  float sum = 0;
  if (call.options) {
    const bool raw = call.options & 2;
    const float rate = raw ? __expf(valueOf(call.aLog + head * (call.aLogType ? 2 : 4), call.aLogType)) : 0;
    const float bias = raw && call.dtBias ? valueOf(call.dtBias + head * (call.dtBiasType ? 2 : 4), call.dtBiasType) : 0;
#pragma unroll 4
    for (Int token = 0; token < chunkTokens; ++token) {
      const float x = valueOf(g + token * step, call.gType) + bias;
      sum += raw ? -rate * (fmaxf(x, 0) + __logf(1 + __expf(-fabsf(x)))) : __logf(x);
    }
  } else if (call.gType == 0) {
#pragma unroll 16 // loads in flight
    for (Int token = 0; token < chunkTokens; ++token)
      sum += *reinterpret_cast<const float *>(g + token * step);
  } else {
#pragma unroll 16
    for (Int token = 0; token < chunkTokens; ++token)
      sum += halfOf(*reinterpret_cast<const unsigned short *>(g + token * step), call.gType);
  }
  return sum;
}

// Chunks before the boundary, whose sums end at `sums`, `headGroup` apart.
__device__ Int warmOf(const float *sums, Int boundary, Int chunks, float gone) {
  const Int most = min(boundary, longestWarm);
  float decay = 0;
  Int warm = 0;
#pragma unroll 1
  do
    decay += sums[-warm++ * headGroup];
  while (warm < most && !(decay < gone));
  if (decay < gone)
    return warm;
  // From the start is no way out where nothing decays: then the last boundary would go back all the way, too.
  return warm < boundary || boundary == chunks - 1 ? longestWarm + 1 : warm;
}

__device__ void readUnit(const Call &call, Span span, Int unit, Int firstHead) {
  __shared__ float sums[(window + halo) * headGroup];
  __shared__ Int most[headGroup];
  const Int row = threadIdx.x / headGroup, column = threadIdx.x % headGroup, head = firstHead + column;
  const Int chunk = unit * window - halo + row, boundary = unit * window + row + 1, chunks = span.chunks();
  float sum = 0;
  if (row < window + halo && chunk >= 0 && chunk < chunks - 1 && head < call.shape.heads)
    sum = decayOf(call, span.begin + chunk * chunkTokens, head);
  __syncthreads(); // `sums` and `most` of the unit before
  if (row < window + halo)
    sums[threadIdx.x] = sum;
  if (row == 0)
    most[column] = 0;
  __syncthreads();
  const bool mine = row < window && boundary < chunks && head < call.shape.heads;
  const float gone = call.shape.flags & Fast ? -10 : -16.7f; // e^-16.7 < 2^-24
  const Int warm = mine ? warmOf(sums + threadIdx.x + halo * headGroup, boundary, chunks, gone) : 0;
  if (mine)
    atomicMax(&most[column], warm);
  __syncthreads();
  if (mine)
    *warmAt(call, span.begin, boundary, head) = (unsigned char)(row ? warm : most[column]);
}

// All blocks take units by turns, each by where it lies, so that none needs the others' number.
__device__ void readGates(const Call &call, Int longest) {
  __shared__ Span found[threads];
  __shared__ Int count;
  const Int groups = (call.shape.heads + headGroup - 1) / headGroup, grid = gridDim.x;
#pragma unroll 1
  for (Int base = 0; base < call.shape.sequences; base += threads) {
    if (threadIdx.x == 0)
      count = 0;
    __syncthreads();
    if (Int i = base + threadIdx.x; i < call.shape.sequences)
      if (Span span = spanOf(call, i); span.chunks() > longest)
        found[atomicAdd(&count, 1)] = span;
    __syncthreads();
#pragma unroll 1
    for (Int i = 0; i < count; ++i) {
      const Span span = found[i];
      const Int units = (span.chunks() - 2) / window + 1, first = span.begin / (window * chunkTokens) % grid;
#pragma unroll 1
      for (Int u = (blockIdx.x + grid - first) % grid; u < units * groups; u += grid)
        readUnit(call, span, u / groups, u % groups * headGroup);
    }
    __syncthreads();
  }
}

// Whether all other blocks are through. The counter is tagged, since the workspace holds whatever it may at first; the
// last one leaves it as the next plan wants it.
__device__ bool lastOfAll(const Call &call) {
  __shared__ bool last;
  constexpr unsigned long long tag = 0x504c414eull << 32, mask = ~0ull << 32;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    auto *arrivals = call.place<unsigned long long>(call.at.arrivals);
    const unsigned long long seen = *static_cast<volatile unsigned long long *>(arrivals);
    if ((seen & mask) != tag)
      atomicCAS(arrivals, seen, tag);
    last = Word(atomicAdd(arrivals, 1ull)) + 1 == gridDim.x;
    if (last)
      atomicExch(arrivals, tag);
    __threadfence();
  }
  __syncthreads();
  return last;
}

} // namespace
