// Cuts a call's work into items and queues them: format/work.h says what the tables hold.
//
// The plan is one number, the deadline m, in full steps (a step: one chunk of a tile, V columns and all). Sequences are
// measured, gates of those that might be cut are read, 64 deadlines are tried against an estimate of the makespan, and
// every cut follows in closed form, tile by tile:
//   - a tile longer than m is cut by warm-up where its gates decay soon enough, else by transition: a root, middle
//     segments of which M and N are made at once, and dependents, all but the root as long as their hops leave them;
//   - all other tiles that are not short, and the runs between warm-ups, lie on a line as long as the blocks' time end
//     to end, and are handed over where a block's share ends.
// Every block measures; if gates are read, all share that, and the last one to be through makes the plan, else block 0.
// Nothing depends on the order of blocks or threads.
//
// GDN_FULL, GDN_STATE, GDN_START, GDN_FLAG, GDN_HOP: clocks of a full step, of one for the state alone, of an item's
// start, of a flag with its 64 KB, of a hop of 64 rows.
#include "format/work.h"
using namespace gdn::work;

namespace {

constexpr Int threads = 512, warps = threads / 32;

// In steps.
constexpr float stateStep = float(GDN_STATE) / GDN_FULL, start = float(GDN_START) / GDN_FULL;
constexpr float flag = float(GDN_FLAG) / GDN_FULL, hop = float(GDN_HOP) / GDN_FULL;
constexpr float linkedFixed =
    2.5f * start + 3 * flag; // starts and flags on the path of a tile that is cut by transition

// Found by simulation: see `estimate` and `place`.
constexpr Int tries = 64;                             // deadlines
constexpr float margin = 1.04f, fee = 1.5f;           // a cut must win this factor and so many steps
constexpr float packed = 0.98f, packedLinked = 0.95f; // share of the blocks' time that items fill; beside transitions
constexpr float pathShare = 0.95f;                    // of the deadline that a linked tile's path takes among others
constexpr float manyShare = 0.25f;                    // of the blocks' time: so much else fills their gaps
constexpr float rootShare = 0.6f;                     // a root segment is at least this part of the first dependent
constexpr Int slices = 4, leastSlice = 12;            // of a run between warm-ups beside transitions; chunks
constexpr Int shortShare = 16;                        // tiles up to this part of the deadline stay whole
constexpr float least = 2, leastRest = 3;             // chunks of a run and of a slice that is worth a cut
constexpr float never = 1e30f;

struct Call {
  const void *offsets; // cu_seqlens, or null
  bool wide;
  Int length; // of each sequence of a dense batch
  const void *g;
  long long gToken, gHead;
  const void *aLog, *dtBias;       // a v-head each
  Int gType, aLogType, dtBiasType; // ElementType: 0 fp32, 1 bf16, 2 fp16
  Int options;                     // InputOption of g: 1 the decay, 2 the input of -exp(A_log) softplus(g + dt_bias)
  char *workspace;
  Shape shape;
  Layout at;

  template <typename T> __device__ T *place(long long offset) const {
    return reinterpret_cast<T *>(workspace + offset);
  }
  __device__ Int offset(Int i) const {
    long long value = wide ? static_cast<const long long *>(offsets)[i] : static_cast<const int *>(offsets)[i];
    return Int(value < 0 ? 0 : value > shape.tokens ? shape.tokens : value);
  }
};

struct Span {
  Int begin, end;
  __device__ Int chunks() const { return (end - begin + chunkTokens - 1) / chunkTokens; }
};

__device__ Span spanOf(const Call &call, Int sequence) {
  if (!call.offsets)
    return {sequence * call.length, (sequence + 1) * call.length};
  Int begin = call.offset(sequence), end = call.offset(sequence + 1);
  return {begin, max(begin, end)};
}

// A tile that may be cut for parallelism. `warm`: chunks before any cut that let the state decay; more than longestWarm
// where it does not.
struct LongTile {
  Int sequence, head, chunks, warm;
};
static_assert(sizeof(LongTile) == longBytes);

// A tile that is not whole and short, and how it is cut. On the line: warm-up cuts after `first` chunks and then every
// `step`, and hand-overs in the first run, those between and the last. By transition: `cuts` middle segments, the root
// of `first` and the first dependent of `step` chunks.
struct CutTile {
  Int sequence, begin, end, head;
  Int part, cuts; // part -1: all tiles of the head, which share their matrices
  float first, step;
  Int firstHands, hands, lastHands;
  float firstSlice, slice;  // the last slice of the first run, and of others
  Int items, slots, middle; // number of the first of each
  __device__ Int chunks() const { return Span{begin, end}.chunks(); }
};
static_assert(sizeof(CutTile) == tileBytes);

// ---- Sums over a block

struct Count { // what cut tiles need
  Int tiles, items, slots, middle;
};
struct Most {
  float sum;
  Int most;
};
__device__ Count operator+(Count a, Count b) {
  return {a.tiles + b.tiles, a.items + b.items, a.slots + b.slots, a.middle + b.middle};
}
__device__ Most operator+(Most a, Most b) { return {a.sum + b.sum, max(a.most, b.most)}; }
template <typename T> __device__ T up(T x, Int d) { return __shfl_up_sync(~0u, x, d); }
template <> __device__ Count up(Count x, Int d) {
  return {up(x.tiles, d), up(x.items, d), up(x.slots, d), up(x.middle, d)};
}
template <> __device__ Most up(Most x, Int d) { return {up(x.sum, d), up(x.most, d)}; }

// The sum of the threads before this one; in `total` that of all. In a fixed order, as floats are to have it.
template <typename T> __device__ T prefix(T value, T &total) {
  __shared__ T sums[warps];
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T sum = value;
  for (Int d = 1; d < 32; d *= 2) {
    T other = up(sum, d);
    if (lane >= d)
      sum = other + sum;
  }
  if (lane == 31)
    sums[warp] = sum;
  __syncthreads();
  T before{};
  total = T{};
#pragma unroll 1
  for (Int w = 0; w < warps; ++w) {
    if (w == warp)
      before = total;
    total = total + sums[w];
  }
  __syncthreads();
  T left = up(sum, 1);
  return lane ? before + left : before;
}

// ---- Lengths

__device__ Most measure(const Call &call) {
  Most mine{}, all;
  for (Int i = threadIdx.x; i < call.shape.sequences; i += threads) {
    Int chunks = spanOf(call, i).chunks();
    mine = mine + Most{float(chunks), chunks};
  }
  prefix(mine, all);
  return all;
}

// ---- Gates

// Units of `window` boundaries between chunks times 8 heads, of sequences with more than `least` chunks. A unit sums
// the gates of its chunks and of those before that its first boundary might go back to; then each boundary walks back
// until the sum is below the threshold, or to the sequence's start, from where the initial state is at hand. A byte a
// boundary holds the chunks; that of a unit's first boundary the most of the unit, from which a tile's most is read.
constexpr Int window = 32, headGroup = 8, halo = longestWarm - 1;
static_assert((window + halo) * headGroup <= threads && window == longestWarm);

__device__ unsigned char &warmAt(const Call &call, Int begin, Int boundary, Int head) {
  // Boundaries within a sequence are 64 tokens apart, and its last is before the next one's first by more: no two meet.
  return call.place<unsigned char>(call.at.warm)[(begin / chunkTokens + boundary) * (long long)call.shape.heads + head];
}

__device__ float value(const void *data, Int type, long long at) {
  if (type == 0)
    return static_cast<const float *>(data)[at];
  unsigned short bits = static_cast<const unsigned short *>(data)[at];
  if (type == 1)
    return __uint_as_float(Word(bits) << 16);
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// The log decay of a chunk that ends within the sequence. What the fast functions round is far below what a threshold
// is about; a softplus below 2^-24 reads as none, which is on the safe side.
template <typename Load> __device__ float decayOf(const Call &call, Int head, Load load) {
  const float rate = call.options & 2 ? -__expf(value(call.aLog, call.aLogType, head)) : 0;
  const float bias = call.options & 2 && call.dtBias ? value(call.dtBias, call.dtBiasType, head) : 0;
  float sum = 0;
#pragma unroll 1
  for (Int token = 0; token < chunkTokens; token += 16) {
    float g[16]; // loads in flight
    for (Int i = 0; i < 16; ++i)
      g[i] = load((token + i) * call.gToken);
    for (Int i = 0; i < 16; ++i) {
      if (call.options & 1)
        g[i] = __logf(g[i]);
      if (call.options & 2)
        g[i] = rate * (fmaxf(g[i] + bias, 0) + __logf(1 + __expf(-fabsf(g[i] + bias))));
      sum += g[i];
    }
  }
  return sum;
}

__device__ float decayOf(const Call &call, Int firstToken, Int head) {
  const long long at = firstToken * call.gToken + head * call.gHead;
  return decayOf(call, head, [&](long long i) { return value(call.g, call.gType, at + i); });
}

__device__ void readUnit(const Call &call, Span span, Int unit, Int firstHead) {
  __shared__ float sums[(window + halo) * headGroup];
  __shared__ Int most[headGroup];
  const Int row = threadIdx.x / headGroup, column = threadIdx.x % headGroup, head = firstHead + column;
  const Int firstChunk = unit * window - halo, chunk = firstChunk + row;
  float sum = 0;
  if (row < window + halo && chunk >= 0 && chunk < span.chunks() - 1 && head < call.shape.heads)
    sum = decayOf(call, span.begin + chunk * chunkTokens, head);
  __syncthreads(); // `sums` and `most` of the unit before
  if (row < window + halo)
    sums[threadIdx.x] = sum;
  if (row == 0)
    most[column] = 0;
  __syncthreads();
  const float gone = call.shape.flags & Fast ? -10 : -16.7f;
  const Int boundary = unit * window + row + 1;
  const bool mine = row < window && boundary < span.chunks() && head < call.shape.heads;
  Int warm = 0;
  if (mine) {
    float decay = 0;
    do
      decay += sums[(row + halo - warm) * headGroup + column];
    while (++warm < min(boundary, longestWarm + 1) && !(decay < gone) && warm <= halo);
    // From the start is no way out where nothing decays: then the last boundary would go back all the way, too.
    if (!(decay < gone) && (warm < boundary || boundary == span.chunks() - 1))
      warm = longestWarm + 1;
    atomicMax(&most[column], warm);
  }
  __syncthreads();
  if (mine)
    warmAt(call, span.begin, boundary, head) = (unsigned char)(row ? warm : most[column]);
}

// All blocks take units by turns, each by where it lies, so that none needs the others' number.
__device__ void readGates(const Call &call, Int longest) {
  __shared__ Span found[threads];
  __shared__ Int count;
  const Int groups = (call.shape.heads + headGroup - 1) / headGroup;
  for (Int base = 0; base < call.shape.sequences; base += threads) {
    if (threadIdx.x == 0)
      count = 0;
    __syncthreads();
    if (Int i = base + threadIdx.x; i < call.shape.sequences)
      if (Span span = spanOf(call, i); span.chunks() > longest)
        found[atomicAdd(&count, 1)] = span;
    __syncthreads();
    for (Int i = 0; i < count; ++i)
      for (Int unit = 0; unit * window < found[i].chunks() - 1; ++unit)
        for (Int group = 0; group < groups; ++group)
          if (((found[i].begin / (window * chunkTokens) + unit) * (long long)groups + group) % gridDim.x == blockIdx.x)
            readUnit(call, found[i], unit, group * headGroup);
    __syncthreads();
  }
}

// Whether all other blocks are through. The counter is tagged, since the workspace holds whatever it may at first; the
// last one leaves it as the next plan wants it.
__device__ bool lastOfAll(const Call &call) {
  __shared__ bool last;
  constexpr unsigned long long tag = 0x706c616e5f676474ull << 32 | 0ull, mask = ~0ull << 32;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    auto *arrivals = call.place<unsigned long long>(call.at.arrivals);
    unsigned long long seen = *static_cast<volatile unsigned long long *>(arrivals);
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

// ---- Deadline

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
  __device__ Int end(Int j, Int chunks,
                     float fall) const { // of segment j; each is shorter by `fall` than the one before
    return j > middle ? chunks : Int(rintf(root + j * step - fall * (j * (j - 1) / 2)));
  }
};

__device__ Segments segmentsOf(Int chunks, float limit) {
  const float room = limit - linkedFixed, rest = chunks - room;
  const float most = fminf(room / (1 + rootShare), room - 1); // of d(x)
  const float b = most - hop / 2, square = b * b - 2 * hop * rest;
  if (!(rest > 0) || !(most > 0) || !(square >= 0))
    return {};
  Int x = max(1, Int((b - sqrtf(square)) / hop)); // the root of d(x) = most, rounded down
  auto first = [&](Int x) { return rest / x + hop * (x + 1) / 2; };
  while (first(x) > most && x <= maxHops)
    ++x;
  float step = first(x);
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

// What the tiles that no transition links come to, with runs of `run` between warm-ups; `longest` is the longest item.
struct Free {
  float work, longest, warmest; // warmest: the longest warm-up
  bool possible, linked;
};
__device__ Free freeWork(const Call &call, const Tiles &tiles, float m, float run) {
  Free sum{0, tiles.rest.most ? tiles.rest.most + start : 0, 0, true, false};
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
  sum.work = sumOf(sum.work) * call.shape.parts() + tiles.rest.sum;
  sum.longest = mostOf(sum.longest);
  sum.warmest = mostOf(sum.warmest);
  sum.possible = !mostOf(Int(!sum.possible));
  sum.linked = mostOf(Int(sum.linked));
  return sum;
}

// What the tiles that are cut by transition come to: first what needs no other, then what does.
struct Linked {
  float first, second, path, root, step; // steps; the longest path, root and dependent
  Int roots, pairs, dependents;          // items; of pairs M, N
  bool possible;
};
__device__ Linked linkedWork(const Call &call, const Tiles &tiles, float m, float limit) {
  Linked sum{0, 0, 0, 0, 0, 0, 0, 0, true};
  Int middle = 0;
  const float hops = call.shape.valueDim / 64 * hop / call.shape.parts();
  for (Int i = threadIdx.x % lanes; i < tiles.count; i += lanes) {
    const LongTile tile = tiles.tiles[i];
    if (tile.warm <= longestWarm || !tiles.isLong(tile.chunks, m))
      continue;
    const Segments cut = segmentsOf(tile.chunks, limit);
    const Int x = cut.middle, root = cut.end(0, tile.chunks, hop), last = cut.end(x, tile.chunks, hop);
    const Int step =
        max(cut.end(1, tile.chunks, hop) - root, cut.end(2, tile.chunks, hop) - cut.end(1, tile.chunks, hop));
    sum.possible &= x > 0 && call.shape.hops();
    sum.first += root + start + 2 * (stateStep * (last - root) + x * start);
    sum.second += tile.chunks - root + (x + 1) * start + x * hops;
    sum.path = fmaxf(sum.path, root + step + linkedFixed);
    sum.root = fmaxf(sum.root, root);
    sum.step = fmaxf(sum.step, step);
    sum.roots += 1;
    middle += x;
  }
  const Int parts = call.shape.parts();
  middle = sumOf(middle);
  sum.roots = sumOf(sum.roots) * parts;
  sum.pairs = middle * parts;
  sum.dependents = sum.pairs + sum.roots;
  sum.first = sumOf(sum.first) * parts;
  sum.second = sumOf(sum.second) * parts;
  sum.path = mostOf(sum.path);
  sum.root = mostOf(sum.root);
  sum.step = mostOf(sum.step);
  sum.possible = !mostOf(Int(!sum.possible)) && middle <= call.at.matrices;
  return sum;
}

// Where little else is there, linked items run in waves: others beside them on blocks of their own, or before them.
__device__ float wavesOf(const Free &free, const Linked &linked, float m, float blocks, float work) {
  float best = never;
  for (Int before = 0; before < 2; ++before) {
    const float own = before ? blocks : blocks - free.work / m;
    if (own < fmaxf(1, 0.1f * blocks))
      continue;
    const float waves = own > linked.roots ? ceilf(2 * linked.pairs / (own - linked.roots)) : 0;
    const float first = fmaxf(fmaxf(linked.root + start, (linked.first + (before ? free.work : 0)) / own),
                              waves * (stateStep * linked.step + start));
    if (before && free.longest > first) // some of the others would still run beside the dependents
      continue;
    const float second = ceilf(linked.dependents / own) * (linked.step + start);
    best = fminf(best, fmaxf(fmaxf(work, linked.path), first + 2 * flag + second));
  }
  return best;
}

// The plan that deadline m gives; its time is `never` where there is none.
__device__ Deadline estimate(const Call &call, const Tiles &tiles, float m) {
  const float blocks = call.shape.blocks, room = blocks * m;
  const Free whole = freeWork(call, tiles, m, m);
  const bool many = whole.linked && whole.work > manyShare * room; // then runs leave slack, and so do paths
  Deadline plan{never, m, m, m, whole.work, 0};
  if (many) {
    plan.limit = m * pathShare;
    plan.run = fminf(m, fmaxf(m / 2, leastSlice * whole.warmest));
  }
  const Free free = freeWork(call, tiles, m, plan.run);
  const Linked linked = linkedWork(call, tiles, m, plan.limit);
  plan.free = free.work;
  plan.linked = linked.roots;
  if (!whole.possible || !free.possible || !linked.possible)
    return plan;
  const float work = (free.work + linked.first + linked.second) / blocks / packedLinked;
  if (many)
    plan.time = fmaxf(fmaxf(work, linked.path / pathShare), free.longest);
  else if (whole.linked)
    plan.time = wavesOf(free, linked, m, blocks, work);
  else if (free.work <= packed * room)
    plan.time = fmaxf(free.work / blocks / packed, free.longest);
  return plan;
}

// Tries deadlines from `low`, the blocks' mean, to `high`, the longest tile, in a geometric series.
__device__ Deadline search(const Call &call, const Tiles &tiles, float low, float high, Deadline uncut) {
  __shared__ Deadline tried[tries];
  const Int mine = threadIdx.x / lanes;
  float ratio = fmaxf(1.5f, high / low) * 1.02f, m = low;
  for (Int i = 1; i < tries; i *= 2)
    ratio = sqrtf(ratio); // the 64th root
  for (Int i = 1; i < tries; i *= 2, ratio *= ratio)
    if (mine & i)
      m *= ratio;
  Deadline plan = estimate(call, tiles, m);
  if (threadIdx.x % lanes == 0)
    tried[mine] = plan;
  __syncthreads();
  float best = uncut.time;
  for (Int i = 0; i < tries; ++i)
    if (tried[i].m < high && tried[i].time * margin + fee < best) {
      uncut = tried[i];
      best = uncut.time * margin + fee;
    }
  __syncthreads();
  return uncut;
}

// ---- Cuts

struct Plan {
  Deadline deadline;
  float run, quantum; // of the line: from a warm-up cut to the next, and from any cut to the next
  float fall;         // by which each dependent segment is shorter than the one before
  Int middle;         // slots that belong to matrices
  float shortest;     // chunks: tiles up to it stay whole
};

__device__ float modulo(float x, float y) { return x - floorf(x / y) * y; }

// Where a tile that lies at `at` on the line is cut by warm-up: a run ends where a block's does.
struct Runs {
  Int cuts;
  float first, step, length; // length on the line
};
__device__ Runs runsOf(Int chunks, Int warm, float at, float run) {
  float room = run - modulo(at, run);
  if (room < start + least)
    room += run;
  const float extra = warm * stateStep + start, first = room - start, step = run - extra;
  const Int cuts = max(0, Int(ceilf((chunks - first - least) / step)));
  return {cuts, first, step, chunks + start + cuts * extra};
}

// Hand-overs in a run of `size` chunks that begins at `at` on the line: where a quantum of it ends.
__device__ Int handsOf(float size, float at, float quantum, float &slice) {
  float room = quantum - modulo(at, quantum);
  if (room <= start + leastRest)
    room += quantum;
  slice = room - start;
  const float more = size - leastRest - slice;
  return more < 0 ? 0 : Int(more / (quantum - start)) + 1;
}

// A tile at `at` on the line, cut by warm-up as `runs` says.
__device__ CutTile onLine(Span span, Int sequence, Int head, Int part, const Runs &runs, Int warm, float at,
                          float quantum) {
  CutTile tile{sequence, span.begin, span.end, head, part, runs.cuts, runs.first, runs.step};
  const Int chunks = span.chunks();
  const float later = warm * stateStep; // runs but the first begin with a warm-up, where a quantum begins
  const float last = chunks - (runs.first + (runs.cuts - 1) * runs.step);
  tile.firstHands = handsOf(runs.cuts ? runs.first : chunks, at, quantum, tile.firstSlice);
  tile.hands = handsOf(runs.step, later, quantum, tile.slice);
  tile.lastHands = handsOf(last, later, quantum, tile.slice);
  return tile;
}

__device__ Count countOf(const Call &call, const CutTile &tile) {
  const Int x = tile.cuts, parts = call.shape.parts();
  if (tile.part < 0)
    return {1, parts * (3 * x + 2) + call.shape.valueDim / 64 * ((x + maxHops - 1) / maxHops), 1, x};
  const Int hands = tile.firstHands + (x ? (x - 1) * tile.hands + tile.lastHands : 0);
  return {1, 1 + x + hands, hands, 0};
}

// Adds the threads' tiles, of which a thread may have none, behind those that are listed.
__device__ void list(const Call &call, CutTile tile, bool mine, Count &listed) {
  Count total, at = prefix(mine ? countOf(call, tile) : Count{}, total);
  at = listed + at;
  tile.items = at.items;
  tile.slots = at.slots;
  tile.middle = at.middle;
  if (mine && at.tiles < call.at.cutTiles)
    call.place<CutTile>(call.at.cuts)[at.tiles] = tile;
  listed = listed + total;
}

// Tiles that are cut for parallelism. Returns where the line goes on.
__device__ float cutLong(const Call &call, const Tiles &tiles, const Plan &plan, Count &listed) {
  __shared__ float end;
  const Int parts = call.shape.parts(), all = tiles.count * parts;
  const bool invariant = call.shape.invariant();
  float *places = call.place<float>(call.at.places);
  if (threadIdx.x == 0) { // each begins where the one before ends, which depends on its cuts
    end = 0;
    for (Int i = 0; i < all && !invariant; ++i) {
      const LongTile tile = tiles.tiles[i / parts];
      if (tile.warm > longestWarm || !tiles.isLong(tile.chunks, plan.deadline.m))
        continue;
      places[i] = end;
      end += runsOf(tile.chunks, tile.warm, end, plan.run).length;
    }
  }
  __syncthreads();
  for (Int base = 0; base < all; base += threads) {
    const Int i = base + threadIdx.x, part = i % parts;
    const LongTile tile = i < all ? tiles.tiles[i / parts] : LongTile{};
    bool mine = i < all && (invariant || tiles.isLong(tile.chunks, plan.deadline.m));
    const Span span = mine ? spanOf(call, tile.sequence) : Span{};
    const bool decays = tile.warm <= longestWarm;
    CutTile cut{};
    if (mine && decays && !invariant) {
      const float at = places[i];
      cut = onLine(span, tile.sequence, tile.head, part, runsOf(tile.chunks, tile.warm, at, plan.run), tile.warm, at,
                   plan.quantum);
    } else if (mine && !decays && !invariant) {
      const Segments segments = segmentsOf(tile.chunks, plan.deadline.limit);
      cut = {tile.sequence, span.begin, span.end, tile.head, -1, segments.middle, segments.root, segments.step};
      mine = part == 0;
    } else if (mine) { // a root, one middle segment and a rest at least, or whole
      const Int segments = (tile.chunks + cutLength - 1) / cutLength;
      const bool linked = !decays && segments > 2 && call.shape.hops();
      cut = {tile.sequence, span.begin,         span.end,
             tile.head,     linked ? -1 : part, linked ? segments - 2 : decays ? segments - 1 : 0,
             cutLength,     cutLength};
      mine = !linked || part == 0;
    }
    list(call, cut, mine, listed);
  }
  return end;
}

// The tiles that are not cut for parallelism, thread by thread of a batch; `short` ones stay whole.
struct Whole {
  Span span;
  Int sequence, head, part;
  bool any, isShort;
};
__device__ Whole wholeTile(const Call &call, const Tiles &tiles, const Plan &plan, long long index) {
  if (index >= call.shape.tiles())
    return {};
  const Int parts = call.shape.parts(), head = Int(index / parts % call.shape.heads);
  const Int sequence = Int(index / parts / call.shape.heads);
  const Span span = spanOf(call, sequence);
  const bool any =
      call.shape.invariant() ? span.chunks() <= tiles.longest : !tiles.isLong(span.chunks(), plan.deadline.m);
  return {span, sequence, head, Int(index % parts), any, span.chunks() <= plan.shortest};
}

// Lays them on the line behind those that are. Returns how many stay whole.
__device__ Int cutOthers(const Call &call, const Tiles &tiles, const Plan &plan, float at, Count &listed) {
  Int whole = 0;
  for (long long base = 0; base < call.shape.tiles(); base += threads) {
    const Whole tile = wholeTile(call, tiles, plan, base + threadIdx.x);
    const bool mine = tile.any && !tile.isShort;
    float length;
    const float place = at + prefix(mine ? tile.span.chunks() + start : 0, length);
    list(call, onLine(tile.span, tile.sequence, tile.head, tile.part, Runs{}, 0, place, plan.quantum), mine, listed);
    Int more;
    prefix(Int(tile.any && tile.isShort), more);
    whole += more;
    at += length;
  }
  return whole;
}

// ---- Items

struct Piece {
  Item item;
  float tail; // steps
  bool late;
};

__device__ Item itemOf(const CutTile &tile, Int column, Int begin, Int end) { // of these chunks
  return {tile.begin + begin * chunkTokens,
          min(tile.begin + end * chunkTokens, tile.end),
          tile.sequence,
          tile.head,
          column,
          0,
          tile.head,
          0,
          0,
          Caller,
          1,
          Caller,
          0,
          0,
          {}};
}

// Item j of a tile on the line. The line's end of a run is its beginning, so that a tile's early part, which must run
// first, comes first in one block's share and its late part last in another's.
__device__ Piece linePiece(const Call &call, const Plan &plan, const CutTile &tile, Int j) {
  Int run = 0, slice = j, hands = tile.firstHands;
  if (tile.cuts && j > hands) {
    const Int k = j - hands - 1, each = 1 + tile.hands;
    run = min(1 + k / each, tile.cuts);
    slice = k - (run - 1) * each;
    hands = run == tile.cuts ? tile.lastHands : tile.hands;
  }
  const Int chunks = tile.chunks();
  const float begin = run ? tile.first + (run - 1) * tile.step : 0;
  const float end = run == tile.cuts ? chunks : tile.first + run * tile.step;
  auto edge = [&](Int i) {
    float at = i == 0      ? begin
               : i > hands ? end
                           : end - (run ? tile.slice : tile.firstSlice) - (hands - i) * (plan.quantum - start);
    return Int(rintf(at));
  };
  const Int first = edge(slice), last = edge(slice + 1);
  Int warm = 0;
  if (run && !slice)
    warm = min(first, Int(__ldcg(&warmAt(call, tile.begin, first, tile.head))));
  Item item = itemOf(tile, tile.part * call.shape.columns, first - warm, last);
  item.warm = warm;
  const Int slot = plan.middle + tile.slots + j - run; // a run's last item hands nothing over
  item.from = slice ? slot - 1 : warm < first ? Zeros : Caller;
  item.to = slice < hands ? slot : run == tile.cuts ? Caller : Nowhere;
  if (!run && !slice)
    item.from = Caller;
  const float tail = edge(hands + 1) - first + (hands - slice + 1) * start + (hands - slice) * flag + warm * stateStep;
  return {item, tail, false};
}

// Item j of a tile that is cut by transition: roots, M and N of each middle segment, scans, dependents.
__device__ Piece linkedPiece(const Call &call, const Plan &plan, const CutTile &tile, Int j) {
  const Int x = tile.cuts, parts = call.shape.parts(), columns = call.shape.columns, chunks = tile.chunks();
  const Segments segments{x, tile.first, tile.step};
  auto edge = [&](Int i) { return i < 0 ? 0 : segments.end(i, chunks, plan.fall); };
  auto part = [&](Int segment, Int part) { return itemOf(tile, part * columns, edge(segment - 1), edge(segment)); };
  const Int root = plan.middle + tile.slots;
  const float after = flag + start + tile.step + (hop - plan.fall) * x; // from the root's end to the tile's
  if (j < parts) {
    Item item = part(0, j);
    item.to = root;
    return {item, edge(0) + start + flag + after, false};
  }
  j -= parts;
  if (j < 2 * x * parts) {
    const Int segment = 1 + j / (2 * parts), size = edge(segment) - edge(segment - 1);
    const bool matrix = j / parts % 2 == 0;
    Item item = part(segment, j % parts);
    item.warm = size;
    item.from = matrix ? Identity : Zeros;
    item.to = tile.middle + segment - 1 + (matrix ? matrixBase : 0);
    item.valueHead = matrix ? call.shape.heads : tile.head;
    return {item, size * stateStep + start + flag + after, false};
  }
  j -= 2 * x * parts;
  const Int rows = call.shape.valueDim / 64, scans = rows * ((x + maxHops - 1) / maxHops);
  if (j < scans) {
    const Int done = j / rows * maxHops;
    Item item = itemOf(tile, j % rows * 64, edge(done), edge(done));
    item.end = item.begin;
    item.hops = min(maxHops, x - done);
    item.segment = tile.middle + done;
    item.from = done ? item.segment - 1 : root;
    item.fromCount = done ? 2 : 1;
    item.to = Nowhere;
    return {item, after, true};
  }
  j -= scans;
  const Int segment = 1 + j / parts;
  Item item = part(segment, j % parts);
  item.from = segment == 1 ? root : tile.middle + segment - 2;
  item.fromCount = segment == 1 ? 1 : 2;
  item.to = segment > x ? Caller : Nowhere;
  return {item, edge(segment) - edge(segment - 1) + start, true};
}

__device__ void store(Item *table, long long at, Item item, float tail) {
  item.tail = Int(tail * 16);
  table[at] = item;
}

// Writes the items into the tables, those with more behind them first: a stable sort by counting, warp by warp of equal
// shares. Early items fill the first bins, late ones the others. Returns how many early ones there are.
constexpr Int bins = 512, earlyBins = bins / 2;
static_assert(bins == threads);

__device__ Int order(const Call &call, const Plan &plan, Int items, Int whole) {
  __shared__ Int counts[warps][bins];
  __shared__ Int early;
  const Int lane = threadIdx.x % 32, warp = threadIdx.x / 32, share = (items + threads - 1) / threads * 32;
  const Int end = min(items, (warp + 1) * share);
  const float scale = earlyBins * 0.8f / plan.deadline.m; // few tails are longer than the deadline
  const CutTile *tiles = call.place<CutTile>(call.at.cuts);
  for (Int w = 0; w < warps; ++w)
    counts[w][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 1
  for (Int pass = 0; pass < 2; ++pass) {
    for (Int at = warp * share + lane; at - lane < end; at += 32) {
      Piece piece{};
      Int bin = bins;
      if (at < end) {
        const CutTile tile = tiles[call.place<Int>(call.at.owners)[at]];
        piece = tile.part < 0 ? linkedPiece(call, plan, tile, at - tile.items)
                              : linePiece(call, plan, tile, at - tile.items);
        bin = earlyBins - 1 - min(earlyBins - 1, Int(piece.tail * scale)) + (piece.late ? earlyBins : 0);
      }
      const Word same = __match_any_sync(~0u, bin);
      const Int rank = __popc(same & ((1u << lane) - 1)), first = bin < bins ? counts[warp][bin] : 0;
      __syncwarp();
      if (bin < bins && rank == 0)
        counts[warp][bin] = first + __popc(same);
      if (bin < bins && pass == 1)
        store(call.place<Item>(call.at.table), first + rank + (piece.late ? whole : 0), piece.item, piece.tail);
      __syncwarp();
    }
    __syncthreads();
    if (pass == 0) { // counts become places
      Int sum = 0, total;
      for (Int w = 0; w < warps; ++w)
        sum += counts[w][threadIdx.x];
      Int at = prefix(sum, total);
      if (threadIdx.x == earlyBins)
        early = at;
      for (Int w = 0; w < warps; ++w) {
        const Int count = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = at;
        at += count;
      }
      __syncthreads();
    }
  }
  return early;
}

// Short tiles, in the order of memory behind the early items.
__device__ void appendWhole(const Call &call, const Tiles &tiles, const Plan &plan, Int at) {
  for (long long base = 0; base < call.shape.tiles(); base += threads) {
    const Whole whole = wholeTile(call, tiles, plan, base + threadIdx.x);
    const bool mine = whole.any && whole.isShort;
    Int total;
    const Int place = at + prefix(Int(mine), total);
    if (mine) {
      CutTile tile{whole.sequence, whole.span.begin, whole.span.end, whole.head};
      const Int chunks = whole.span.chunks();
      store(call.place<Item>(call.at.table), place, itemOf(tile, whole.part * call.shape.columns, 0, chunks),
            chunks + start);
    }
    at += total;
  }
}

// ---- The whole

// Lists the tiles with more than `longest` chunks.
__device__ Tiles findLong(const Call &call, const Most &lengths, Int longest) {
  LongTile *tiles = call.place<LongTile>(call.at.longs);
  const Int heads = call.shape.heads;
  Int count = 0;
  Most rest{};
  for (Int base = 0; base < call.shape.sequences; base += threads) {
    const Int i = base + threadIdx.x, chunks = i < call.shape.sequences ? spanOf(call, i).chunks() : 0;
    Int total;
    const Int at = count + prefix(chunks > longest ? heads : 0, total);
    if (chunks > longest)
      for (Int head = 0; head < heads && at + head < call.at.longTiles; ++head)
        tiles[at + head] = {i, head, chunks, longestWarm + 1};
    else if (chunks)
      rest = rest + Most{float(chunks), chunks};
    count += total;
  }
  __syncthreads();
  const bool invariant = call.shape.invariant();
  const Int placed = Int(min((long long)count, call.at.longTiles));
  for (Int i = threadIdx.x; i < placed && call.shape.flags & Warm; i += threads) {
    const LongTile tile = tiles[i];
    const Int begin = spanOf(call, tile.sequence).begin;
    Int warm = 0;
    for (Int boundary = invariant ? cutLength : 1; boundary < tile.chunks; boundary += window)
      warm = max(warm, Int(__ldcg(&warmAt(call, begin, boundary, tile.head))));
    tiles[i].warm = warm;
  }
  Most all;
  prefix(rest, all);
  const long long each = call.shape.parts() * heads;
  all.sum = all.sum * each + start * (call.shape.tiles() - count * call.shape.parts());
  return {tiles, placed, all, longest, placed == count};
}

__device__ void writeHeader(const Call &call, Header header) {
  if (threadIdx.x == 0)
    *call.place<Header>(0) = header;
}

// False where the workspace has no place for the plan: then nothing is cut.
__device__ bool fits(const Call &call, const Tiles &tiles, const Count &listed, Int whole) {
  return tiles.all && listed.tiles <= call.at.cutTiles && listed.items <= call.at.cutItems &&
         listed.items + whole <= call.at.items && listed.middle <= call.at.matrices &&
         listed.middle + listed.slots <= call.at.slots;
}

__device__ Plan choose(const Call &call, const Most &lengths, const Tiles &tiles, float low) {
  const float blocks = call.shape.blocks, all = low * blocks + call.shape.tiles() * start;
  const bool invariant = call.shape.invariant();
  float high = lengths.most + start;
  if (invariant)
    high = fminf(high, cutLength + start);
  Deadline deadline{0, fmaxf(high, all / blocks / packed * 1.001f), 0, 0, all, 0};
  deadline.run = deadline.limit = deadline.m;
  deadline.time = fmaxf(high, all / blocks / packed);
  if (tiles.count && !invariant)
    deadline = search(call, tiles, low, high, deadline);
  return {deadline, 0, 0, invariant ? 0 : hop, 0, deadline.m / shortShare};
}

// Slices of a run: beside transitions some, a hand-over each but for the last of a run.
__device__ Int slicesOf(const Call &call, const Deadline &deadline) {
  if (deadline.run >= deadline.m)
    return 1;
  const float slots = call.at.slots - call.at.matrices - deadline.linked;
  return max(1, min(slices, Int(fminf(deadline.run / leastSlice, 1 + slots * deadline.run / deadline.free))));
}

__device__ void makePlan(const Call &call, const Most &lengths, Int longest, float low) {
  const Tiles tiles = findLong(call, lengths, longest);
  __syncthreads();
  Plan plan = choose(call, lengths, tiles, low);
  Count listed;
  Int whole;
  // As many slices as there are slots for: where there are more hand-overs than that, fewer.
  for (Int parts = slicesOf(call, plan.deadline);; --parts) {
    plan.quantum = fmaxf(plan.deadline.run / parts, start + 6);
    plan.run = plan.quantum * parts;
    listed = {};
    whole = cutOthers(call, tiles, plan, cutLong(call, tiles, plan, listed), listed);
    if (fits(call, tiles, listed, whole))
      break;
    if (parts == 1)
      return writeHeader(call, Header{Natural});
  }
  plan.middle = listed.middle;
  __syncthreads();
  for (Int i = threadIdx.x; i < listed.tiles; i += threads) {
    const CutTile tile = call.place<CutTile>(call.at.cuts)[i];
    const Int count = countOf(call, tile).items;
    for (Int j = 0; j < count; ++j)
      call.place<Int>(call.at.owners)[tile.items + j] = i;
  }
  __syncthreads();
  const Int early = order(call, plan, listed.items, whole);
  appendWhole(call, tiles, plan, early);
  const Int slots = listed.middle + listed.slots, rows = slots + listed.middle;
  for (Int i = threadIdx.x; i < rows * flagRows; i += threads)
    call.place<Word>(call.at.flags)[i] = 0;
  writeHeader(call, Header{Planned, Word(early + whole), Word(listed.items - early), 0, 0, Word(call.at.table),
                           Word(call.at.table + (early + whole) * sizeof(Item)), Word(call.at.flags), Word(slots)});
}

} // namespace

extern "C" __global__ void __launch_bounds__(threads, 1) // one block an SM: all registers that it can have
    gdn_plan(const void *offsets, int wide, int sequences, int length, int tokens, int heads, const void *g,
             long long gToken, long long gHead, int gType, const void *aLog, int aLogType, const void *dtBias,
             int dtBiasType, int options, char *workspace, int blocks, int keyDim, int valueDim, int columns,
             int flags) {
  const Shape shape{sequences, tokens, heads, keyDim, valueDim, columns, blocks, Word(flags)};
  const Call call{offsets,  wide != 0,  length,  g,         gToken, gHead,           aLog, dtBias, gType,
                  aLogType, dtBiasType, options, workspace, shape,  layout(shape, 2)};
  const Most lengths = measure(call);
  const float low = lengths.sum * shape.parts() * heads / blocks; // steps a block, were they shared evenly
  const Int longest = shape.invariant() ? cutLength : Int(fminf(low, 1 << 30));
  const bool mustCut = shape.invariant() && lengths.most > longest;
  if (!mustCut &&
      (shape.tiles() > mostTiles(shape) || (shape.tiles() >= 8 * blocks && lengths.most <= low / shortShare))) {
    if (blockIdx.x == 0)
      writeHeader(call, Header{Natural});
    return;
  }
  if (lengths.most > longest && flags & Warm) {
    readGates(call, longest);
    if (!lastOfAll(call))
      return;
  } else if (blockIdx.x != 0) {
    return;
  }
  makePlan(call, lengths, longest, low);
}
