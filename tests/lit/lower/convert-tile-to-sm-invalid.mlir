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

// -----
tile.kernel @rows(%x: f32) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected 1 row or 16 a warp, and 1 column or a multiple of 16, got '!tile.frag<[32, 64], f32>'}}
    %y = tile.fill 0.0 : !tile.frag<[32, 64], f32>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @narrow_copy(%b: !tile.buf<[64, 32], bf16>, %v: !tile.view<[?, ?, 64], bf16>, %i: i32, %c: !tile.chunk) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.copy_out' op expected a tile of 16-bit elements at least 64 columns wide}}
    tile.copy_out %b to %v[%i] at %c : !tile.buf<[64, 32], bf16> to !tile.view<[?, ?, 64], bf16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @typed_view(%v: !tile.view<[?, ?], bf16>, %i: i32, %c: !tile.chunk) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.load' op expected a matrix or one element in fp32, or 64 tokens of a row as bits, and a view of any element type, or of the fragment's}}
    %x = tile.load %v[%i] at %c : !tile.view<[?, ?], bf16> to !tile.frag<[1, 64], f32>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @wide_row(%v: !tile.view<[?, ?], any>, %i: i32, %c: !tile.chunk) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.load' op expected a matrix or one element in fp32, or 64 tokens of a row as bits, and a view of any element type, or of the fragment's}}
    %x = tile.load %v[%i] at %c : !tile.view<[?, ?], any> to !tile.frag<[1, 64], f32>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @computed_bits(%v: !tile.view<[?, ?], any>) {
  tile.role @r warps(4) registers(64) {
    %i = arith.constant 0 : i32
    %c = tile.rows %i
    %x = tile.load %v[%i] at %c : !tile.view<[?, ?], any> to !tile.frag<[1, 64], any, lanes>
    // expected-error @+1 {{'tile.neg' op expected fp32, which tile.widen makes of bits}}
    %y = tile.neg %x : !tile.frag<[1, 64], any, lanes>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @made_bits() {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.fill' op expected fp32, which tile.widen makes of bits}}
    %x = tile.fill 0.0 : !tile.frag<[1, 64], any>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @half_store(%v: !tile.view<[?, ?, ?, ?], any>, %i: i32, %x: !tile.frag<[64, 64], bf16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.store' op expected a matrix or one element in fp32, or 64 tokens of a row as bits, and a view of any element type, or of the fragment's}}
    tile.store %x to %v[%i, %i, %i, %i] : !tile.frag<[64, 64], bf16> to !tile.view<[?, ?, ?, ?], any>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @plain_read(%b: !tile.buf<[64, 64], bf16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected a row of fp32, or a tile, transposed}}
    %x = tile.read %b : !tile.buf<[64, 64], bf16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @write_f32(%b: !tile.buf<[64, 64], f32>, %x: !tile.frag<[64, 64], f32>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected a row of 64 tokens over the lanes, a column to a row, fp32 to a tile, or 16-bit elements to scratch}}
    tile.write %x to %b : !tile.frag<[64, 64], f32> to !tile.buf<[64, 64], f32>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @row_offset(%b: !tile.buf<[64, 128], bf16>, %i: i32) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected whole rows of a tile, whole boxes of 64 columns}}
    %x = tile.sub_tile %b[%i, %i] : !tile.buf<[64, 128], bf16> to !tile.buf<[64, 64], bf16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @other_half(%x: !tile.frag<[64, 64], bf16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected fp32 on one side}}
    %y = tile.convert %x : !tile.frag<[64, 64], bf16> to !tile.frag<[64, 64], f16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @sum_over_columns(%x: !tile.frag<[1, 64], f32>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected 64 tokens over the lanes of a warp}}
    %y = tile.cumsum %x : !tile.frag<[1, 64], f32>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @pad_over_columns(%x: !tile.frag<[1, 64], f32>, %c: !tile.chunk) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.pad' op expected 64 tokens over the lanes of a warp}}
    %y = tile.pad %x past %c : !tile.frag<[1, 64], f32>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @half_sigmoid(%x: !tile.frag<[64, 64], f16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.sigmoid' op expected fp32}}
    %y = tile.sigmoid %x : !tile.frag<[64, 64], f16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @squares_of_scratch(%b: !tile.buf<[64, 16], f16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.row_squares' op expected a tile of 16-bit elements at least 64 columns wide}}
    %y = tile.row_squares %b : !tile.buf<[64, 16], f16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @half_diagonal(%x: !tile.frag<[64, 64], f16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.diag' op expected fp32}}
    %y = tile.diag %x : !tile.frag<[64, 64], f16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @narrow_beta(%x: !tile.frag<[64, 64], f32>, %beta: !tile.buf<[1, 64], bf16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected fp32, and a row of fp32 for beta}}
    %y = tile.solve_blocks %x over %beta : !tile.frag<[64, 64], f32>, !tile.buf<[1, 64], bf16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @any_warp(%x: !tile.frag<[64, 16], f16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{expected tile.per_warp around it}}
    %y = tile.block_mma %x at 0, %x at 0 : !tile.frag<[64, 16], f16>, !tile.frag<[64, 16], f16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}

// -----
tile.kernel @half_sum(%x: !tile.frag<[64, 64], bf16>) {
  tile.role @r warps(4) registers(64) {
    // expected-error @+1 {{'tile.add' op expected fp32}}
    %y = tile.add %x, %x : !tile.frag<[64, 64], bf16>, !tile.frag<[64, 64], bf16>
  } {first_warp = 0 : i64}
} {threads = 128 : i64, shared_bytes = 0 : i64, parameters = {chunk = 64 : i64}}
