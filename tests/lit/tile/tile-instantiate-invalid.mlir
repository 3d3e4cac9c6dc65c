// What an instantiation refuses at an op: parameters' values that it cannot work with, calls of no procedure.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-instantiate --mlir-print-op-on-diagnostic=false

tile.template @fraction {
  tile.param @parts = 3
  tile.kernel @main(%n: i32) {
    // expected-error @+1 {{'tile.value' op cannot evaluate #tile.expr<64 / parts>}}
    %x = tile.value 64 / parts : i32
  }
}

// -----
tile.template @number_for_a_type {
  tile.param @io = 64
  // expected-error @+1 {{'tile.kernel' op expected parameter 'io' to be an element type}}
  tile.kernel @main(%x: !tile.frag<[64, 64], io>) { }
}

// -----
tile.template @no_procedure {
  tile.kernel @main(%n: i32) {
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{'tile.call' op expected a procedure of this name and type}}
      tile.call @absent(%n) : (i32) -> ()
    }
  }
}

// -----
tile.template @operand_types {
  tile.proc @p(%x: f32) { tile.yield }
  tile.kernel @main(%n: i32) {
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{'tile.call' op expected a procedure of this name and type}}
      tile.call @p(%n) : (i32) -> ()
    }
  }
}

// -----
tile.template @result_types {
  tile.proc @p(%x: i32) { tile.yield }
  tile.kernel @main(%n: i32) {
    tile.role @r warps(4) registers(64) {
      // expected-error @+1 {{'tile.call' op expected a procedure of this name and type}}
      %y = tile.call @p(%n) : (i32) -> i32
    }
  }
}
