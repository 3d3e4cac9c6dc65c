// R1 to R3: registers of products in flight, and of what a loop carries from product to product.
// RUN: gdn-opt %s --sm-pipeline --split-input-file --verify-diagnostics

// What the rules ask for: operands and accumulators through the fence, both through the wait, two groups in flight, around a loop.
sm.kernel @clean(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %f:8 = sm.wgmma.fence (%x, %x, %x, %x, %s, %s, %s, %s : i32, i32, i32, i32, f32, f32, f32, f32)
  %d:4 = sm.wgmma bf16 n 8 a (%f#0, %f#1, %f#2, %f#3) b %x into (%f#4, %f#5, %f#6, %f#7) : f32, f32, f32, f32
  %e:4 = sm.wgmma bf16 n 8 a (%f#0, %f#1, %f#2, %f#3) b %x into (%d#0, %d#1, %d#2, %d#3) : f32, f32, f32, f32
  sm.wgmma.commit
  %r:8 = scf.for %i = %zero to %x step %one iter_args(%a0 = %e#0, %a1 = %e#1, %a2 = %e#2, %a3 = %e#3, %p0 = %f#0, %p1 = %f#1, %p2 = %f#2, %p3 = %f#3)
      -> (f32, f32, f32, f32, i32, i32, i32, i32) : i32 {
    %n:4 = sm.wgmma.fence (%i, %i, %i, %i : i32, i32, i32, i32)
    %g:4 = sm.wgmma bf16 n 8 a (%n#0, %n#1, %n#2, %n#3) b %x : f32, f32, f32, f32
    sm.wgmma.commit
    %w:8 = sm.wgmma.wait 1 (%a0, %a1, %a2, %a3, %p0, %p1, %p2, %p3 : f32, f32, f32, f32, i32, i32, i32, i32)
    %sum = arith.addf %w#0, %w#1 : f32
    sm.store_shared %sum to %x : f32
    scf.yield %g#0, %g#1, %g#2, %g#3, %n#0, %n#1, %n#2, %n#3 : f32, f32, f32, f32, i32, i32, i32, i32
  }
  %o:8 = sm.wgmma.wait 0 (%r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7 : f32, f32, f32, f32, i32, i32, i32, i32)
  sm.store_shared %o#0 to %x : f32
}

// -----
sm.kernel @read_before_wait() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  sm.wgmma.fence
  // expected-note @below {{the product}}
  %d:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  // expected-error @below {{'arith.addf' op reads an accumulator that has not passed through the sm.wgmma.wait that retires its product (R1)}}
  %sum = arith.addf %d#0, %d#1 : f32
}

// -----
sm.kernel @read_beside_wait() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  sm.wgmma.fence
  // expected-note @below {{the product}}
  %d:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  %w:4 = sm.wgmma.wait 0 (%d#0, %d#1, %d#2, %d#3 : f32, f32, f32, f32)
  // expected-error @below {{reads an accumulator that has not passed through the sm.wgmma.wait that retires its product (R1)}}
  sm.store_shared %d#0 to %x : f32
}

// -----
// Retired, the accumulator's registers are free for LLVM from the wait on only if the wait takes them.
sm.kernel @wait_without_accumulator() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  sm.wgmma.fence
  // expected-note @below {{the product}}
  %d:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  // expected-error @below {{expected the whole accumulators of the products that it retires (R1)}}
  %w:3 = sm.wgmma.wait 0 (%d#0, %d#1, %d#2 : f32, f32, f32)
}

// -----
sm.kernel @wait_for_older() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  sm.wgmma.fence
  %d:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  // expected-note @below {{the product}}
  %e:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  // expected-error @below {{expected registers of products that it retires, got one of a product in a group that it leaves in flight (R1)}}
  %w:8 = sm.wgmma.wait 1 (%d#0, %d#1, %d#2, %d#3, %e#0, %e#1, %e#2, %e#3 : f32, f32, f32, f32, f32, f32, f32, f32)
}

// -----
sm.kernel @wait_without_commit() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  sm.wgmma.fence
  // expected-note @below {{the product}}
  %d:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  // expected-error @below {{expected registers of products that it retires, got one of a product in a group that it leaves in flight (R1)}}
  %w:4 = sm.wgmma.wait 0 (%d#0, %d#1, %d#2, %d#3 : f32, f32, f32, f32)
}

// -----
sm.kernel @wait_without_operand() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  %f:4 = sm.wgmma.fence (%x, %x, %x, %x : i32, i32, i32, i32)
  // expected-note @below {{the product}}
  %d:4 = sm.wgmma bf16 n 8 a (%f#0, %f#1, %f#2, %f#3) b %x : f32, f32, f32, f32
  sm.wgmma.commit
  // expected-error @below {{expected all register operands of the products that it retires (R2)}}
  %w:4 = sm.wgmma.wait 0 (%d#0, %d#1, %d#2, %d#3 : f32, f32, f32, f32)
}

// -----
sm.kernel @operand_past_fence() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  sm.wgmma.fence
  // expected-error @below {{expected register operands of a product in flight, or ones that come out of sm.wgmma.fence (R2)}}
  %d:4 = sm.wgmma bf16 n 8 a (%x, %x, %x, %x) b %x : f32, f32, f32, f32
}

// -----
sm.kernel @accumulator_past_fence(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  sm.wgmma.fence
  // expected-error @below {{expected an accumulator of a product in flight, or one that comes out of sm.wgmma.fence (R2)}}
  %d:4 = sm.wgmma bf16 n 8 at %x b %x into (%s, %s, %s, %s) : f32, f32, f32, f32
}

// -----
// In the second round the loop reads what the first left in flight.
sm.kernel @around_loop(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:4 = scf.for %i = %zero to %x step %one iter_args(%a0 = %s, %a1 = %s, %a2 = %s, %a3 = %s) -> (f32, f32, f32, f32) : i32 {
    // expected-error @below {{reads an accumulator that has not passed through}}
    sm.store_shared %a0 to %x : f32
    sm.wgmma.fence
    // expected-note @below {{the product}}
    %g:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
    sm.wgmma.commit
    scf.yield %g#0, %g#1, %g#2, %g#3 : f32, f32, f32, f32
  }
}

// -----
// Arguments that a loop hands on in another order are followed.
sm.kernel @swapped() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  sm.wgmma.fence
  %h:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  %w:4 = sm.wgmma.wait 0 (%h#0, %h#1, %h#2, %h#3 : f32, f32, f32, f32)
  sm.wgmma.fence
  // expected-note @below {{the product}}
  %g:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
  sm.wgmma.commit
  %r:2 = scf.for %i = %zero to %x step %one iter_args(%a0 = %g#0, %a1 = %w#0) -> (f32, f32) : i32 {
    // expected-error @below {{reads an accumulator that has not passed through}}
    sm.store_shared %a1 to %x : f32
    scf.yield %a1, %a0 : f32, f32
  }
}

// -----
// A loop whose condition is in its body.
sm.kernel @while(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  %zero = arith.constant 0 : i32
  %r = scf.while (%a = %s) : (f32) -> f32 {
    %more = arith.cmpi eq, %x, %zero : i32
    scf.condition(%more) %a : f32
  } do {
  ^bb0(%b: f32):
    sm.wgmma.fence
    // expected-note @below {{the product}}
    %g:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
    sm.wgmma.commit
    scf.yield %g#0 : f32
  }
  // expected-error @below {{reads an accumulator that has not passed through}}
  sm.store_shared %r to %x : f32
}

// -----
// One path leaves a product in flight.
sm.kernel @branch(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  %zero = arith.constant 0 : i32
  %first = arith.cmpi eq, %x, %zero : i32
  %r = scf.if %first -> f32 {
    sm.wgmma.fence
    // expected-note @below {{the product}}
    %g:4 = sm.wgmma bf16 n 8 at %x b %x : f32, f32, f32, f32
    sm.wgmma.commit
    scf.yield %g#0 : f32
  } else {
    scf.yield %s : f32
  }
  // expected-error @below {{reads an accumulator that has not passed through}}
  sm.store_shared %r to %x : f32
}

// -----
// What a loop carries from product to product is scaled beside another product: ptxas would wait for all of them.
sm.kernel @carried(%s: f32, %n: i32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}, {kind = "batch", name = "sequences"}]} {
  %base = sm.shared_base
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:4 = scf.for %i = %zero to %n step %one iter_args(%a0 = %s, %a1 = %s, %a2 = %s, %a3 = %s) -> (f32, f32, f32, f32) : i32 {
    sm.wgmma.fence
    // expected-note @below {{the product}}
    %o:4 = sm.wgmma bf16 n 8 at %base b %base : f32, f32, f32, f32
    sm.wgmma.commit
    // expected-error @below {{reads an accumulator that its loop is entered with otherwise than as a product's result, while a product is in flight (R3)}}
    %b0 = arith.mulf %a0, %s : f32
    %b1 = arith.mulf %a1, %s : f32
    %b2 = arith.mulf %a2, %s : f32
    %b3 = arith.mulf %a3, %s : f32
    %f:4 = sm.wgmma.fence (%b0, %b1, %b2, %b3 : f32, f32, f32, f32)
    %e:4 = sm.wgmma bf16 n 8 at %base b %base into (%f#0, %f#1, %f#2, %f#3) : f32, f32, f32, f32
    sm.wgmma.commit
    %w:8 = sm.wgmma.wait 0 (%e#0, %e#1, %e#2, %e#3, %o#0, %o#1, %o#2, %o#3 : f32, f32, f32, f32, f32, f32, f32, f32)
    scf.yield %w#0, %w#1, %w#2, %w#3 : f32, f32, f32, f32
  }
}

// -----
// It may, where a product in front of the loop has put it there.
sm.kernel @primed(%s: f32, %n: i32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}, {kind = "batch", name = "sequences"}]} {
  %base = sm.shared_base
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %p:4 = sm.wgmma.fence (%s, %s, %s, %s : f32, f32, f32, f32)
  %z:4 = sm.wgmma bf16 n 8 at %base b %base into (%p#0, %p#1, %p#2, %p#3) {unswizzled} : f32, f32, f32, f32
  sm.wgmma.commit
  %q:4 = sm.wgmma.wait 0 (%z#0, %z#1, %z#2, %z#3 : f32, f32, f32, f32)
  %r:4 = scf.for %i = %zero to %n step %one iter_args(%a0 = %q#0, %a1 = %q#1, %a2 = %q#2, %a3 = %q#3) -> (f32, f32, f32, f32) : i32 {
    sm.wgmma.fence
    %o:4 = sm.wgmma bf16 n 8 at %base b %base : f32, f32, f32, f32
    sm.wgmma.commit
    %b0 = arith.mulf %a0, %s : f32
    %b1 = arith.mulf %a1, %s : f32
    %b2 = arith.mulf %a2, %s : f32
    %b3 = arith.mulf %a3, %s : f32
    %f:4 = sm.wgmma.fence (%b0, %b1, %b2, %b3 : f32, f32, f32, f32)
    %e:4 = sm.wgmma bf16 n 8 at %base b %base into (%f#0, %f#1, %f#2, %f#3) : f32, f32, f32, f32
    sm.wgmma.commit
    %w:8 = sm.wgmma.wait 0 (%e#0, %e#1, %e#2, %e#3, %o#0, %o#1, %o#2, %o#3 : f32, f32, f32, f32, f32, f32, f32, f32)
    scf.yield %w#0, %w#1, %w#2, %w#3 : f32, f32, f32, f32
  }
}

// -----
// But not on one path alone.
sm.kernel @on_one_path(%s: f32, %n: i32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}, {kind = "batch", name = "sequences"}]} {
  %base = sm.shared_base
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %some = arith.cmpi ne, %n, %zero : i32
  %q:4 = scf.if %some -> (f32, f32, f32, f32) {
    %p:4 = sm.wgmma.fence (%s, %s, %s, %s : f32, f32, f32, f32)
    %z:4 = sm.wgmma bf16 n 8 at %base b %base into (%p#0, %p#1, %p#2, %p#3) {unswizzled} : f32, f32, f32, f32
    sm.wgmma.commit
    %t:4 = sm.wgmma.wait 0 (%z#0, %z#1, %z#2, %z#3 : f32, f32, f32, f32)
    scf.yield %t#0, %t#1, %t#2, %t#3 : f32, f32, f32, f32
  } else {
    scf.yield %s, %s, %s, %s : f32, f32, f32, f32
  }
  %r:4 = scf.for %i = %zero to %n step %one iter_args(%a0 = %q#0, %a1 = %q#1, %a2 = %q#2, %a3 = %q#3) -> (f32, f32, f32, f32) : i32 {
    sm.wgmma.fence
    // expected-note @below {{the product}}
    %o:4 = sm.wgmma bf16 n 8 at %base b %base : f32, f32, f32, f32
    sm.wgmma.commit
    // expected-error @below {{reads an accumulator that its loop is entered with}}
    %b0 = arith.mulf %a0, %s : f32
    %b1 = arith.mulf %a1, %s : f32
    %b2 = arith.mulf %a2, %s : f32
    %b3 = arith.mulf %a3, %s : f32
    %f:4 = sm.wgmma.fence (%b0, %b1, %b2, %b3 : f32, f32, f32, f32)
    %e:4 = sm.wgmma bf16 n 8 at %base b %base into (%f#0, %f#1, %f#2, %f#3) : f32, f32, f32, f32
    sm.wgmma.commit
    %w:8 = sm.wgmma.wait 0 (%e#0, %e#1, %e#2, %e#3, %o#0, %o#1, %o#2, %o#3 : f32, f32, f32, f32, f32, f32, f32, f32)
    scf.yield %w#0, %w#1, %w#2, %w#3 : f32, f32, f32, f32
  }
}
