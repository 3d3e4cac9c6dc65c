// An advisory of ptxas is a failure that names kernel and line. R3: the loop scales an accumulator while another product is in flight, and
// does not reach it as a product's result on every path.
// RUN: mkdir -p %t.tmp && env TMPDIR=%t.tmp not gdn-opt %s --emit=cubin 2>&1 | FileCheck %s
// CHECK: advisory.mlir: error: kernel 'advisory_sm_90a': ptxas info    : (C7517) warpgroup.wait is injected {{.*}} [advisory.mlir:{{(15|16|17|18|19)}}]
// CHECK: advisory.mlir: note: reproduce with: {{.*}}ptxas --gpu-name=sm_90a
sm.kernel @r3(%p: i64, %s: f32) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, params = [{kind = "pointer", name = "p"}, {kind = "scalar", name = "s"}]} {
  %base = sm.shared_base
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = sm.blocks : i32
  %r:4 = scf.for %i = %zero to %n step %one iter_args(%a0 = %s, %a1 = %s, %a2 = %s, %a3 = %s) -> (f32, f32, f32, f32) : i32 {
    sm.wgmma.fence
    %o:4 = sm.wgmma bf16 n 8 at %base b %base : f32, f32, f32, f32
    sm.wgmma.commit
    %b0 = arith.mulf %a0, %s : f32
    %b1 = arith.mulf %a1, %s : f32
    %b2 = arith.mulf %a2, %s : f32
    %b3 = arith.mulf %a3, %s : f32
    %f:4 = sm.wgmma.fence (%b0, %b1, %b2, %b3 : f32, f32, f32, f32)
    %e:4 = sm.wgmma bf16 n 8 at %base b %base into (%f#0, %f#1, %f#2, %f#3) : f32, f32, f32, f32
    sm.wgmma.commit
    %w:8 = sm.wgmma.wait 0 (%e#0, %e#1, %e#2, %e#3, %o#0, %o#1, %o#2, %o#3 : f32, f32, f32, f32, f32, f32, f32, f32)
    sm.store_global %w#4, %w#5, %w#6, %w#7 to %p if %true : f32, f32, f32, f32
    scf.yield %w#0, %w#1, %w#2, %w#3 : f32, f32, f32, f32
  }
  sm.store_global %r#0, %r#1, %r#2, %r#3 to %p if %true : f32, f32, f32, f32
}
