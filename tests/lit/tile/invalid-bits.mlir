// One case for each diagnostic of bits of views of any element type.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false
tile.template @bits_in_a_buffer {
  // expected-error @+1 {{expected elements f32, bf16, f16 or a parameter, got '!tile.any'}}
  tile.proc @p(%a: !tile.buf<[1, 64], any>) { tile.yield }
}

// -----
tile.template @widened_bf16 {
  tile.proc @p(%v: !tile.view<[?, ?], any>, %a: !tile.frag<[1, 64], bf16>) {
    // expected-error @+1 {{expected bits of a view of any element type, got '!tile.frag<[1, 64], bf16>' of '!tile.view<[?, ?], any>'}}
    %x = tile.widen %a of %v : !tile.frag<[1, 64], bf16>, !tile.view<[?, ?], any>
    tile.yield
  }
}

// -----
tile.template @widened_by_another {
  tile.proc @p(%v: !tile.view<[?, ?], f32>, %a: !tile.frag<[1, 64], any>) {
    // expected-error @+1 {{expected bits of a view of any element type, got '!tile.frag<[1, 64], any>' of '!tile.view<[?, ?], f32>'}}
    %x = tile.widen %a of %v : !tile.frag<[1, 64], any>, !tile.view<[?, ?], f32>
    tile.yield
  }
}
