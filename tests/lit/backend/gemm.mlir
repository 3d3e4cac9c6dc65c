// A tile of C = A B^T from bulk loads to a bulk store: what PTX comes of it, and that ptxas finds nothing to say against it.
// RUN: gdn-opt %s --emit=ptx --entry=gemm | FileCheck %s
// RUN: gdn-opt %s --emit=ptx | FileCheck --check-prefix=NAME %s
// RUN: gdn-opt %s --emit=llvm | FileCheck --check-prefix=LLVM %s
// RUN: gdn-opt %s --emit=sm | FileCheck --check-prefix=SM %s
// RUN: gdn-opt %s --emit=cubin -o %t.cubin
// RUN: llvm-readelf -h %t.cubin | FileCheck --check-prefix=ELF %s
// ELF: Machine: NVIDIA CUDA architecture
// SM: sm.kernel @gemm
// NAME: .visible .entry gemm_sm_90a(

// The same bytes, whatever the folders are called.
// RUN: mkdir -p %t.elsewhere/tmp && cp %s %t.elsewhere/gemm.mlir
// RUN: env TMPDIR=%t.elsewhere/tmp gdn-opt %t.elsewhere/gemm.mlir --emit=cubin -o %t.elsewhere/gemm.cubin
// RUN: cmp %t.cubin %t.elsewhere/gemm.cubin
// RUN: gdn-opt %s --emit=ptx -o %t.ptx
// RUN: gdn-opt %t.elsewhere/gemm.mlir --emit=ptx | cmp %t.ptx -

// LLVM: define ptx_kernel void @gemm_sm_90a(ptr {{.*}}byval([128 x i8]) align 64 "nvvm.grid_constant"

// CHECK: .version 8.6
// CHECK: .target sm_90a
// CHECK: .extern .shared .align 1024 .b8 gdn_shared[];
// CHECK: .visible .entry gemm(
// CHECK: .param .align 64 .b8 gemm_param_0[128],
// CHECK: .param .f32 gemm_param_3
// CHECK: .maxntid 128
// CHECK: .minnctapersm 1
// No copy of a tensor map, 32-bit shared addresses.
// CHECK-NOT: .local
// CHECK: cvta.param.u64
// CHECK: mov.b32 {{.*}}%r{{[0-9]+}}, gdn_shared;
// CHECK: mbarrier.try_wait.parity
// CHECK: wgmma.fence.sync.aligned;
// CHECK: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%[[R:r[0-9]+]], {{.*}}}, da, db, 0, 1, 1, 0, 0;
// CHECK: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {%[[R]], {{.*}}}, da, db, 1, 1, 1, 0, 0;
// CHECK: wgmma.wait_group.sync.aligned 0;
// The accumulator is read where the product left it, and sums of products contract.
// CHECK: mul.f32 {{.*}}, %[[R]];
// CHECK: fma.rn.f32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: stmatrix
// CHECK: ld.shared.v2.b32
// CHECK: ldmatrix
// CHECK: st.shared.v4.b32
// The barrier's address depends on what was read.
// CHECK: or.b32 %[[ANY:r[0-9]+]],
// CHECK: and.b32 %[[NONE:r[0-9]+]], %[[ANY]],
// CHECK: add.s32 %[[AT:r[0-9]+]], {{.*}}%[[NONE]]
// CHECK: mbarrier.arrive.shared::cta.b64 _, [%[[AT]]];
// CHECK: cp.async.bulk.tensor.4d.global.shared::cta.bulk_group
sm.kernel @gemm(%a: !sm.map, %b: !sm.map, %c: !sm.map, %scale: f32)
    attributes {threads = 128 : i64, shared_bytes = 41984 : i64, params = [
      {kind = "map", name = "a", element = "bf16", columns = 128 : i64, box_columns = 64 : i64, box_rows = 64 : i64},
      {kind = "map", name = "b", element = "bf16", columns = 128 : i64, box_columns = 64 : i64, box_rows = 64 : i64},
      {kind = "map", name = "c", element = "bf16", columns = 64 : i64, box_columns = 64 : i64, box_rows = 64 : i64},
      {kind = "scalar", name = "scale"}]} {
  %base = sm.shared_base
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c16k = arith.constant 16384 : i32
  %c32k = arith.constant 32768 : i32
  %c40k = arith.constant 40960 : i32
  %tid = sm.thread : i32
  %first = arith.cmpi eq, %tid, %c0 : i32
  %bar = arith.addi %base, %c40k : i32
  %sb = arith.addi %base, %c16k : i32
  %sc = arith.addi %base, %c32k : i32
  scf.if %first {
    sm.mbarrier.init %bar count 1
    sm.mbarrier.fence_init
  }
  sm.bar.sync 0 threads 128
  %block = sm.block : i32
  %row = arith.muli %block, %c64 : i32
  scf.if %first {
    sm.mbarrier.expect %bar bytes 32768
    %c8k = arith.constant 8192 : i32
    %a1 = arith.addi %base, %c8k : i32
    %b1 = arith.addi %sb, %c8k : i32
    sm.bulk.load %a[%c0, %c0, %row, %c0] to %base on %bar
    sm.bulk.load %a[%c64, %c0, %row, %c0] to %a1 on %bar
    sm.bulk.load %b[%c0, %c0, %c0, %c0] to %sb on %bar
    sm.bulk.load %b[%c64, %c0, %c0, %c0] to %b1 on %bar
  }
  sm.mbarrier.wait %bar parity %c0
  %mask = arith.constant 262143 : i32
  %lbo = arith.constant 65536 : i32
  %am = arith.andi %base, %mask : i32
  %as = arith.shrui %am, %c4 : i32
  %ad = arith.ori %as, %lbo : i32
  %bm = arith.andi %sb, %mask : i32
  %bs = arith.shrui %bm, %c4 : i32
  %bd = arith.ori %bs, %lbo : i32
  sm.wgmma.fence
  %d:16 = sm.wgmma bf16 n 32 at %ad b %bd : f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32
  %ad1 = arith.addi %ad, %c2 : i32
  %bd1 = arith.addi %bd, %c2 : i32
  %e:16 = sm.wgmma bf16 n 32 at %ad1 b %bd1 into (%d#0,%d#1,%d#2,%d#3,%d#4,%d#5,%d#6,%d#7,%d#8,%d#9,%d#10,%d#11,%d#12,%d#13,%d#14,%d#15) : f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32
  sm.wgmma.commit
  %f:16 = sm.wgmma.wait 0 (%e#0,%e#1,%e#2,%e#3,%e#4,%e#5,%e#6,%e#7,%e#8,%e#9,%e#10,%e#11,%e#12,%e#13,%e#14,%e#15 : f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32,f32)
  %s0 = arith.mulf %f#0, %scale : f32
  %s1 = arith.mulf %f#1, %scale : f32
  %s2 = arith.addf %s1, %f#2 : f32
  %p0 = sm.pack bf16 %s0, %s2
  %p1 = sm.pack bf16 %f#4, %f#5
  %p2 = sm.pack bf16 %f#8, %f#9
  %p3 = sm.pack bf16 %f#14, %f#15
  %lane = sm.lane
  %c7 = arith.constant 7 : i32
  %lo = arith.shli %lane, %c7 : i32
  %at = arith.addi %sc, %lo : i32
  sm.stmatrix %p0, %p1, %p2, %p3 to %at
  %l:2 = sm.load_shared %at : i32, i32
  %q:4 = sm.ldmatrix trans %at : i32, i32, i32, i32
  sm.store_shared %q#0, %q#1, %q#2, %l#0 to %at : i32, i32, i32, i32
  sm.mbarrier.arrive %bar if %first after %q#3, %l#1
  sm.fence.async
  sm.bar.sync 1 threads 128
  scf.if %first {
    sm.bulk.store %sc to %c[%c0, %c0, %row, %c0]
    sm.bulk.commit
    sm.bulk.wait read 0
  }
}
