// Deferred work moves to the next iteration's tile.resume, and behind the loop for the last one.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-rotate --mlir-print-op-on-diagnostic=false | FileCheck %s

!acc = !tile.frag<[64, 64], f32>
!buf = !tile.buf<[64, 64], bf16>
!view = !tile.view<[?, ?, 64], bf16>

// A loop that carries a matrix runs deferred work from the first iteration on: without a test, on a product that has finished and a
// chunk behind the last one. What goes from product to product is primed (R3).
// CHECK-LABEL: tile.kernel @matrix
// CHECK: %[[N:.*]] = tile.chunks %[[SPAN:.*]]
// CHECK-NEXT: %[[START:.*]] = tile.fill 1.0
// CHECK-NEXT: %[[FILL:.*]] = tile.fill 0.0
// CHECK-NEXT: %[[PRIMED:.*]] = tile.prime %[[FILL]]
// CHECK-NEXT: %[[READY:.*]] = tile.ready %[[PRIMED]]
// CHECK-NEXT: %[[BEHIND:.*]] = tile.chunk %[[SPAN]][%[[N]]]
// CHECK-NEXT: %[[S:.*]] = tile.prime %[[START]]
// CHECK-NEXT: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %[[S]], %[[BEFORE:.*]] = %[[READY]], %[[CHUNK:.*]] = %[[BEHIND]])
// CHECK-NEXT: %[[HERE:.*]] = tile.chunk
// CHECK-NEXT: tile.wait %[[BEFORE]]
// CHECK-NEXT: tile.copy_out %{{.*}} at %[[CHUNK]]
// CHECK-NEXT: %[[PRODUCT:.*]] = tile.mma
// CHECK-NEXT: scf.yield %{{.*}}, %[[PRODUCT]], %[[HERE]]
// CHECK: tile.wait %[[LOOP]]#1
// CHECK-NEXT: tile.copy_out %{{.*}} at %[[LOOP]]#2
tile.kernel @matrix(%o: !view, %items: !tile.items<1, 64>, %b: !buf) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    tile.foreach (%span, %seq, %kh, %vh, %v0) in %items : !tile.items<1, 64> {
      %n = tile.chunks %span
      %start = tile.fill 1.0 : !acc
      %end = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (!acc) : i32 {
        %here = tile.chunk %span[%i]
        tile.resume "store"
        %product = tile.mma %b, %b : !buf, !buf
        tile.defer "store" {
          %r = tile.wait %product : !tile.pending<!acc>
          tile.copy_out %b to %o[%vh, %v0] at %here : !buf to !view
        }
        scf.yield %s : !acc
      }
    }
  }
}

// -----
// Elsewhere a test keeps it off the first iteration, and off the end where there was none.
// CHECK-LABEL: tile.kernel @scalars
// CHECK: %[[NONE:.*]] = tile.undef : i32
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %[[LOW:.*]] to %[[N:.*]] step %{{.*}} iter_args(%[[BEFORE:.*]] = %[[NONE]])
// CHECK-NEXT: %[[SQUARE:.*]] = arith.muli %[[I]], %[[I]]
// CHECK-NEXT: %[[TEST:.*]] = arith.cmpi ne, %[[I]], %[[LOW]]
// CHECK-NEXT: scf.if %[[TEST]] {
// CHECK-NEXT: tile.record %[[BEFORE]]
// CHECK: scf.yield %[[SQUARE]]
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[LOW]], %[[N]]
// CHECK-NEXT: scf.if %[[SOME]] {
// CHECK-NEXT: tile.record %[[LOOP]]
tile.kernel @scalars(%n: i32, %clocks: !tile.view<[?, 8], i64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    scf.for %i = %zero to %n step %one : i32 {
      %square = arith.muli %i, %i : i32
      tile.resume "record"
      tile.defer "record" { tile.record %square to %clocks at 2 : !tile.view<[?, 8], i64> }
    }
  }
}

// -----
// In a shared loop the first turn is one that begins below the step; a resume of one warp stays that warp's behind the loop.
// CHECK-LABEL: tile.kernel @shared
// CHECK: %[[FIRST:.*]], %[[STEP:.*]] = tile.share
// CHECK: scf.for %[[I:.*]] = %[[FIRST]]
// CHECK: tile.one_warp {
// CHECK-NEXT: arith.cmpi sge, %[[I]], %[[STEP]]
// CHECK: tile.one_warp {
// CHECK-NEXT: scf.if
// CHECK-NEXT: tile.record
tile.kernel @shared(%n: i32, %clocks: !tile.view<[?, 8], i64>) {
  tile.role @r warps(4) registers(128) copies(2) {
    %first, %step = tile.share %n
    scf.for %i = %first to %n step %step : i32 {
      %square = arith.muli %i, %i : i32
      tile.one_warp { tile.resume "record" }
      tile.defer "record" { tile.record %square to %clocks at 2 : !tile.view<[?, 8], i64> }
    }
  }
}

// -----
!ring = !tile.ring<!tile.buf<[64, 64], bf16>>
tile.kernel @slot(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ring = tile.ring depth(2) : !ring
  tile.role @producer warps(4) registers(24) { tile.put %ring as (%b) : !ring { } }
  tile.role @r warps(4) registers(128) {
    scf.for %i = %zero to %n step %one : i32 {
      tile.resume "read"
      %b = tile.get %ring : !ring
      // expected-error @+1 {{captures a slot, which the next iteration may no longer hold}}
      tile.defer "read" { %x = tile.read %b : !tile.buf<[64, 64], bf16> }
      tile.release %ring : !ring
    }
  }
}

// -----
tile.kernel @no_resume(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    scf.for %i = %zero to %n step %one : i32 {
      tile.resume "other"
      // expected-error @+1 {{expected one tile.resume of this name before it in the loop}}
      tile.defer "work" { }
    }
  }
}

// -----
tile.kernel @resume_behind(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    scf.for %i = %zero to %n step %one : i32 {
      // expected-error @+1 {{expected one tile.resume of this name before it in the loop}}
      tile.defer "work" { }
      tile.resume "work"
    }
  }
}

// -----
tile.kernel @no_loop() {
  tile.role @r warps(4) registers(128) {
    // expected-error @+1 {{expected a loop around it}}
    tile.defer "work" { }
  }
}

// -----
!acc = !tile.frag<[64, 64], f32>
tile.kernel @no_value(%n: i32, %clocks: !tile.view<[?, 8], i64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    %start = tile.fill 0.0 : !acc
    %end = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (!acc) : i32 {
      tile.resume "record"
      // expected-error @+1 {{is captured by deferred work and has no value before the first iteration}}
      %square = arith.muli %i, %i : i32
      tile.defer "record" { tile.record %square to %clocks at 2 : !tile.view<[?, 8], i64> }
      scf.yield %s : !acc
    }
  }
}

// -----
tile.kernel @loop_variable(%n: i32, %clocks: !tile.view<[?, 8], i64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  tile.role @r warps(4) registers(128) {
    scf.for %i = %zero to %n step %one : i32 {
      tile.resume "record"
      // expected-error @+1 {{captures a variable of the loop, which names another iteration there; capture what is computed from it}}
      tile.defer "record" { tile.record %i to %clocks at 2 : !tile.view<[?, 8], i64> }
    }
  }
}
