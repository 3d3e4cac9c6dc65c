// Where the forward's rings, scratch and barriers lie, and what happens when they do not fit.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-instantiate="values=K=128,V=128" --tile-rotate --tile-place-roles --tile-plan-memory | FileCheck %s
// RUN: not gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128,kq_depth=5" 2>&1 | FileCheck --check-prefix=FULL %s
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-plan-memory --mlir-print-op-on-diagnostic=false
// FULL: error: rings and scratch need {{2[0-9]+}} bytes of shared memory, a block has 232448

// CHECK: tile.ring depth(4) {{.*}}offset = 0 : i64, slot = 32768 : i64}
// CHECK: tile.ring depth(2) {{.*}}offset = 131072 : i64, slot = 16384 : i64}
// Tiles come first; what products read up to the diagonal is zeroed.
// CHECK: tile.ring depth(3) {{.*}}offset = 225408 : i64, slot = 1920 : i64}
// CHECK: tile.ring depth(2) {{.*}}offset = 163840 : i64, slot = 8192 : i64, zeroed}
// CHECK: tile.ring depth(2) {{.*}}offset = 180224 : i64, slot = 8192 : i64, zeroed}
// CHECK: scratch = 213120 : i64, scratch_row = 1536 : i64
// A role's own ring has a slot for each copy and no barriers.
// CHECK: tile.ring depth(1) {offset = 196608 : i64, slot = 8192 : i64}
// CHECK: shared_bytes = {{.*}}zeros = {{[0-9]+}} : i64

// expected-error @+1 {{expected tile-place-roles before tile-plan-memory}}
tile.kernel @early() { tile.role @r warps(4) registers(64) { tile.turn { tile.yield } } }

// -----
tile.kernel @turns(%n: i32) {
  // expected-error @+1 {{expected a slot for each of 2 copies that take turns, got depth 1}}
  %ring = tile.ring depth(1) : !tile.ring<!tile.buf<[64, 64], bf16>>
  tile.role @producer warps(4) registers(64) copies(2) {
    %first, %step = tile.share %n
    scf.for %i = %first to %n step %step : i32 {
      tile.put %ring as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
    }
  }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!tile.buf<[64, 64], bf16>>
    tile.release %ring : !tile.ring<!tile.buf<[64, 64], bf16>>
  }
} {threads = 384 : i64}
