// What the forward is in instructions of sm_90a.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128" --convert-tile-to-sm | FileCheck %s

// CHECK: sm.kernel @forward_main(
// CHECK-SAME: {box_columns = 64 : i64, box_rows = 64 : i64, columns = 128 : i64, element = "bf16", kind = "map", name = "q_in"}
// One arrival fills a slot of K and Q; the warps of @state and of one copy of @aux empty it.
// CHECK: sm.mbarrier.init %{{.*}} count 1
// CHECK: sm.mbarrier.init %{{.*}} count 12
// CHECK: sm.mbarrier.fence_init
// CHECK: sm.fence.async
// CHECK-NEXT: sm.grid_wait
// CHECK-NEXT: sm.bar.sync 0 threads 512

// CHECK: sm.max_registers 64
// CHECK: sm.mbarrier.expect %{{.*}} bytes 32768
// CHECK-COUNT-4: sm.bulk.load
// CHECK: sm.max_registers increase 192
// R3: a product with zeros, one k-step deep, in front of the loop: for O and for the state.
// CHECK: %[[O:.*]]:36 = sm.wgmma.fence(
// CHECK-NEXT: sm.wgmma{{ +}}bf16 n 64 a(%[[O]]#32, %[[O]]#33, %[[O]]#34, %[[O]]#35) b %{{.*}} into(%[[O]]#0,
// CHECK-NEXT: sm.wgmma.commit
// CHECK-NEXT: sm.wgmma.wait 0
// CHECK: %[[S:.*]]:68 = sm.wgmma.fence(
// CHECK-NEXT: sm.wgmma{{ +}}bf16 n 128 a(%[[S]]#64, %[[S]]#65, %[[S]]#66, %[[S]]#67) b %{{.*}} into(%[[S]]#0,
// R2: the operand passes the fence once; Q S reads what K S reads.
// CHECK: %[[SH:.*]]:32 = sm.wgmma.fence(
// CHECK-NEXT: sm.wgmma{{ +}}bf16 n 64 a(%[[SH]]#0,
// CHECK: sm.wgmma.fence{{$}}
// CHECK-NEXT: sm.wgmma{{ +}}bf16 n 64 a(%[[SH]]#0,
// CHECK: sm.wgmma.wait 1(
// CHECK-NEXT: sm.wgmma.wait 0(
// U = T W: the upper half of T's columns takes four k-steps, the lower half two.
// CHECK: %[[W:.*]]:16 = sm.wgmma.fence(
// CHECK-COUNT-6: sm.wgmma{{ +}}bf16 n 32 a(%[[W]]#
// CHECK-NOT: n 32
// CHECK: sm.bulk.store
// CHECK: sm.bulk.wait 0
