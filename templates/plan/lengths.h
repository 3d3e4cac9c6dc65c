// How long the sequences are, and which are long.
#pragma once
#include "plan/common.h"

namespace {

struct Most { // of sequences: the sum and the most of their chunks
  Int sum, most, count;
};

// Overlapping offsets are not worth a wider sum.
constexpr Int hugeSum = 1 << 25;

// The sum and the maximum of what each warp came to.
__device__ Most sumOfWarps(const Most *ofWarps) {
  const Int lane = threadIdx.x % 32;
  const Most mine = lane < readerWarps ? ofWarps[lane] : Most{};
  return {__reduce_add_sync(~0u, mine.sum), __reduce_max_sync(~0u, mine.most), __reduce_add_sync(~0u, mine.count)};
}

// Few sequences: each warp has the spans of all, and waits for no other.
__device__ bool eachHasAll(const Shape &shape) { return shape.sequences <= 32; }

// What all threads of the block find; each has the span of its first sequence.
__device__ Most measure(const Call &call, Span first) {
  __shared__ Most ofWarps[readerWarps];
  Int sum = first.chunks(), most = sum;
#pragma unroll 1
  for (Int i = threadIdx.x + readers; i < call.shape.sequences; i += readers) {
    const Int chunks = call.load(i).chunks();
    sum = min(sum + chunks, hugeSum);
    most = max(most, chunks);
  }
  sum = __reduce_add_sync(~0u, sum);
  most = __reduce_max_sync(~0u, most);
  const Most ofWarp{min(sum, hugeSum), most, 0};
  if (eachHasAll(call.shape))
    return ofWarp;
  if (threadIdx.x % 32 == 0)
    ofWarps[threadIdx.x / 32] = ofWarp;
  __syncthreads();
  return sumOfWarps(ofWarps);
}

// As many sequences as threads from some one on, and which of them have more than `longest` chunks.
struct LongSequences {
  Span spans[readers];
  Int numbers[readers]; // of the long ones, counted from the first of these
  Most all;             // of these, and the most of the others
  Int unused;           // written with it, as it is read with it
};

// Lists them, in their order; each thread has a span, and each warp those of all or of others.
__device__ void listLong(Span span, Int longest, bool all, LongSequences &found) {
  __shared__ Most ofWarps[readerWarps];
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Int chunks = span.chunks();
  const bool isLong = chunks > longest;
  const Word longs = __ballot_sync(~0u, isLong);
  const Int sum = __reduce_add_sync(~0u, isLong ? chunks : 0), most = __reduce_max_sync(~0u, isLong ? 0 : chunks);
  Most sums{min(sum, hugeSum), most, __popc(longs)};
  Int before = 0;
  if (!all) {
    if (lane == 0)
      ofWarps[warp] = sums;
    __syncthreads();
    before = __reduce_add_sync(~0u, lane < warp ? ofWarps[lane].count : 0);
    sums = sumOfWarps(ofWarps);
  }
  if (!all || warp == 0) {
    found.spans[threadIdx.x] = span;
    if (isLong)
      found.numbers[before + __popc(longs & ((1u << lane) - 1))] = threadIdx.x;
    if (threadIdx.x == 0)
      found.all = sums, found.unused = 0;
  }
  __syncthreads();
}

} // namespace
