// What has no instructions on sm_90a.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --convert-tile-to-sm --mlir-print-op-on-diagnostic=false

// expected-error @+1 {{expected a kernel after tile-place-roles and tile-plan-memory}}
tile.kernel @early() { tile.role @r warps(4) registers(64) { tile.turn { tile.yield } } }

// -----
// expected-error @+1 {{expected a template with a parameter 'chunk', the tokens of one chunk}}
tile.kernel @no_chunk() { tile.role @r warps(4) registers(64) { tile.turn { tile.yield } } } {threads = 128 : i64, shared_bytes = 0 : i64}

// -----
tile.kernel @value() {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.value' op has no lowering to sm_90a}}
    %x = tile.value 3 : i32
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
!buf = !tile.buf<[64, 64], bf16>
tile.kernel @eight_warps(%b: !buf) {
  tile.role @r warps(8) registers(64) {
    // expected-error @+1 {{expected 64 rows, four warps, and registers to accumulate in}}
    %p = tile.mma %b, %b : !buf, !buf
    %x = tile.wait %p : !tile.pending<!tile.frag<[64, 64], f32>>
  } {first_warp = 0 : i64}
} {threads = 256 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
!buf = !tile.buf<[64, 64], bf16>
!narrow = !tile.buf<[64, 32], bf16>
tile.kernel @narrow(%a: !buf, %b: !narrow) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected a right operand at least 64 columns wide, got '!tile.buf<[64, 32], bf16>'}}
    %p = tile.mma %a, %b : !buf, !narrow
    %x = tile.wait %p : !tile.pending<!tile.frag<[64, 32], f32>>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
!buf = !tile.buf<[64, 64], bf16>
tile.kernel @transposed(%b: !buf) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{has no lowering for a transposed left operand in a buffer}}
    %p = tile.mma trans %b, %b : !buf, !buf
    %x = tile.wait %p : !tile.pending<!tile.frag<[64, 64], f32>>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}
