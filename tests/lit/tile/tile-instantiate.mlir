// Parameters become constants, selections one of their sides, procedures the text they stand for.
// RUN: gdn-opt %s --tile-instantiate="values=rows=64,io=f16" | FileCheck %s
// RUN: gdn-opt %s --tile-instantiate="values=rows=128,copies=2,io=bf16" | FileCheck --check-prefix=TWO %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64" 2>&1 | FileCheck --check-prefix=MISSING %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=96,io=f16" 2>&1 | FileCheck --check-prefix=CHOICE %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64,io=fp16" 2>&1 | FileCheck --check-prefix=TYPE %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64,io=f16,depth=two" 2>&1 | FileCheck --check-prefix=NUMBER %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64,io=f16,depht=3" 2>&1 | FileCheck --check-prefix=UNKNOWN %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64,io=f16,depth=1" 2>&1 | FileCheck --check-prefix=REQUIRE %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64,io=f16,parts=3" 2>&1 | FileCheck --check-prefix=WHOLE %s
// RUN: not gdn-opt %s --tile-instantiate="values=rows=64,io=f16,parts=0" 2>&1 | FileCheck --check-prefix=WHOLE %s

// MISSING: error: parameter 'io' has no value
// CHOICE: error: parameter 'rows' expected one of [64, 128], got 96 : i64
// TYPE: error: parameter 'io' expected one of [f16, bf16], got 'fp16'
// NUMBER: error: parameter 'depth' expected a whole number, bf16, f16 or f32, got 'two'
// UNKNOWN: error: 'tile.template' op has no parameter 'depht'
// REQUIRE: error: a ring needs two slots
// WHOLE: error: 'part' is not a whole number for these parameters

// CHECK-NOT: tile.proc
// CHECK: tile.kernel @t.main(%[[X:.*]]: !tile.frag<[64, 32], f16>, %[[N:.*]]: i32)
// The unused ring is gone, the other one has its depth.
// CHECK-NEXT: %[[RING:.*]] = tile.ring depth(3) : <!tile.buf<[64, 32], f16>>
// CHECK-NOT: tile.ring depth
// CHECK: tile.role @r warps(4) registers(64) {
// The selection kept one side, with the procedure inlined.
// CHECK: tile.neg %[[X]] : <[64, 32], f16>
// CHECK-NOT: tile.exp2
// One copy has nobody to share with or to take turns with.
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: scf.for %{{.*}} = %[[ZERO]] to %[[N]] step %[[ONE]]
// CHECK: %[[WIDTH:.*]] = arith.constant 33 : i32
// CHECK-NEXT: arith.muli %[[N]], %[[WIDTH]]
// CHECK-NOT: tile.turn
// CHECK: tile.role @s
// CHECK: } {parameters = {copies = 1 : i64, depth = 3 : i64, io = f16, part = 32 : i64, parts = 2 : i64, rows = 64 : i64}

// TWO: tile.kernel @t.main(%[[X:.*]]: !tile.frag<[128, 64], bf16>, %[[N:.*]]: i32)
// TWO: tile.role @r warps(4) registers(64) copies(2) {
// TWO: tile.exp2 %[[X]]
// TWO: %[[FIRST:.*]], %[[STEP:.*]] = tile.share %[[N]]
// TWO-NEXT: scf.for %{{.*}} = %[[FIRST]] to %[[N]] step %[[STEP]]
// TWO: tile.turn
tile.template @t {
  tile.param @rows in [64, 128]
  tile.param @io in [f16, bf16]
  tile.param @parts = 2
  tile.param @depth = 3
  tile.param @copies = 1
  tile.let @part = rows / parts
  tile.require depth ge 2 else "a ring needs two slots"
  tile.proc @negate(%x: !tile.frag<[rows, part], io>) {
    %y = tile.neg %x : !tile.frag<[rows, part], io>
    tile.yield %y : !tile.frag<[rows, part], io>
  }
  tile.kernel @main(%x: !tile.frag<[rows, part], io>, %n: i32) {
    %used = tile.ring depth(depth) : !tile.ring<!tile.buf<[rows, part], io>>
    %unused = tile.ring depth(depth) : !tile.ring<!tile.buf<[rows, part], io>>
    tile.role @r warps(4) registers(64) copies(copies) {
      %y = tile.if io eq f16 -> !tile.frag<[rows, part], io> {
        %a = tile.call @negate(%x) : (!tile.frag<[rows, part], io>) -> !tile.frag<[rows, part], io>
        tile.yield %a : !tile.frag<[rows, part], io>
      } else {
        %b = tile.exp2 %x : !tile.frag<[rows, part], io>
        tile.yield %b : !tile.frag<[rows, part], io>
      }
      %first, %step = tile.share %n
      scf.for %i = %first to %n step %step : i32 {
        tile.put %used as (%slot) : !tile.ring<!tile.buf<[rows, part], io>> {
          tile.write %y to %slot : !tile.frag<[rows, part], io> to !tile.buf<[rows, part], io>
        }
      }
      %width = tile.value parts / 2 * part + 1 : i32
      %product = arith.muli %n, %width : i32
      tile.turn { tile.yield }
    }
    tile.role @s warps(4) registers(64) {
      %zero = tile.value 0 : i32
      %one = tile.value 1 : i32
      scf.for %i = %zero to %n step %one : i32 {
        %slot = tile.get %used : !tile.ring<!tile.buf<[rows, part], io>>
        tile.release %used : !tile.ring<!tile.buf<[rows, part], io>>
      }
    }
  }
}
