// The axes of a view behind its last `?` are contiguous, the unit axis innermost: only the others have strides of run time.
// RUN: gdn-opt %s --convert-tile-to-sm | FileCheck %s
!part = !tile.frag<[64, 16], f32>
!columns = !tile.view<[?, ?, 64, 16], any, unit 2>
!rows = !tile.view<[?, ?, 64, 16], any, unit 3>
// CHECK-LABEL: sm.kernel @state
// CHECK-SAME: params = [
// CHECK-SAME: {kind = "pointer", name = "a"}
// CHECK-SAME: {axis = 0 : i64, kind = "stride", name = "a"}, {axis = 1 : i64, kind = "stride", name = "a"}
// CHECK-SAME: {kind = "element", name = "a"}
// CHECK-SAME: {kind = "pointer", name = "b"}
// CHECK-SAME: {axis = 0 : i64, kind = "stride", name = "b"}, {axis = 1 : i64, kind = "stride", name = "b"}
// CHECK-SAME: {kind = "element", name = "b"}
// CHECK: arith.muli %{{.*}}, %c64_i64 : i64
// CHECK: sm.load_global
// CHECK: arith.muli %{{.*}}, %c16_i64 : i64
// CHECK: sm.store_global
tile.kernel @state(%a: !columns, %b: !rows) {
  tile.role @r warps(4) registers(64) {
    %i = arith.constant 0 : i32
    %x = tile.load %a[%i, %i, %i, %i] : !columns to !part
    tile.store %x to %b[%i, %i, %i, %i] : !part to !rows
  } {first_warp = 0 : i64, barrier = 1 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}
