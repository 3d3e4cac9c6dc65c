// What each op becomes, in the LLVM dialect; and that ptxas takes all of it without an advisory. R5: without the block's size it would
// ignore setmaxnreg and say so (C7508).
// RUN: gdn-opt %s --convert-sm-to-llvm | FileCheck %s
// RUN: gdn-opt %s --emit=cubin -o %t

// CHECK: llvm.mlir.global external @gdn_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func ptx_kernelcc @ops(%[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>}, %[[P:.*]]: i64, %[[S:.*]]: f32) attributes {passthrough = {{\[}}["nvvm.maxntid", "256"], ["nvvm.minctasm", "1"]]}
sm.kernel @ops(%map: !sm.map, %p: i64, %s: f32) attributes {threads = 256 : i64, shared_bytes = 1024 : i64, params = [
    {kind = "map", name = "q", element = "bf16", columns = 128 : i64, box_columns = 64 : i64, box_rows = 64 : i64},
    {kind = "pointer", name = "g"}, {kind = "scalar", name = "scale"}]} {
  // CHECK-DAG: %[[ZERO:.*]] = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.y"() : () -> i32
  // CHECK: %[[ADDRESS:.*]] = llvm.mlir.addressof @gdn_shared : !llvm.ptr<3>
  // CHECK: %[[SYMBOL:.*]] = llvm.ptrtoint %[[ADDRESS]] : !llvm.ptr<3> to i32
  // CHECK: %[[BASE:.*]] = llvm.inline_asm "{{.*}}and.b32 $0, $1, -1024;", "=r,r" %[[SYMBOL]]
  %base = sm.shared_base
  // CHECK: "llvm.nvvm.read.ptx.sreg.tid.x"
  %thread = sm.thread : i32
  // CHECK: has_side_effects "{{.*}}mov.u32 $0, %ctaid.x;", "=r"
  %block = sm.block : i32
  // CHECK: has_side_effects "{{.*}}mov.u32 $0, %nctaid.x;", "=r"
  %blocks = sm.blocks : i32
  // CHECK: %[[TID:.*]] = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"
  // CHECK: %[[FIVE:.*]] = llvm.mlir.constant(5 : i32)
  // CHECK: %[[W:.*]] = llvm.lshr %[[TID]], %[[FIVE]]
  // CHECK: llvm.inline_asm has_side_effects "// lowering.mlir:[[@LINE+1]]\0Ashfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r" %[[W]]
  %warp = sm.warp
  // CHECK: %[[LANE:.*]] = llvm.inline_asm has_side_effects "{{.*}}mov.u32 $0, %laneid;", "=r"
  %lane = sm.lane
  // CHECK: llvm.inline_asm has_side_effects "// lowering.mlir:[[@LINE+1]]\0A", "=f,0" %[[S]]
  %opaque = sm.opaque %s : f32
  // CHECK: llvm.inline_asm has_side_effects "{{.*}}mov.u64 $0, %clock64;", "=l,~{memory}"
  %clock = sm.clock
  // CHECK: llvm.inline_asm has_side_effects "{{.*}}mov.u64 $0, %globaltimer;", "=l,~{memory}"
  %timer = sm.timer
  // CHECK: llvm.mlir.undef : f32
  %undef = sm.undef : f32
  // CHECK: has_side_effects "{{.*}}setmaxnreg.dec.sync.aligned.u32 24;", ""
  sm.max_registers 24
  // CHECK: has_side_effects "{{.*}}setmaxnreg.inc.sync.aligned.u32 240;", ""
  sm.max_registers increase 240

  // CHECK: has_side_effects "{{.*}}mbarrier.init.shared::cta.b64 [$0], 3;", "r,~{memory}" %[[BASE]]
  sm.mbarrier.init %base count 3
  // CHECK: has_side_effects "{{.*}}fence.mbarrier_init.release.cluster;", "~{memory}"
  sm.mbarrier.fence_init
  // CHECK: %[[PRED:.*]] = arith.cmpi
  %pred = arith.cmpi eq, %thread, %lane : i32
  // CHECK: has_side_effects "{{.*}}\0Ambarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}" %[[BASE]]
  sm.mbarrier.arrive %base
  // CHECK: %[[ANY:.*]] = llvm.or %{{.*}}, %[[LANE]]
  // CHECK: %[[NONE:.*]] = llvm.and %[[ANY]], %[[ZERO]]
  // CHECK: %[[SAME:.*]] = llvm.add %[[BASE]], %[[NONE]]
  // CHECK: has_side_effects "{{.*}}\0A@$0 mbarrier.arrive.shared::cta.b64 _, [$1];", "b,r,~{memory}" %[[PRED]], %[[SAME]]
  sm.mbarrier.arrive %base if %pred after %warp, %lane
  // CHECK: has_side_effects "{{.*}}mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 4096;", "r,~{memory}"
  sm.mbarrier.expect %base bytes 4096
  // CHECK: has_side_effects "{{.*}}{\0A.reg .pred done;\0Await_${:uid}:\0Ambarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\0A@!done bra wait_${:uid};\0A}", "r,r,~{memory}"
  sm.mbarrier.wait %base parity %lane
  // CHECK: has_side_effects "{{.*}}bar.sync 1, 256;", "~{memory}"
  sm.bar.sync 1 threads 256
  // CHECK: has_side_effects "{{.*}}bar.arrive 2, 128;", "~{memory}"
  sm.bar.arrive 2 threads 128
  // CHECK: has_side_effects "{{.*}}bar.warp.sync -1;", "~{memory}"
  sm.warp_sync
  // CHECK: has_side_effects "{{.*}}fence.proxy.async.shared::cta;", "~{memory}"
  sm.fence.async

  // CHECK: has_side_effects "{{.*}}cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];", "r,l,r,r,r,~{memory}" %[[BASE]], %[[MAP]]
  sm.bulk.load %map[%lane, %warp] to %base on %thread
  %bit = arith.constant true
  // CHECK: has_side_effects "{{.*}}cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], 4096, [$2];", "r,l,r,~{memory}" %[[BASE]]
  sm.bulk.copy %p bytes 4096 to %base on %thread
  // CHECK: has_side_effects "{{.*}}cp.async.bulk.prefetch.L2.global [$0], $1;", "l,r"
  sm.bulk.prefetch %p bytes %lane
  // CHECK: has_side_effects "{{.*}}ld.acquire.gpu.global.u32 $0, [$2];", "=&r,b,l,~{memory}"
  %flag = sm.flag.load %p if %bit
  // CHECK: has_side_effects "{{.*}}ld.acquire.gpu.global.u32 now, [$0];{{.*}}setp.lt.u32 more, now, $1;
  sm.flag.wait %p reaches %flag
  // CHECK: has_side_effects "{{.*}}red.release.gpu.global.add.u32 [$0], 1;", "l,~{memory}"
  sm.flag.raise %p
  // CHECK: has_side_effects "{{.*}}atom.relaxed.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"
  %old = sm.atomic.add %p, %lane
  // CHECK: has_side_effects "{{.*}}atom.relaxed.gpu.global.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r,~{memory}"
  %was = sm.atomic.cas %p, %old, %lane
  // CHECK: has_side_effects "{{.*}}fence.proxy.async.global;", "~{memory}"
  sm.fence.async_global
  // CHECK: has_side_effects "{{.*}}cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$0, {$1, $2, $3}], [$4];", "l,r,r,r,r,~{memory}" %[[MAP]]
  sm.bulk.store %base to %map[%lane, %warp, %block]
  // CHECK: has_side_effects "{{.*}}cp.async.bulk.commit_group;", "~{memory}"
  sm.bulk.commit
  // CHECK: has_side_effects "{{.*}}cp.async.bulk.wait_group 1;", "~{memory}"
  sm.bulk.wait 1
  // CHECK: has_side_effects "{{.*}}cp.async.bulk.wait_group.read 0;", "~{memory}"
  sm.bulk.wait read 0

  // CHECK: has_side_effects "{{.*}}wgmma.fence.sync.aligned;", "=r,=r,=r,=r,=f,=f,=f,=f,0,1,2,3,4,5,6,7,~{memory}"
  %f:8 = sm.wgmma.fence (%lane, %warp, %block, %thread, %s, %s, %s, %s : i32, i32, i32, i32, f32, f32, f32, f32)
  // A in registers, onto an accumulator: results in its registers.
  // CHECK: has_side_effects "{{.*}}{\0A.reg .b64 db;\0Amov.b64 db, {$12, 0x40000040};\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, db, 1, 1, 1, 1;\0A}", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,r,~{memory}"
  %d:4 = sm.wgmma f16 n 8 a (%f#0, %f#1, %f#2, %f#3) b %base into (%f#4, %f#5, %f#6, %f#7) {trans_b} : f32, f32, f32, f32
  // A in shared memory, started fresh: no operand in the results' registers.
  // CHECK: has_side_effects "{{.*}}{\0A.reg .b64 db;\0A.reg .b64 da;\0Amov.b64 da, {$4, 0x40000040};\0Amov.b64 db, {$5, 0x40000040};\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, da, db, 0, 1, 1, 1, 0;\0A}", "=&f,=&f,=&f,=&f,r,r,~{memory}"
  %e:4 = sm.wgmma bf16 n 8 at %base b %lane {trans_a} : f32, f32, f32, f32
  // Without a swizzle.
  // CHECK: mov.b64 da, {$4, 0};\0Amov.b64 db, {$5, 0};\0A
  %z:4 = sm.wgmma bf16 n 8 at %base b %lane {unswizzled} : f32, f32, f32, f32
  // CHECK: has_side_effects "{{.*}}wgmma.commit_group.sync.aligned;", "~{memory}"
  sm.wgmma.commit
  // CHECK: has_side_effects "{{.*}}wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,=r,=r,=r,=r,=f,=f,=f,=f,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,~{memory}"
  %w:16 = sm.wgmma.wait 0 (%d#0, %d#1, %d#2, %d#3, %e#0, %e#1, %e#2, %e#3, %f#0, %f#1, %f#2, %f#3, %z#0, %z#1, %z#2, %z#3 : f32, f32, f32, f32, f32, f32, f32, f32, i32, i32, i32, i32, f32, f32, f32, f32)

  // CHECK: llvm.inline_asm "{{.*}}mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
  %m:4 = sm.mma bf16 a (%w#8, %w#9, %w#10, %w#11) b (%lane, %warp) c (%w#0, %w#1, %w#2, %w#3)
  // CHECK: llvm.inline_asm "{{.*}}mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};"
  %n:4 = sm.mma f16 a (%lane, %warp) b (%lane) c (%m#0, %m#1, %m#2, %m#3)
  // CHECK: has_side_effects "{{.*}}ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"
  %q:4 = sm.ldmatrix trans %base : i32, i32, i32, i32
  // CHECK: has_side_effects "{{.*}}ldmatrix.sync.aligned.m8n8.x1.shared.b16 {$0}, [$1];", "=r,r,~{memory}"
  %q1 = sm.ldmatrix %base : i32
  // CHECK: has_side_effects "{{.*}}stmatrix.sync.aligned.m8n8.x2.shared.b16 [$0], {$1, $2};", "r,r,r,~{memory}"
  sm.stmatrix %q#0, %q#1 to %base
  // CHECK: has_side_effects "{{.*}}stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [$0], {$1};", "r,r,~{memory}"
  sm.stmatrix %q#0 to trans %base
  // CHECK: llvm.inline_asm "{{.*}}movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"
  %mm = sm.movmatrix %q1
  // CHECK: has_side_effects "{{.*}}shfl.sync.idx.b32 $0, $1, $2, 31, -1;", "=f,f,r"
  %s0 = sm.shuffle idx %s by %lane : f32
  // CHECK: has_side_effects "{{.*}}shfl.sync.up.b32 $0, $1, $2, 0, -1;", "=r,r,r"
  %s1 = sm.shuffle up %mm by %lane : i32
  // CHECK: has_side_effects "{{.*}}shfl.sync.bfly.b32 $0, $1, $2, 31, -1;", "=r,r,r"
  %s2 = sm.shuffle bfly %s1 by %lane : i32
  // CHECK: has_side_effects "{{.*}}vote.sync.any.pred $0, $1, -1;", "=b,b" %[[PRED]]
  %any = sm.any %pred
  // CHECK: has_side_effects "{{.*}}elect.sync _|$0, -1;", "=b"
  %one = sm.elect

  // CHECK: %[[AT:.*]] = llvm.inttoptr %[[BASE]] : i32 to !llvm.ptr<3>
  // CHECK: llvm.load %[[AT]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
  %l:4 = sm.load_shared %base : f32, f32, f32, f32
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
  %l1 = sm.load_shared %base : i32
  // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
  sm.store_shared %l#0, %l#1 to %base : f32, f32
  // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
  sm.store_shared %l1 to %base : i32
  // CHECK: %[[HALF:.*]] = llvm.trunc %{{.*}} : i32 to i16
  // CHECK: llvm.store %[[HALF]], %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<3>
  sm.store_shared %l1 to %base narrow : i32
  // CHECK: has_side_effects "{{.*}}{\0Amov.b32 $0, 0;\0Amov.b32 $1, 0;\0A@$2 ld.global.v2.b32 {$0, $1}, [$3];\0A}", "=&f,=&f,b,l" %[[PRED]], %[[P]]
  // CHECK: %[[LO:.*]] = llvm.extractvalue %{{.*}}[0]
  // CHECK: %[[HI:.*]] = llvm.extractvalue %{{.*}}[1]
  %g:2 = sm.load_global %p if %pred : f32, f32
  // CHECK: has_side_effects "{{.*}}{\0Amov.b64 $0, 0;\0A@$1 ld.global.b64 $0, [$2];\0A}", "=&l,b,l"
  %g2 = sm.load_global %p if %pred : i64
  // CHECK: has_side_effects "{{.*}}{\0Amov.b32 $0, 0;\0A@$1 ld.global.u16 $0, [$2];\0A}", "=&r,b,l"
  %g1 = sm.load_global narrow %p if %pred : i32
  // CHECK: has_side_effects "{{.*}}@$0 st.global.v4.b32 [$1], {$2, $3, $4, $5};", "b,l,f,f,f,f"
  sm.store_global %l#0, %l#1, %l#2, %l#3 to %p if %pred : f32, f32, f32, f32
  // CHECK: has_side_effects "{{.*}}@$0 st.global.b64 [$1], $2;", "b,l,l"
  sm.store_global %g2 to %p if %pred : i64
  // CHECK: has_side_effects "{{.*}}@$0 st.global.u16 [$1], $2;", "b,l,r"
  sm.store_global narrow %g1 to %p if %pred : i32

  // CHECK: %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"(%[[HI]], %[[LO]]) : (f32, f32) -> vector<2xbf16>
  // CHECK: llvm.bitcast %[[PAIR]] : vector<2xbf16> to i32
  %b = sm.pack bf16 %g#0, %g#1
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"
  %h = sm.pack f16 %g#0, %g#1
  // CHECK: llvm.shl
  // CHECK: llvm.and
  %u:2 = sm.unpack bf16 %b
  // CHECK: llvm.fpext {{.*}} : f16 to f32
  // CHECK: llvm.fpext {{.*}} : f16 to f32
  %v:2 = sm.unpack f16 %h
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  %x = sm.ex2 %u#0
  // CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"
  %r = sm.rsqrt %u#1
  // CHECK: llvm.return
}
// CHECK-NOT: sm.
