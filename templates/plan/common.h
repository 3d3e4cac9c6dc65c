// The planner's call, its constants and its sums over a block.
#pragma once
#include "format/work.h"
using namespace gdn::work;

namespace {

// All threads of a block measure and read gates. Then half of them plan, as a step
// takes the longer the more warps must be through it; the others are gone, and no barrier waits for them.
constexpr Int readers = 512, readerWarps = readers / 32, threads = 256, warps = threads / 32;
constexpr Int mostLong = 192; // tiles that are longer than the blocks' mean: fewer than the blocks of any GPU

// Costs, in full steps.
constexpr float stateStep = float(GDN_STATE) / GDN_FULL, start = float(GDN_START) / GDN_FULL;
constexpr float flag = float(GDN_FLAG) / GDN_FULL, hop = float(GDN_HOP) / GDN_FULL;
constexpr float planSteps = float(GDN_PLAN) / GDN_FULL; // what the plan itself takes
constexpr float linkedFixed = 2 * start + 2 * flag;     // starts and flags on the path of a tile cut by transition

// Found by simulation.
constexpr float margin = 1.05f, fee = 2; // a cut must win this factor and so many steps
constexpr float packed = 0.98f;          // share of the blocks' time that items fill
// The same of those that transitions link: where they have all blocks the sum, and less where runs keep some.
constexpr float packedLeast = 0.7f, packedMore = 0.25f;
constexpr Int shortShare = 16;            // tiles up to this part of the deadline stay whole
constexpr float least = 2, leastRest = 3; // chunks of a first run and of a slice that are worth a cut
constexpr float lastMore = 1;             // by which a tile's last run may be longer than the others
constexpr float never = 1e30f;

// ---- Arithmetic. Divisions that round as IEEE says take ten times as long, and there are many on the way to a plan.

__device__ float inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// x / y below 2^22.
__device__ Int quotient(Int x, Int y) {
  const Int about = Int(x * inverse(y)), rest = x - about * y;
  return about + (rest >= y) - (rest < 0);
}

// ---- The call

struct Span {
  Int begin, end;
  __device__ Int chunks() const { return (end - begin + chunkTokens - 1) / chunkTokens; }
};

struct Call {
  const void *offsets; // cu_seqlens, or null
  bool wide;
  Int length; // of each sequence of a dense batch
  const char *g;
  long long gToken, gHead;         // strides in elements
  const char *aLog, *dtBias;       // a v-head each
  Int gType, aLogType, dtBiasType; // ElementType: 0 fp32, 1 bf16, 2 fp16
  Int options;                     // InputOption of g: 1 the decay, 2 the input of -exp(A_log) softplus(g + dt_bias)
  char *workspace;
  Shape shape;
  Int parts, tiles;
  const Layout &at;
  const Span *spans; // in shared memory, once sequences are listed, where they are no more than threads; else null

  template <typename T> __device__ T *place(long long offset) const {
    return reinterpret_cast<T *>(workspace + offset);
  }
  __device__ Int offset(Int i) const {
    if (!wide)
      return min(max(static_cast<const int *>(offsets)[i], 0), shape.tokens);
    return Int(min(max(static_cast<const long long *>(offsets)[i], 0ll), (long long)shape.tokens));
  }
  __device__ Span load(Int sequence) const {
    if (!offsets)
      return {sequence * length, (sequence + 1) * length};
    Int begin = offset(sequence);
    return {begin, max(begin, offset(sequence + 1))};
  }
  __device__ Span loadOrNone(Int sequence) const { return sequence < shape.sequences ? load(sequence) : Span{}; }
  __device__ Int ofParts(Int i) const { return parts == 1 ? i : quotient(i, parts); } // of tiles, of a head's
  __device__ Span span(Int sequence) const { return spans ? spans[sequence] : load(sequence); }
};

// A tile that may be cut for parallelism. `warm`: chunks before any cut that let the state decay; more than longestWarm
// where it does not.
struct alignas(16) LongTile {
  Int sequence, head, chunks, warm;
};
static_assert(sizeof(LongTile) == longBytes);

// A tile that is not whole and short, and how it is cut. On the line: warm-up cuts after `first` chunks and then every
// `step`, or else hand-overs. By transition: `cuts` middle segments, `first` and `step` as of Segments.
struct alignas(16) CutTile {
  Int sequence, begin, end, head;
  Int part, cuts; // part -1: all tiles of the head, which share their matrices
  float first, step;
  Int hands;
  float slice;              // chunks of the last one
  Int items, slots, middle; // number of the first of each
  __device__ Int chunks() const { return Span{begin, end}.chunks(); }
};
static_assert(sizeof(CutTile) == tileBytes);

// ---- Sums over a block

struct alignas(16) Count { // what tiles need, and those that stay whole
  Int tiles, items, slots, middle, whole;
};
__device__ Count operator+(Count a, Count b) {
  return {a.tiles + b.tiles, a.items + b.items, a.slots + b.slots, a.middle + b.middle, a.whole + b.whole};
}

template <typename T> __device__ T from(T x, Int lane) { return __shfl_sync(~0u, x, lane); }
template <> __device__ Count from(Count x, Int lane) {
  return {from(x.tiles, lane), from(x.items, lane), from(x.slots, lane), from(x.middle, lane), from(x.whole, lane)};
}

// The sum of the threads before this one; in `total` that of all. In a fixed order, as floats are to have it. Warps
// where all values are nothing, and most are where tiles are few, leave the others the issue slots. A barrier comes
// before the next sum.
template <typename T> __device__ T prefix(T value, bool some, T &total) {
  __shared__ T sums[warps];
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T left{};
  if (__any_sync(~0u, some)) {
    T sum = value;
#pragma unroll
    for (Int d = 1; d < 32; d *= 2) {
      const T other = from(sum, lane - d);
      if (lane >= d)
        sum = other + sum;
    }
    if (lane == 31)
      sums[warp] = sum;
    left = from(sum, lane - 1);
    if (lane == 0)
      left = {};
  } else if (lane == 31) {
    sums[warp] = {};
  }
  __syncthreads();
  T before{};
  total = {};
#pragma unroll
  for (Int w = 0; w < warps; ++w) {
    if (w == warp)
      before = total;
    total = total + sums[w];
  }
  return before + left;
}

} // namespace
