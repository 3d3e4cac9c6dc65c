// Each message of the dialect's verifiers.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected one entry of params for each of 1 arguments, got 0}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
}

// -----
// expected-error @below {{expected kind and name in an entry of params, got "a"}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = ["a"]} {
}

// -----
// expected-error @below {{expected a known kind or batch field in params, got {kind = "address", name = "a"}}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "address", name = "a"}]} {
}

// -----
// expected-error @below {{expected a known kind or batch field in params, got {kind = "batch", name = "lengths"}}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "batch", name = "lengths"}]} {
}

// -----
// expected-error @below {{expected argument #0 of type 'i64' for {kind = "pointer", name = "a"}, got 'i32'}}
sm.kernel @k(%a: i32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "pointer", name = "a"}]} {
}

// -----
// expected-error @below {{expected argument #0 of type '!sm.map' for {kind = "map", name = "a"}, got 'i64'}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "map", name = "a"}]} {
}

// -----
// expected-error @below {{expected argument #0 of type 'f32' for {kind = "scalar", name = "a"}, got 'i32'}}
sm.kernel @k(%a: i32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "a"}]} {
}

// -----
// expected-error @below {{expected argument #0 of type 'i32' for {kind = "element", name = "a"}, got 'i64'}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "element", name = "a"}]} {
}

// -----
// expected-error @below {{expected argument #0 of type 'i64' for {kind = "batch", name = "cu_seqlens"}, got 'i32'}}
sm.kernel @k(%a: i32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "batch", name = "cu_seqlens"}]} {
}

// -----
// expected-error @below {{expected the axis of a stride, got {kind = "stride", name = "a"}}}
sm.kernel @k(%a: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "stride", name = "a"}]} {
}

// -----
// expected-error @below {{expected element bf16, f16 or f32 of a map, got {kind = "map", name = "a"}}}
sm.kernel @k(%a: !sm.map) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "map", name = "a"}]} {
}

// -----
// expected-error @below {{expected box_rows of a map, in 1..256 for a box, got}}
sm.kernel @k(%a: !sm.map) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [
    {kind = "map", name = "a", element = "bf16", columns = 512 : i64, box_columns = 64 : i64, box_rows = 257 : i64}]} {
}

// -----
// expected-error @below {{expected whole warpgroups, at most 1024 threads, got 96}}
sm.kernel @k() attributes {threads = 96 : i64, shared_bytes = 0 : i64, params = []} {
}

// -----
// expected-error @below {{expected whole warpgroups, at most 1024 threads, got 1152}}
sm.kernel @k() attributes {threads = 1152 : i64, shared_bytes = 0 : i64, params = []} {
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  // expected-error @below {{expected a multiple of 8 in 24..256, got 100}}
  sm.max_registers 100
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  // expected-error @below {{expected a barrier in 0..15, got 16}}
  sm.bar.sync 16 threads 128
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  // expected-error @below {{expected whole warps, at most 1024 threads, got 48}}
  sm.bar.arrive 1 threads 48
}

// -----
sm.kernel @k(%m: !sm.map) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [
    {kind = "map", name = "a", element = "bf16", columns = 64 : i64, box_columns = 64 : i64, box_rows = 64 : i64}]} {
  %x = sm.lane
  // expected-error @below {{expected 1 to 5 coordinates, got 6}}
  sm.bulk.load %m[%x, %x, %x, %x, %x, %x] to %x on %x
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected n a multiple of 8 up to 256, got 12}}
  %d:6 = sm.wgmma bf16 n 12 at %x b %x : f32, f32, f32, f32, f32, f32
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected 4 accumulator registers, got 2}}
  %d:2 = sm.wgmma bf16 n 8 at %x b %x : f32, f32
}

// -----
sm.kernel @k(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  // expected-error @below {{expected an accumulator of 4 registers, got 1}}
  %d:4 = sm.wgmma bf16 n 8 at %x b %x into (%s) : f32, f32, f32, f32
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected A as four registers or as a descriptor}}
  %d:4 = sm.wgmma bf16 n 8 a (%x, %x) b %x : f32, f32, f32, f32
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{cannot transpose an operand held in registers}}
  %d:4 = sm.wgmma bf16 n 8 a (%x, %x, %x, %x) b %x {trans_a} : f32, f32, f32, f32
}

// -----
sm.kernel @k(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  // expected-error @below {{expected 4 and 2 or 2 and 1 operand registers, got 4 and 1}}
  %d:4 = sm.mma f16 a (%x, %x, %x, %x) b (%x) c (%s, %s, %s, %s)
}

// -----
sm.kernel @k(%s: f32) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "scalar", name = "s"}]} {
  %x = sm.lane
  // expected-error @below {{expected 4 accumulator registers, got 2}}
  %d:4 = sm.mma f16 a (%x, %x) b (%x) c (%s, %s)
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected 1, 2 or 4 registers, got 3}}
  %d:3 = sm.ldmatrix %x : i32, i32, i32
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected 1, 2 or 4 registers, got 3}}
  sm.stmatrix %x, %x, %x to %x
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected registers of one type}}
  %d:2 = sm.load_shared %x : f32, i32
}

// -----
sm.kernel @k(%p: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "pointer", name = "p"}]} {
  %true = arith.constant true
  // expected-error @below {{expected at most 16 bytes, got 4 of 'i64'}}
  %d:4 = sm.load_global %p if %true : i64, i64, i64, i64
}

// -----
sm.kernel @k(%p: i64) attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = [{kind = "pointer", name = "p"}]} {
  %true = arith.constant true
  // expected-error @below {{expected one i32 for a narrow access}}
  sm.store_global narrow %p to %p if %true : i64
}

// -----
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  %x = sm.lane
  // expected-error @below {{expected one i32 for a narrow access}}
  sm.store_shared %x, %x to %x narrow : i32, i32
}
