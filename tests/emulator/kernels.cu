// Kernels as a person writes them, compiled by NVRTC: the emulator must not know our own compiler's habits alone.
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
struct alignas(64) Map {
  char bytes[128];
};

__device__ u32 shared(const void *p) { return u32(__cvta_generic_to_shared(p)); }
__device__ void init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ void expect(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ void wait(u32 bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}
__device__ void load2(u32 to, const Map *map, u32 bar, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          to),
      "l"(map), "r"(bar), "r"(x), "r"(y)
      : "memory");
}
__device__ u64 descriptor(u32 address, u32 leading, u32 stride, u64 swizzle) {
  return u64(address >> 4 & 0x3fff) | u64(leading >> 4) << 16 | u64(stride >> 4) << 32 | swizzle << 62;
}

// C [64, 64] = A [64, 64] B [64, 64]^T (both with k contiguous), or B [64 k, 64] where `transposed`; bf16, fp32 sums.
// RS: A from registers.
template <bool Registers, int Transposed>
__device__ void product(float (&d)[32], const u32 (&a)[4], u64 da, u64 db, int accumulate) {
#define SUMS                                                                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
  "%24, %25, %26, "                                                                                                    \
  "%27, %28, %29, %30, %31}"
#define TIED(N) "+f"(d[N]), "+f"(d[N + 1]), "+f"(d[N + 2]), "+f"(d[N + 3])
#define ALL TIED(0), TIED(4), TIED(8), TIED(12), TIED(16), TIED(20), TIED(24), TIED(28)
  if constexpr (Registers)
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS
                 ", {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}"
                 : ALL
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db), "r"(accumulate), "n"(Transposed));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " SUMS
                 ", %32, %33, p, 1, 1, 0, %35;\n}"
                 : ALL
                 : "l"(da), "l"(db), "r"(accumulate), "n"(Transposed));
}

template <bool Registers, int Transposed> __device__ void matmul(const Map *ma, const Map *mb, float *c) {
  __shared__ alignas(1024) u16 a[4096], b[4096];
  __shared__ u64 bar;
  const u32 sa = shared(a), sb = shared(b), full = shared(&bar);
  const int t = threadIdx.x, w = t / 32, l = t % 32;
  if (t == 0) {
    init(full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    expect(full, 16384);
    load2(sa, ma, full, 0, 0);
    load2(sb, mb, full, 0, 0);
  }
  __syncthreads();
  wait(full, 0);
  float d[32];
  u32 r[4][4] = {};
  if (Registers)
    for (int k = 0; k < 4; k++) // rows of the swizzled tile, as ldmatrix takes them
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r[k][0]), "=r"(r[k][1]), "=r"(r[k][2]), "=r"(r[k][3])
                   : "r"(sa + (16 * w + l % 16) * 128 + (((2 * k + l / 16) ^ (l % 8)) << 4))
                   : "memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < 4; k++)
    product<Registers, Transposed>(
        d, r[k], descriptor(sa + 32 * k, 16, 1024, 1),
        Transposed ? descriptor(sb + 2048 * k, 8192, 1024, 1) : descriptor(sb + 32 * k, 16, 1024, 1), k > 0);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL::"memory");
  for (int i = 0; i < 32; i++)
    c[(16 * w + l / 4 + 8 * (i / 2 % 2)) * 64 + i / 4 * 8 + 2 * (l % 4) + i % 2] = d[i];
}
extern "C" __global__ void __launch_bounds__(128)
    matmul_shared(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c) {
  matmul<false, 0>(&a, &b, c);
}
extern "C" __global__ void __launch_bounds__(128)
    matmul_registers(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c) {
  matmul<true, 0>(&a, &b, c);
}
extern "C" __global__ void __launch_bounds__(128)
    matmul_transposed(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c) {
  matmul<true, 1>(&a, &b, c);
}

// C [16, 8] = A [16, 64] B [64, 8] in fp16 by one warp: ldmatrix, mma.sync.
extern "C" __global__ void matmul_warp(const u16 *a, const u16 *b, float *c) {
  __shared__ alignas(16) u16 sa[16 * 64], sb[64 * 8];
  const int l = threadIdx.x;
  for (int n = l; n < 16 * 64; n += 32)
    sa[n] = a[n];
  for (int n = l; n < 64 * 8; n += 32)
    sb[n] = b[n];
  __syncwarp();
  float d[4] = {};
  for (int k = 0; k < 64; k += 16) {
    u32 x[4], y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared(sa + l % 16 * 64 + k + l / 16 * 8))
                 : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(shared(sb + (k + l % 16) * 8))
                 : "memory");
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
                 "%1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
  for (int i = 0; i < 4; i++)
    c[(l / 4 + 8 * (i / 2)) * 8 + 2 * (l % 4) + i % 2] = d[i];
}

// y = x + 1 through shared memory in pieces of 1 KB, two of them in flight, and sum += y.
extern "C" __global__ void bulk_copy(const float *x, float *y, float *sum, int pieces) {
  __shared__ alignas(128) float in[2][256], out[256];
  __shared__ u64 bars[2];
  const int t = threadIdx.x;
  auto fetch = [&](int n) {
    u32 bar = shared(&bars[n & 1]);
    expect(bar, 1024);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared(in[n & 1])),
                 "l"(x + 256 * n), "r"(1024), "r"(bar)
                 : "memory");
  };
  if (t == 0) {
    init(shared(&bars[0]), 1), init(shared(&bars[1]), 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int n = 0; n < 2 && n < pieces; n++)
      fetch(n);
  }
  __syncthreads();
  for (int n = 0; n < pieces; n++) {
    wait(shared(&bars[n & 1]), n >> 1 & 1);
    out[t] = in[n & 1][t] + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + 256 * n), "r"(shared(out)),
                   "r"(1024)
                   : "memory");
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(sum),
                   "r"(shared(out)), "r"(1024)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      if (n + 2 < pieces)
        fetch(n + 2);
    }
    __syncthreads();
  }
  if (t == 0)
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Sum of n floats: within lanes, warps, the block, then by an atomic.
extern "C" __global__ void reduce(const float *x, int n, float *sum) {
  __shared__ float warps[32];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    s += x[i];
  for (int o = 16; o; o /= 2)
    s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
    for (int o = 16; o; o /= 2)
      s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x == 0)
      atomicAdd(sum, s);
  }
}

// A long run of arithmetic, for the speed of the emulator itself.
extern "C" __global__ void arithmetic(float *x, int rounds) {
  __shared__ float s[256];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float a = x[i], b = a * 0.5f, c = b + 1;
  for (int n = 0; n < rounds; n++) {
    a = a * 0.999f + b;
    b = fminf(b * c, 3.0f) - a * 0.25f;
    s[t] = a;
    c = fmaxf(c - s[t ^ 1] * 0.125f, -2.0f) + float(n & 7);
    c *= 0.5f;
  }
  x[i] = a + b + c;
}
