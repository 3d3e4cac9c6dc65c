// The operator token by token in fp64 on the GPU, and the comparison with a result, for sizes that a CPU cannot hold.
// No headers: compiled by NVRTC or nvcc as it stands.

namespace {

enum Type { F32, BF16, F16 };
constexpr int lanes = 4;    // threads that share a column of the state
constexpr int maxRows = 32; // of the state in one thread: K <= 128
constexpr int columns = 32; // of the state in one block

__device__ float half(unsigned short bits) {
  unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 0)
    return __uint_as_float(__float_as_uint(fraction * 5.9604644775390625e-8f) | sign);
  return __uint_as_float(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

__device__ float element(const void *data, long long index, int type) {
  if (type == F32)
    return static_cast<const float *>(data)[index];
  unsigned short bits = static_cast<const unsigned short *>(data)[index];
  return type == BF16 ? __uint_as_float(unsigned(bits) << 16) : half(bits);
}

__device__ double sumOverLanes(double x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

} // namespace

// All tensors are contiguous, states [N, HV, K, V]; `initial` may be null. Grid: N * HV * ceil(V / 32) blocks of 128.
extern "C" __global__ void __launch_bounds__(lanes *columns)
    gdn_reference(const void *q, const void *k, const void *v, const float *g, const float *beta, const float *initial,
                  const long long *offsets, float *output, float *final, int heads, int valueHeads, int keyDim,
                  int valueDim, float scale, int type) {
  int blocks = (valueDim + columns - 1) / columns;
  long long item = blockIdx.x / blocks, sequence = item / valueHeads;
  int head = item % valueHeads, keyHead = head / (valueHeads / heads);
  int column = blockIdx.x % blocks * columns + threadIdx.x / lanes, rows = keyDim / lanes;
  int first = threadIdx.x % lanes * rows;
  bool inside = column < valueDim;
  long long state = (item * keyDim + first) * valueDim + column;
  double s[maxRows] = {};
#pragma unroll
  for (int i = 0; i < maxRows; ++i)
    if (i < rows && inside && initial)
      s[i] = initial[state + (long long)i * valueDim];

  for (long long t = offsets[sequence]; t < offsets[sequence + 1]; ++t) {
    long long at = t * valueHeads + head, key = (t * heads + keyHead) * keyDim + first;
    double decay = exp(double(g[at])), sum = 0, out = 0;
#pragma unroll
    for (int i = 0; i < maxRows; ++i)
      if (i < rows) {
        s[i] *= decay;
        sum += s[i] * element(k, key + i, type);
      }
    double value = inside ? element(v, at * valueDim + column, type) : 0;
    double u = beta[at] * (value - sumOverLanes(sum));
#pragma unroll
    for (int i = 0; i < maxRows; ++i)
      if (i < rows) {
        s[i] += element(k, key + i, type) * u;
        out += s[i] * element(q, key + i, type);
      }
    out = sumOverLanes(out);
    if (inside && first == 0)
      output[at * valueDim + column] = float(scale * out);
  }
#pragma unroll
  for (int i = 0; i < maxRows; ++i)
    if (i < rows && inside && final)
      final[state + (long long)i * valueDim] = float(s[i]);
}

// Per row: the square norms of got - want and of want. faults[0] counts elements of `got` that are not finite,
// faults[1] those that are not zero where the reference is. One warp a row.
extern "C" __global__ void gdn_compare(const float *want, const void *got, int type, long long rows, int width,
                                       double *difference, double *reference, unsigned long long *faults) {
  long long row = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  double differences = 0, references = 0;
  unsigned notFinite = 0, notZero = 0;
  for (int i = lane; i < width; i += 32) {
    double x = want[row * width + i], y = element(got, row * width + i, type);
    bool finite = y - y == 0;
    notFinite += !finite;
    notZero += x == 0 && y != 0;
    differences += finite ? (y - x) * (y - x) : 0;
    references += x * x;
  }
  for (int step = 16; step; step /= 2) {
    differences += __shfl_xor_sync(0xffffffffu, differences, step);
    references += __shfl_xor_sync(0xffffffffu, references, step);
  }
  if (lane == 0) {
    difference[row] = differences;
    reference[row] = references;
  }
  if (notFinite)
    atomicAdd(&faults[0], (unsigned long long)notFinite);
  if (notZero)
    atomicAdd(&faults[1], (unsigned long long)notZero);
}
