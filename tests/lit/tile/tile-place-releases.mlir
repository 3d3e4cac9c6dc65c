// A slot is given back behind the wait that retires the last product reading it; arrivals and bytes of its barriers.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128" | FileCheck %s
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-number-waits --tile-place-releases --mlir-print-op-on-diagnostic=false
// CHECK: %[[KQ:.*]] = tile.ring depth(4) {bulk = 1 : i64, {{.*}}empty_count = 12 : i64, {{.*}}full_count = 1 : i64
// CHECK: %[[V:.*]] = tile.ring depth(2) {bulk = 1 : i64, {{.*}}empty_count = 8 : i64, {{.*}}full_count = 1 : i64
// CHECK: %[[GATES:.*]] = tile.ring depth(3) {bulk = 0 : i64, {{.*}}empty_count = 12 : i64, {{.*}}full_count = 1 : i64
// CHECK: %[[T:.*]] = tile.ring depth(2) {bulk = 0 : i64, {{.*}}empty_count = 8 : i64, {{.*}}full_count = 4 : i64
// CHECK: tile.role @state
// CHECK: tile.turn
// CHECK: %[[TT:.*]] = tile.get %[[T]]
// CHECK-NEXT: %[[U:.*]] = tile.mma %{{.*}}, trans %[[TT]]
// CHECK: tile.wait %[[U]]
// CHECK-NEXT: tile.release %[[T]]
// The text gives K, Q and P back earlier than the products that read them end.
// CHECK: %[[S:.*]] = tile.mma
// CHECK-NOT: tile.release %[[KQ]]
// CHECK: %[[O:.*]] = tile.mma
// CHECK: tile.wait %[[S]]
// CHECK-NEXT: tile.release %[[KQ]]
// CHECK-NEXT: tile.wait %[[O]]
// CHECK-NEXT: tile.release

!buf = !tile.buf<[64, 64], bf16>
tile.kernel @held_from_outside(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) { tile.put %ring as (%b) : !tile.ring<!buf> { } }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!buf>
    scf.for %i = %zero to %n step %one : i32 {
      // expected-error @+1 {{expected the get of its slot before it in the same block}}
      tile.release %ring : !tile.ring<!buf>
      %c = tile.get %ring : !tile.ring<!buf>
    }
    tile.release %ring : !tile.ring<!buf>
  }
}

// -----
!buf = !tile.buf<[64, 64], bf16>
!acc = !tile.pending<!tile.frag<[64, 64], f32>>
tile.kernel @read_after_the_block() {
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) { tile.put %ring as (%b) : !tile.ring<!buf> { } }
  tile.role @consumer warps(4) registers(64) copies(2) {
    %p = tile.turn -> (!acc) {
      %b = tile.get %ring : !tile.ring<!buf>
      %product = tile.mma %b, %b : !buf, !buf
      // expected-error @+1 {{reads its slot in a product that is not waited for in this block}}
      tile.release %ring : !tile.ring<!buf>
      tile.yield %product : !acc
    }
    %x = tile.wait %p : !acc
  }
}

// -----
!buf = !tile.buf<[64, 64], bf16>
!view = !tile.view<[?, ?, 64], bf16>
tile.kernel @all_warps_copy(%v: !view, %h: i32, %c: !tile.chunk) {
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) {
    // expected-error @+1 {{copies from a role's warps together, expected tile.one_warp around it}}
    tile.put %ring as (%b) : !tile.ring<!buf> { tile.copy_in %v[%h] at %c to %b : !view to !buf }
  }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!buf>
    tile.release %ring : !tile.ring<!buf>
  }
}

// -----
!buf = !tile.buf<[64, 64], bf16>
tile.kernel @two_ways_to_fill() {
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) {
    // The uses of a ring are visited from the last to the first.
    // expected-error @+1 {{fills a slot otherwise than another put of the ring}}
    tile.put %ring as (%b) : !tile.ring<!buf> { }
    tile.one_warp { tile.put %ring as (%b) : !tile.ring<!buf> { } }
  }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!buf>
    tile.release %ring : !tile.ring<!buf>
  }
}
