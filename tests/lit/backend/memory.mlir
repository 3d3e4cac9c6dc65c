// Shared memory is read by ordinary loads: words that nothing reads are dropped, and none crosses a barrier or a fence.
// RUN: gdn-opt %s --emit=ptx | FileCheck %s
sm.kernel @k(%p: i64) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, params = [{kind = "pointer", name = "p"}]} {
  %base = sm.shared_base
  %true = arith.constant true
  // CHECK-LABEL: .entry
  // A vector whose words are all read.
  // CHECK: ld.shared.v4.b32
  %a:4 = sm.load_shared %base : i32, i32, i32, i32
  %s0 = arith.addi %a#0, %a#1 : i32
  %s1 = arith.addi %a#2, %a#3 : i32
  %s2 = arith.addi %s0, %s1 : i32
  // CHECK: bar.sync 1
  sm.bar.sync 1 threads 128
  // The same address again: another thread may have written it.
  // CHECK: ld.shared.b32
  %b:4 = sm.load_shared %base : i32, i32, i32, i32
  %s3 = arith.addi %s2, %b#0 : i32
  // CHECK: st.shared.b32
  sm.store_shared %s3 to %base : i32
  // CHECK: fence.proxy.async
  sm.fence.async
  // A shuffle has its place among effects, but is none on memory: what was stored need not be loaded.
  // CHECK: st.shared.b32
  // CHECK-NOT: ld.shared
  // CHECK: shfl.sync
  // CHECK-NOT: ld.shared
  // CHECK: ret;
  sm.store_shared %s2 to %base : i32
  %t = sm.shuffle idx %s3 by %s0 : i32
  %c = sm.load_shared %base : i32
  %s4 = arith.addi %c, %t : i32
  sm.store_global %s4 to %p if %true : i32
}
