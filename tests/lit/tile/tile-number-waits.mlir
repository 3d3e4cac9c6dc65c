// How many younger products each wait leaves in flight, from the order of the text: of the forward's chain, and what is refused.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-instantiate="values=K=128,V=128" --tile-rotate --tile-number-waits | FileCheck %s
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-number-waits --mlir-print-op-on-diagnostic=false

// CHECK: tile.role @state
// CHECK: %[[TURN:.*]]:2 = tile.turn
// O of the chunk before was closed at the back-edge.
// CHECK: %[[X:.*]] = tile.mma
// CHECK-NEXT: tile.wait %{{.*}} {done}
// K S leaves Q S in flight; U leaves nothing; S' leaves O.
// CHECK: tile.wait %[[TURN]]#0 {leaves = 1 : i64}
// CHECK-NEXT: tile.wait %[[TURN]]#1 {leaves = 0 : i64}
// CHECK: %[[U:.*]] = tile.mma {{.*}} lower :
// CHECK: tile.wait %[[U]] {leaves = 0 : i64}
// CHECK: %[[S:.*]] = tile.mma {{.*}} into
// CHECK: %[[O:.*]] = tile.mma {{.*}} lower into
// CHECK: tile.wait %[[S]] {leaves = 1 : i64}
// CHECK: %[[CLOSED:.*]] = tile.wait %[[O]] {leaves = 0 : i64}
// CHECK: %[[READY:.*]] = tile.ready %[[CLOSED]]
// CHECK: scf.yield %{{.*}}, %[[READY]],

!acc = !tile.frag<[64, 64], f32>
!buf = !tile.buf<[64, 64], bf16>
tile.kernel @enters(%n: i32, %b: !buf) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    // expected-note @+1 {{issued here}}
    %p = tile.mma %b, %b : !buf, !buf
    // expected-error @+1 {{entered with a product in flight}}
    scf.for %i = %zero to %n step %one : i32 { }
    %x = tile.wait %p : !tile.pending<!acc>
  }
}

// -----
!acc = !tile.frag<[64, 64], f32>
!buf = !tile.buf<[64, 64], bf16>
tile.kernel @leaves(%n: i32, %b: !buf) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    scf.for %i = %zero to %n step %one : i32 {
      %p = tile.mma %b, %b : !buf, !buf
      %q = tile.mma %b, %b into %p : !buf, !buf into !tile.pending<!acc>
      %r = tile.mma %b, %b into %q : !buf, !buf into !tile.pending<!acc>
      // A sum of products is one, and it is the last that stands for it.
      // expected-error @+1 {{is still in flight at the loop's back-edge and is not carried}}
      %s = tile.mma %b, %b into %r : !buf, !buf into !tile.pending<!acc>
      tile.turn -> (!tile.pending<!acc>) { tile.yield %s : !tile.pending<!acc> }
    }
  }
}
