// Rows that come from global memory lie over the lanes of a warp, with all that is computed from them; others over columns.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-assign-layouts --mlir-print-op-on-diagnostic=false | FileCheck %s
!row = !tile.frag<[1, 64], f32>
!bits = !tile.frag<[1, 64], any>
!gv = !tile.view<[?, ?], any>
// CHECK-LABEL: tile.kernel @lanes
// CHECK: tile.load {{.*}} to <[1, 64], any, lanes>
// CHECK: tile.widen {{.*}} : <[1, 64], any, lanes>,
// CHECK: tile.exp2 %{{.*}} : <[1, 64], f32, lanes>
// CHECK: tile.mul %{{.*}} : <[1, 64], f32, lanes>, <[1, 64], f32, lanes>
// CHECK: tile.read %{{.*}} : <[1, 64], f32>
// The constant is held in both ways.
// CHECK: tile.mul %{{.*}} : <[1, 64], f32>, <[1, 64], f32>
tile.kernel @lanes(%g: !gv, %h: i32, %c: !tile.chunk, %b: !tile.buf<[1, 64], f32>) {
  tile.role @r warps(4) registers(64) {
    %two = tile.fill 2.0 : !row
    %bits = tile.load %g[%h] at %c : !gv to !bits
    %x = tile.widen %bits of %g : !bits, !gv
    %y = tile.exp2 %x : !row
    %z = tile.mul %y, %two : !row, !row
    %w = tile.read %b : !tile.buf<[1, 64], f32>
    %d = tile.mul %w, %two : !row, !row
  }
}

// -----
!row = !tile.frag<[1, 64], f32>
!bits = !tile.frag<[1, 64], any>
!gv = !tile.view<[?, ?], any>
tile.kernel @conflict(%g: !gv, %h: i32, %c: !tile.chunk, %m: !tile.frag<[64, 64], f32>) {
  tile.role @r warps(4) registers(64) {
    // expected-note @+1 {{loaded here}}
    %bits = tile.load %g[%h] at %c : !gv to !bits
    %x = tile.widen %bits of %g : !bits, !gv
    // expected-error @+1 {{needs a row over the columns of its threads, which is spread over the lanes of a warp}}
    %y = tile.mul %m, %x : !tile.frag<[64, 64], f32>, !row
  }
}
