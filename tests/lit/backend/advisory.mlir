// An advisory of ptxas is a failure that names kernel and line: here a loop that breaks R3 and whose condition is in its body, where the
// compiler does not check it.
// RUN: mkdir -p %t.tmp && env TMPDIR=%t.tmp not gdn-opt %s --emit=cubin 2>&1 | FileCheck %s
// CHECK: advisory.mlir: error: kernel 'advisory_sm_90a': ptxas info    : (C7517) warpgroup.wait is injected {{.*}} [advisory.mlir:[[# @LINE+16]]]
// CHECK: advisory.mlir: note: reproduce with: {{.*}}ptxas --gpu-name=sm_90a
sm.kernel @r3(%p: i64, %s: f32) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, params = [{kind = "pointer", name = "p"}, {kind = "scalar", name = "s"}]} {
  %base = sm.shared_base
  %true = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = sm.blocks : i32
  %r:5 = scf.while (%i = %zero, %a0 = %s, %a1 = %s, %a2 = %s, %a3 = %s) : (i32, f32, f32, f32, f32) -> (i32, f32, f32, f32, f32) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %i, %a0, %a1, %a2, %a3 : i32, f32, f32, f32, f32
  } do {
  ^bb0(%i: i32, %a0: f32, %a1: f32, %a2: f32, %a3: f32):
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
    %next = arith.addi %i, %one : i32
    scf.yield %next, %w#0, %w#1, %w#2, %w#3 : i32, f32, f32, f32, f32
  }
  sm.store_global %r#1, %r#2, %r#3, %r#4 to %p if %true : f32, f32, f32, f32
}
