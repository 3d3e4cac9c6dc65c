// Loops keep their shape: no unrolling, and accumulators carried around a loop stay in their registers.
// RUN: gdn-opt %s --emit=ptx | FileCheck %s
// RUN: gdn-opt %s --emit=cubin -o %t
sm.kernel @k(%p: i64) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, params = [{kind = "pointer", name = "p"}]} {
  %base = sm.shared_base
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  // CHECK: wgmma.mma_async{{.*}} {%[[A:r[0-9]+]], %[[B:r[0-9]+]], %[[C:r[0-9]+]], %[[D:r[0-9]+]]}, da, db, 0
  sm.wgmma.fence
  %d:4 = sm.wgmma bf16 n 8 at %base b %base : f32, f32, f32, f32
  sm.wgmma.commit
  // CHECK: [[LOOP:\$L.*]]:
  %r:4 = scf.for %i = %zero to %four step %one iter_args(%a0 = %d#0, %a1 = %d#1, %a2 = %d#2, %a3 = %d#3) -> (f32, f32, f32, f32) : i32 {
    // CHECK: wgmma.mma_async{{.*}} {%[[A]], %[[B]], %[[C]], %[[D]]}, da, db, 1
    // CHECK-NOT: wgmma.mma_async
    // CHECK-NOT: mov.b32 %[[A]]
    // CHECK: bra [[LOOP]]
    sm.wgmma.fence
    %e:4 = sm.wgmma bf16 n 8 at %base b %base into (%a0, %a1, %a2, %a3) : f32, f32, f32, f32
    sm.wgmma.commit
    scf.yield %e#0, %e#1, %e#2, %e#3 : f32, f32, f32, f32
  }
  %w:4 = sm.wgmma.wait 0 (%r#0, %r#1, %r#2, %r#3 : f32, f32, f32, f32)
  // CHECK: wgmma.wait_group
  // CHECK: st.global.v4.b32 [%rd{{[0-9]+}}], {%[[A]], %[[B]], %[[C]], %[[D]]};
  sm.store_global %w#0, %w#1, %w#2, %w#3 to %p if %true : f32, f32, f32, f32
}
