// One case for each diagnostic of the dialect.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false
tile.template @undeclared {
  tile.param @K
  tile.kernel @main(%x: !tile.view<[?, K], f32>) {
    // expected-error @+1 {{uses undeclared parameter 'V'}}
    %a = tile.ring depth(V) : !tile.ring<!tile.buf<[K, K], f32>>
  }
}

// -----
tile.template @names_are_dimensions {
  tile.param @K = 128
  tile.param @V = 128
  tile.proc @p(%a: !tile.frag<[64, K], bf16>, %b: !tile.buf<[V, 64], bf16>) {
    // expected-error @+1 {{contracts unequal dimensions}}
    %d = tile.mma %a, %b : !tile.frag<[64, K], bf16>, !tile.buf<[V, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @unread {
  tile.kernel @main(%x: !tile.view<[?, ?], f32>) {
    tile.role @r warps(4) registers(128) {
      %b = tile.scratch : !tile.buf<[64, 64], bf16>
      // expected-error @+1 {{is never waited for}}
      %d = tile.mma %b, %b : !tile.buf<[64, 64], bf16>, !tile.buf<[64, 64], bf16>
    }
  }
}

// -----
tile.template @held {
  tile.kernel @main(%n: i32) {
    %r = tile.ring depth(2) : !tile.ring<!tile.buf<[64, 64], bf16>>
    %c0 = tile.value 0 : i32
    %c1 = tile.value 1 : i32
    tile.role @producer warps(1) registers(24) {
      tile.put %r as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
    }
    tile.role @consumer warps(4) registers(128) {
      // expected-error @+1 {{leaves 1 slots of a ring held at the end of its body}}
      scf.for %i = %c0 to %n step %c1 : i32 {
        %b = tile.get %r : !tile.ring<!tile.buf<[64, 64], bf16>>
      }
    }
  }
}

// -----
tile.template @lonely {
  tile.kernel @main(%n: i32) {
    // expected-error @+1 {{expected a role that puts and a role that gets}}
    %r = tile.ring depth(2) : !tile.ring<!tile.buf<[64, 64], bf16>>
    tile.role @consumer warps(4) registers(128) {
      %b = tile.get %r : !tile.ring<!tile.buf<[64, 64], bf16>>
      tile.release %r : !tile.ring<!tile.buf<[64, 64], bf16>>
    }
  }
}

// -----
tile.template @operand_carried {
  tile.kernel @main(%n: i32, %a: !tile.frag<[64, 64], bf16>) {
    %c0 = tile.value 0 : i32
    %c1 = tile.value 1 : i32
    tile.role @r warps(4) registers(128) {
      %z = tile.fill 0.0 : !tile.frag<[64, 64], f32>
      %h = tile.convert %z : !tile.frag<[64, 64], f32> to !tile.frag<[64, 64], bf16>
      // expected-error @+1 {{carries an operand fragment '!tile.frag<[64, 64], bf16>'; carry the fp32 value and convert it in the loop}}
      %e = scf.for %i = %c0 to %n step %c1 iter_args(%x = %h) -> (!tile.frag<[64, 64], bf16>) : i32 {
        scf.yield %x : !tile.frag<[64, 64], bf16>
      }
    }
  }
}

// -----
tile.template @half_a_share {
  tile.kernel @main(%n: i32) {
    %c1 = tile.value 1 : i32
    tile.role @r warps(4) registers(64) copies(2) {
      %first, %step = tile.share %n
      // expected-error @+1 {{expected the first, the count and the step of one tile.share}}
      scf.for %c = %first to %n step %c1 : i32 { }
    }
  }
}

// -----
tile.template @two_slots_a_turn {
  tile.kernel @main(%n: i32) {
    %r = tile.ring depth(2) : !tile.ring<!tile.buf<[64, 64], bf16>>
    %c0 = tile.value 0 : i32
    %c1 = tile.value 1 : i32
    tile.role @producer warps(4) registers(64) copies(2) {
      %first, %step = tile.share %n
      // expected-error @+1 {{moves 2 slots of a ring in one turn, expected 1}}
      scf.for %c = %first to %n step %step : i32 {
        tile.put %r as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
        tile.put %r as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
      }
    }
    tile.role @consumer warps(4) registers(128) {
      scf.for %c = %c0 to %n step %c1 : i32 {
        %b = tile.get %r : !tile.ring<!tile.buf<[64, 64], bf16>>
        tile.release %r : !tile.ring<!tile.buf<[64, 64], bf16>>
      }
    }
  }
}

// -----
tile.template @turn_of_some {
  tile.kernel @main(%n: i32) {
    tile.role @r warps(4) registers(64) copies(2) {
      %first, %step = tile.share %n
      scf.for %c = %first to %n step %step : i32 {
        // expected-error @+1 {{in a shared loop, where the role's copies do not all get here}}
        tile.turn { tile.yield }
      }
    }
  }
}

// -----
tile.template @other_warps_rows {
  tile.proc @p(%a: !tile.frag<[64, 16], f16>, %b: !tile.frag<[64, 64], f16>) {
    // expected-error @+1 {{reads block rows of other warps, which needs the right operand in a buffer}}
    %d = tile.block_mma %a at 1, %b at 1 : !tile.frag<[64, 16], f16>, !tile.frag<[64, 64], f16>
    tile.yield
  }
}

// -----
tile.template @element_types {
  tile.proc @p(%a: !tile.frag<[64, 64], f32>, %b: !tile.frag<[64, 64], bf16>) {
    // expected-error @+1 {{expected equal element types, got '!tile.frag<[64, 64], f32>' and '!tile.frag<[64, 64], bf16>'}}
    %d = tile.mul %a, %b : !tile.frag<[64, 64], f32>, !tile.frag<[64, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @broadcast {
  tile.proc @p(%a: !tile.frag<[64, 64], f32>, %b: !tile.frag<[1, 32], f32>) {
    // expected-error @+1 {{cannot broadcast '!tile.frag<[64, 64], f32>' with '!tile.frag<[1, 32], f32>'}}
    %d = tile.sub %a, %b : !tile.frag<[64, 64], f32>, !tile.frag<[1, 32], f32>
    tile.yield
  }
}

// -----
tile.template @lanes_and_columns {
  tile.proc @p(%a: !tile.frag<[64, 64], f32>, %b: !tile.frag<[1, 64], f32, lanes>) {
    // expected-error @+1 {{one operand is spread over the lanes of a warp, the other over its columns}}
    %d = tile.mul %a, %b : !tile.frag<[64, 64], f32>, !tile.frag<[1, 64], f32, lanes>
    tile.yield
  }
}

// -----
tile.template @rank {
  // expected-error @+1 {{expected two dimensions, got 1}}
  tile.proc @p(%a: !tile.buf<[64], bf16>) { tile.yield }
}

// -----
tile.template @empty {
  // expected-error @+1 {{expected dimensions of at least 1 that are known, got 0}}
  tile.proc @p(%a: !tile.frag<[0, 64], f32>) { tile.yield }
}

// -----
tile.template @run_time_extent {
  // expected-error @+1 {{expected dimensions of at least 1 that are known, got unit}}
  tile.proc @p(%a: !tile.buf<[?, 64], f32>) { tile.yield }
}

// -----
tile.template @elements {
  // expected-error @+1 {{expected elements f32, bf16, f16 or a parameter, got 'i32'}}
  tile.proc @p(%a: !tile.frag<[64, 64], i32>) { tile.yield }
}

// -----
tile.template @slots {
  // expected-error @+1 {{expected buffers in the slots of a ring, got 'i32'}}
  tile.proc @p(%a: !tile.ring<i32>) { tile.yield }
}

// -----
tile.template @no_product {
  // expected-error @+1 {{expected a product of fragments or buffers, got 'i32'}}
  tile.proc @p(%a: !tile.pending<i32>) { tile.yield }
}

// -----
tile.template @no_role {
  tile.kernel @main(%b: !tile.buf<[64, 64], bf16>) {
    // expected-error @+1 {{expected a role around it}}
    %d = tile.mma %b, %b : !tile.buf<[64, 64], bf16>, !tile.buf<[64, 64], bf16>
  }
}

// -----
tile.template @depth {
  tile.kernel @main() {
    // expected-error @+1 {{expected a depth of at least 1, got 0}}
    %r = tile.ring depth(0) : !tile.ring<!tile.buf<[64, 64], bf16>>
  }
}

// -----
tile.template @offsets {
  tile.proc @p(%b: !tile.buf<[64, 128], bf16>, %i: i32) {
    // expected-error @+1 {{expected an offset for rows and one for columns, got 1}}
    %x = tile.sub_tile %b[%i] : !tile.buf<[64, 128], bf16> to !tile.buf<[64, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @wide_box {
  tile.proc @p(%b: !tile.buf<[64, 128], bf16>, %i: i32) {
    // expected-error @+1 {{expected a box of '!tile.buf<[64, 128], bf16>', got '!tile.buf<[64, 192], bf16>'}}
    %x = tile.sub_tile %b[%i, %i] : !tile.buf<[64, 128], bf16> to !tile.buf<[64, 192], bf16>
    tile.yield
  }
}

// -----
!buf = !tile.buf<[64, 64], bf16>
!view = !tile.view<[?, ?, 64], bf16>
tile.template @no_chunk {
  tile.proc @p(%b: !buf, %v: !view, %i: i32) {
    // expected-error @+1 {{expected a chunk of a view [tokens, heads, columns] at a head and a column, or of a view [rows, columns], got 1 indices of '!tile.view<[?, ?, 64], bf16>'}}
    tile.copy_out %b to %v[%i] : !buf to !view
    tile.yield
  }
}

// -----
!view = !tile.view<[?, ?], bf16>
!buf = !tile.buf<[64, 64], bf16>
tile.template @rows_of_gates {
  tile.proc @p(%b: !buf, %v: !view, %i: i32, %c: !tile.chunk) {
    // expected-error @+1 {{expected a chunk of a view [tokens, heads, columns] at a head and a column, or of a view [rows, columns], got 2 indices of '!tile.view<[?, ?], bf16>'}}
    tile.copy_out %b to %v[%i, %i] at %c : !buf to !view
    tile.yield
  }
}

// -----
!buf = !tile.buf<[64, 64], f16>
!view = !tile.view<[?, ?, 64], bf16>
tile.template @other_elements {
  tile.kernel @main(%v: !view, %i: i32, %c: !tile.chunk) {
    %r = tile.ring depth(2) : !tile.ring<!buf>
    tile.role @a warps(4) registers(64) {
      tile.put %r as (%b) : !tile.ring<!buf> {
        // expected-error @+1 {{expected rows of '!tile.view<[?, ?, 64], bf16>', got '!tile.buf<[64, 64], f16>'}}
        tile.copy_in %v[%i] at %c to %b : !view to !buf
      }
    }
  }
}

// -----
!row = !tile.frag<[1, 64], f32>
!view = !tile.view<[?, ?], any>
tile.template @row_without_chunk {
  tile.proc @p(%v: !view, %i: i32) {
    // expected-error @+1 {{expected a chunk's row [1, n] of a view [tokens, heads], a matrix at an index for each axis, or an element [1, 1] of a view with one axis, got '!tile.frag<[1, 64], f32>' at 1 indices of '!tile.view<[?, ?], any>'}}
    %x = tile.load %v[%i] : !view to !row
    tile.yield
  }
}

// -----
!acc = !tile.frag<[64, 64], f32>
!view = !tile.view<[?, ?, 64], any>
tile.template @matrix_of_three_axes {
  tile.proc @p(%v: !view, %x: !acc, %i: i32) {
    // expected-error @+1 {{expected a matrix at an index for each axis, got '!tile.frag<[64, 64], f32>' at 2 indices of '!tile.view<[?, ?, 64], any>'}}
    tile.store %x to %v[%i, %i] : !acc to !view
    tile.yield
  }
}

// -----
tile.template @clear_gates {
  tile.kernel @main(%v: !tile.view<[?, ?], f32>, %items: !tile.items<1, 64>) {
    // expected-error @+1 {{expected a view [tokens, heads, columns], got '!tile.view<[?, ?], f32>'}}
    tile.clear %v past %items : !tile.view<[?, ?], f32>, !tile.items<1, 64>
  }
}

// -----
tile.template @sum_of_a_matrix {
  tile.proc @p(%x: !tile.frag<[64, 64], f32>) {
    // expected-error @+1 {{expected a row [1, n], got '!tile.frag<[64, 64], f32>'}}
    %y = tile.cumsum %x : !tile.frag<[64, 64], f32>
    tile.yield
  }
}

// -----
tile.template @pad_of_a_matrix {
  tile.proc @p(%x: !tile.frag<[64, 64], f32>, %c: !tile.chunk) {
    // expected-error @+1 {{'tile.pad' op expected a row [1, n], got '!tile.frag<[64, 64], f32>'}}
    %y = tile.pad %x past %c : !tile.frag<[64, 64], f32>
    tile.yield
  }
}

// -----
tile.template @diagonal {
  tile.proc @p(%x: !tile.frag<[64, 16], f32>) {
    // expected-error @+1 {{expected a square fragment, got '!tile.frag<[64, 16], f32>'}}
    %y = tile.diag %x : !tile.frag<[64, 16], f32>
    tile.yield
  }
}

// -----
tile.template @factors {
  tile.proc @p(%a: !tile.frag<[64, 64], f32>, %b: !tile.buf<[1, 64], f32>, %f: !tile.frag<[1, 64], f32>) {
    // expected-error @+1 {{expected a column of factors, one for each row of '!tile.frag<[64, 64], f32>', got '!tile.frag<[1, 64], f32>'}}
    %d = tile.solve_blocks %a over %b times %f : !tile.frag<[64, 64], f32>, !tile.buf<[1, 64], f32> times !tile.frag<[1, 64], f32>
    tile.yield
  }
}

// -----
tile.template @operand_types {
  tile.proc @p(%a: !tile.frag<[64, 64], f16>, %b: !tile.buf<[64, 64], bf16>) {
    // expected-error @+1 {{expected operands of one element type, got 'f16' and 'bf16'}}
    %d = tile.mma %a, %b : !tile.frag<[64, 64], f16>, !tile.buf<[64, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @transposed_registers {
  tile.proc @p(%a: !tile.frag<[64, 64], bf16>, %b: !tile.buf<[64, 64], bf16>) {
    // expected-error @+1 {{cannot transpose an operand held in registers}}
    %d = tile.mma trans %a, %b : !tile.frag<[64, 64], bf16>, !tile.buf<[64, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @accumulator {
  tile.proc @p(%a: !tile.buf<[64, 64], bf16>, %c: !tile.frag<[64, 128], f32>) {
    // expected-error @+1 {{expected an accumulator of shape '!tile.pending<!tile.frag<[64, 64], f32>>', got '!tile.frag<[64, 128], f32>'}}
    %d = tile.mma %a, %a into %c : !tile.buf<[64, 64], bf16>, !tile.buf<[64, 64], bf16> into !tile.frag<[64, 128], f32>
    tile.yield
  }
}

// -----
tile.template @write_shape {
  tile.proc @p(%a: !tile.frag<[64, 128], f32>, %b: !tile.buf<[64, 128], bf16>) {
    // expected-error @+1 {{shapes differ: '!tile.frag<[64, 128], f32>' and '!tile.buf<[64, 128], bf16>'}}
    tile.write %a to trans %b : !tile.frag<[64, 128], f32> to !tile.buf<[64, 128], bf16>
    tile.yield
  }
}

// -----
tile.template @convert_shape {
  tile.proc @p(%a: !tile.frag<[64, 128], f32>) {
    // expected-error @+1 {{must keep the shape}}
    %b = tile.convert %a : !tile.frag<[64, 128], f32> to !tile.frag<[64, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @one_warps_product {
  tile.proc @p(%a: !tile.buf<[64, 64], bf16>) {
    tile.per_warp {
      // expected-error @+1 {{belongs to the whole role, not to one warp of it}}
      %d = tile.mma %a, %a : !tile.buf<[64, 64], bf16>, !tile.buf<[64, 64], bf16>
    }
    tile.yield
  }
}

// -----
tile.template @item_fields {
  tile.kernel @main(%items: !tile.items<1, 64>) {
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{expected 5 names, one for each field of an item, or 19 for pieces of them}}
      tile.foreach (%span, %seq) in %items : !tile.items<1, 64> { }
    }
  }
}

// -----
tile.template @slot_buffers {
  tile.kernel @main() {
    %r = tile.ring depth(2) : !tile.ring<!tile.buf<[64, 64], bf16>>
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{expected one name for each buffer of '!tile.ring<!tile.buf<[64, 64], bf16>>'}}
      tile.put %r as (%a, %b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
    }
  }
}

// -----
tile.template @if_without_else {
  tile.proc @p(%a: i32) {
    // expected-error @+1 {{with results needs an else}}
    %b = tile.if 1 -> i32 { tile.yield %a : i32 }
    tile.yield
  }
}

// -----
tile.template @if_sides {
  tile.proc @p(%a: i32, %b: f32) {
    // expected-error @+1 {{expected both sides to yield the results}}
    %c = tile.if 1 -> i32 { tile.yield %a : i32 } else { tile.yield %b : f32 }
    tile.yield
  }
}

// -----
tile.template @two_putters {
  tile.kernel @main() {
    // expected-error @+1 {{is put by 2 roles, which only a ring with turns allows}}
    %r = tile.ring depth(2) : !tile.ring<!tile.buf<[64, 64], bf16>>
    tile.role @a warps(4) registers(64) {
      tile.put %r as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
    }
    tile.role @b warps(4) registers(64) {
      tile.put %r as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
    }
    tile.role @c warps(4) registers(64) {
      %b = tile.get %r : !tile.ring<!tile.buf<[64, 64], bf16>>
      tile.release %r : !tile.ring<!tile.buf<[64, 64], bf16>>
    }
  }
}

// -----
tile.template @turn_results {
  tile.kernel @main(%a: i32) {
    tile.role @r warps(4) registers(64) copies(2) {
      // expected-error @+1 {{expected the region to yield the results}}
      %b = tile.turn -> (f32) { tile.yield %a : i32 }
    }
  }
}

// -----
tile.template @not_held {
  tile.kernel @main() {
    %r = tile.ring depth(2) : !tile.ring<!tile.buf<[64, 64], bf16>>
    tile.role @producer warps(4) registers(64) {
      tile.put %r as (%b) : !tile.ring<!tile.buf<[64, 64], bf16>> { }
    }
    tile.role @consumer warps(4) registers(64) {
      %b = tile.get %r : !tile.ring<!tile.buf<[64, 64], bf16>>
      tile.release %r : !tile.ring<!tile.buf<[64, 64], bf16>>
      // expected-error @+1 {{gives back a slot that this role does not hold}}
      tile.release %r : !tile.ring<!tile.buf<[64, 64], bf16>>
    }
  }
}

// -----
tile.template @item_types {
  tile.kernel @main(%items: !tile.items<1, 64>) {
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{expected the fields of an item, got 'i32'}}
      "tile.foreach"(%items) ({
      ^bb0(%i: i32):
      }) : (!tile.items<1, 64>) -> ()
    }
  }
}

// -----
!view = !tile.view<[?, ?, 64], bf16>
!buf = !tile.buf<[64, 64], bf16>
tile.template @copy_into_nothing {
  tile.proc @p(%b: !buf, %v: !view, %i: i32, %c: !tile.chunk) {
    // expected-error @+1 {{expects parent op 'tile.put'}}
    tile.copy_in %v[%i] at %c to %b : !view to !buf
    tile.yield
  }
}

// -----
!acc = !tile.frag<[64, 64], f32>
!buf = !tile.buf<[64, 64], bf16>
tile.template @sum_used_twice {
  tile.proc @p(%b: !buf) {
    %x_ = tile.mma %b, %b : !buf, !buf
    // expected-error @+1 {{adds to a product that others use, or of another region}}
    %y_ = tile.mma %b, %b into %x_ : !buf, !buf into !tile.pending<!acc>
    %x = tile.wait %x_ : !tile.pending<!acc>
    tile.yield
  }
}

// -----
tile.template @columns_of_other_rows {
  tile.proc @p(%x: !tile.frag<[64, 128], f32>) {
    // expected-error @+1 {{must keep rows and element type, got}}
    %y = tile.columns %x from 0 : !tile.frag<[64, 128], f32> to !tile.frag<[64, 64], bf16>
    tile.yield
  }
}

// -----
tile.template @columns_outside {
  tile.proc @p(%x: !tile.frag<[64, 128], f32>) {
    // expected-error @+1 {{expected columns from a multiple of 16 on,}}
    %y = tile.columns %x from 96 : !tile.frag<[64, 128], f32> to !tile.frag<[64, 64], f32>
    tile.yield
  }
}

// -----
tile.template @one_warps_results {
  tile.kernel @main() {
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{expected the region to yield the results}}
      %a = tile.one_warp -> (!tile.frag<[1, 64], f32>) { }
    }
  }
}

// -----
!slot = !tile.view<[?, 128, 128], f32, packed>
tile.kernel @packed(%x: !slot) {
  tile.role @r warps(4) registers(64) {
    %c0 = tile.value 0 : i32
    // expected-error @+1 {{expected a chunk's row [1, n] of a view [tokens, heads], a matrix at an index for each axis, or an element [1, 1] of a view with one axis, got '!tile.frag<[64, 64], f32>' at 3 indices of '!tile.view<[?, 128, 128], f32, packed>'}}
    %y = tile.load %x[%c0, %c0, %c0] : !slot to !tile.frag<[64, 64], f32>
  }
}

// -----
!slot = !tile.view<[?, 128, 128], f32, packed>
!buf = !tile.buf<[64, 128], bf16>
tile.kernel @packed_copy(%x: !slot) {
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) {
    %c0 = tile.value 0 : i32
    tile.one_warp {
      tile.put %ring as (%b) : !tile.ring<!buf> {
        // expected-error @+1 {{expected an index for each axis of '!tile.view<[?, 128, 128], f32, packed>', got 2}}
        tile.copy_in %x[%c0, %c0] to %b : !slot to !buf
      }
    }
  }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!buf>
    tile.release %ring : !tile.ring<!buf>
  }
}

// -----
!buf = !tile.buf<[64, 128], bf16>
tile.kernel @too_little() {
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) {
    tile.put %ring as (%b) : !tile.ring<!buf> { }
  }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!buf>
    // expected-error @+1 {{expected buffers of 32768 bytes for '!tile.frag<[64, 128], f32>', got 16384}}
    %x = tile.unpack %b : !buf to !tile.frag<[64, 128], f32>
    tile.release %ring : !tile.ring<!buf>
  }
}

// -----
!buf = !tile.buf<[64, 64], bf16>
tile.kernel @unread_by_nobody() {
  %ring = tile.ring depth(2) : !tile.ring<!buf>
  tile.role @producer warps(4) registers(64) {
    tile.one_warp {
      // expected-error @+1 {{is unread by a role that takes nothing from the ring, or put by more than tile.one_warp}}
      tile.put unread %ring as (%b) : !tile.ring<!buf> { }
    }
  }
  tile.role @consumer warps(4) registers(64) {
    %b = tile.get %ring : !tile.ring<!buf>
    tile.release %ring : !tile.ring<!buf>
  }
}
