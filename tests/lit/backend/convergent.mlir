// R4: a barrier stays the only one of its kind. Both branches are on the same condition, and LLVM would put what lies between them into
// a copy for either path.
// RUN: gdn-opt %s --emit=ptx | FileCheck %s
// CHECK-COUNT-1: bar.sync 1, 128;
// CHECK-NOT: bar.sync
// Pure, but all lanes take part: neither copied into the branches nor moved into the one that uses it.
// CHECK: ret;
// RUN: gdn-opt %s --emit=ptx | FileCheck --check-prefix=PURE %s
// PURE: movmatrix
// PURE-NOT: movmatrix
// PURE: bra
// PURE: st.shared
sm.kernel @k(%s: f32) attributes {threads = 128 : i64, shared_bytes = 1024 : i64, params = [{kind = "scalar", name = "s"}]} {
  %base = sm.shared_base
  %thread = sm.thread : i32
  %zero = arith.constant 0 : i32
  %first = arith.cmpi eq, %thread, %zero : i32
  %x = scf.if %first -> f32 {
    sm.store_shared %s to %base : f32
    scf.yield %s : f32
  } else {
    %t = arith.mulf %s, %s : f32
    scf.yield %t : f32
  }
  sm.bar.sync 1 threads 128
  %p = sm.pack bf16 %x, %s
  %m = sm.movmatrix %p
  scf.if %first {
    sm.store_shared %m to %base : i32
  }
}
