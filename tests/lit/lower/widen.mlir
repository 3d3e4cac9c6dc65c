// What is loaded from a view of any element type is waited for where it is widened: a branch on the element type yields
// the bits, and nothing in front of the barrier reads them.
// RUN: gdn-opt %s --convert-tile-to-sm | FileCheck %s
!bits = !tile.frag<[1, 64], any, lanes>
!gv = !tile.view<[?, ?], any>
// CHECK-LABEL: sm.kernel @row
// CHECK: %[[B:.*]]:2 = scf.if %{{.*}} -> (i32, i32) {
// CHECK: %[[W0:.*]] = sm.load_global %{{.*}} if %{{.*}} : i32
// CHECK: %[[W1:.*]] = sm.load_global %{{.*}} if %{{.*}} : i32
// CHECK-NOT: sm.
// CHECK: scf.yield %[[W0]], %[[W1]] : i32, i32
// CHECK: %[[N0:.*]] = sm.load_global narrow %{{.*}} if %{{.*}} : i32
// CHECK: %[[N1:.*]] = sm.load_global narrow %{{.*}} if %{{.*}} : i32
// CHECK-NOT: sm.
// CHECK: scf.yield %[[N0]], %[[N1]] : i32, i32
// CHECK-NOT: %[[B]]#
// CHECK: sm.bar.sync
// CHECK-NEXT: %[[X0:.*]] = sm.opaque %[[B]]#0 : i32
// CHECK-NEXT: %[[X1:.*]] = sm.opaque %[[B]]#1 : i32
// CHECK: scf.if %{{.*}} -> (f32, f32) {
// CHECK: arith.bitcast %[[X0]] : i32 to f32
// CHECK: arith.bitcast %[[X1]] : i32 to f32
// CHECK: } else {
// CHECK: %[[BF:.*]], %{{.*}} = sm.unpack bf16 %[[X0]]
// CHECK: %[[F:.*]], %{{.*}} = sm.unpack f16 %[[X0]]
// CHECK: arith.select %{{.*}}, %[[F]], %[[BF]] : f32
tile.kernel @row(%g: !gv) {
  tile.role @r warps(4) registers(64) {
    %i = arith.constant 0 : i32
    %c = tile.rows %i
    %bits = tile.load %g[%i] at %c : !gv to !bits
    tile.sync
    %x = tile.widen %bits of %g : !bits, !gv
  } {first_warp = 0 : i64, barrier = 1 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}
