// Warps, barriers and register budgets of the forward's roles; budgets that a block does not have.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-instantiate="values=K=128,V=128" --tile-place-roles | FileCheck %s
// RUN: not gdn-opt %S/../../../templates/forward.mlir --tile-instantiate="values=K=128,V=128" --tile-place-roles="registers=65535" 2>&1 | FileCheck --check-prefix=SM %s
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-place-roles --mlir-print-op-on-diagnostic=false

// CHECK: tile.role @aux
// CHECK: tile.one_warp
// The warp with the least of the inverse to do, and the next one.
// CHECK: } {warp = 0 : i64}
// CHECK: tile.one_warp nth(1)
// CHECK: } {warp = 1 : i64}
// CHECK: } {barrier = 1 : i64, first_warp = 0 : i64}
// Two copies of @aux have two barriers, so those of @state follow, one for both to meet, and one for each copy's turn.
// CHECK: tile.role @state
// CHECK: } {barrier = 3 : i64, first_warp = 8 : i64, meet_barrier = 7 : i64, turn_barrier = 5 : i64}
// CHECK: threads = 512 : i64
// SM: error: roles need 65536 registers, the SM has 65535

tile.kernel @few() {
  // expected-error @+1 {{role 'r' expected a register budget in 24..248, a multiple of 8, got 16}}
  tile.role @r warps(4) registers(16) { tile.turn { tile.yield } }
}

// -----
tile.kernel @many() {
  // expected-error @+1 {{role 'r' expected a register budget in 24..248, a multiple of 8, got 256}}
  tile.role @r warps(4) registers(256) { tile.turn { tile.yield } }
}

// -----
tile.kernel @odd() {
  // expected-error @+1 {{role 'r' expected a register budget in 24..248, a multiple of 8, got 60}}
  tile.role @r warps(4) registers(60) { tile.turn { tile.yield } }
}

// -----
tile.kernel @half_a_group() {
  // expected-error @+1 {{role 'r' expected whole warpgroups of 4 warps, got 6}}
  tile.role @r warps(6) registers(64) { tile.turn { tile.yield } }
}

// -----
// expected-error @+1 {{roles need 36 warps, a block has 32}}
tile.kernel @warps() { tile.role @r warps(4) registers(24) copies(9) { tile.turn { tile.yield } } }

// -----
// expected-error @+1 {{roles need 17 named barriers, a block has 16}}
tile.kernel @barriers() { tile.role @r warps(4) registers(24) copies(8) { tile.turn { tile.yield } } }

// -----
// expected-error @+1 {{roles need 92160 registers, the SM has 65536}}
tile.kernel @registers() { tile.role @r warps(4) registers(240) copies(3) { tile.turn { tile.yield } } }

// -----
// What setmaxnreg hands out comes from the launch: 168 registers for each of 384 threads.
// expected-error @+1 {{roles need 65536 registers, a block of 384 threads is launched with 64512}}
tile.kernel @more_than_brought() {
  tile.role @chain warps(4) registers(224) { tile.turn { tile.yield } }
  tile.role @aux warps(4) registers(144) copies(2) { tile.turn { tile.yield } }
}

// -----
tile.kernel @fifth() {
  // expected-error @+1 {{expected one of the role's 4 warps, got nth(4)}}
  tile.role @r warps(4) registers(24) { tile.one_warp nth(4) { } }
}

// -----
!row = !tile.frag<[1, 64], f32>
tile.kernel @elsewhere() {
  tile.role @r warps(4) registers(24) {
    %a = tile.one_warp nth(1) -> (!row) {
      %x = tile.fill 0.0 : !row
      tile.yield %x : !row
    }
    // expected-error @+1 {{uses what only warp nth(1) of its role holds}}
    tile.one_warp { %b = tile.neg %a : !row }
  }
}
