// Fences between generic writes and what products and bulk copies read; barriers between warps around scratch.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128" | FileCheck --check-prefixes=CHECK,MEET %s
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128,aux=1" | FileCheck --check-prefixes=CHECK,ALONE %s
// CHECK: %[[KQ:.*]] = tile.ring depth(4)
// CHECK: %[[T:.*]] = tile.ring depth({{.*}}zeroed} : <!tile.buf
// Warps meet the one that has waited for slots which they leave unread, before one of them fills the ring.
// CHECK: tile.put unread %[[KQ]]
// CHECK: } {warp = 0 : i64}
// CHECK-NEXT: }
// CHECK-NEXT: tile.sync
// Warps that work side by side are not held up between.
// CHECK: tile.cumsum
// CHECK: } {warp = 0 : i64}
// CHECK-NEXT: tile.one_warp
// A bulk copy into a slot needs no fence.
// CHECK-NOT: tile.fence
// CHECK: tile.copy_in
// CHECK-NOT: tile.fence
// CHECK: } {warp = 1 : i64}
// Copies that take turns in a ring follow the warp that has waited for the slot. One copy has nobody to follow, but once:
// it has let slots pass unread.
// MEET: scf.for
// MEET: tile.sync
// MEET-NEXT: tile.get %[[KQ]]
// ALONE: tile.sync
// ALONE-NEXT: scf.for
// ALONE-NOT: tile.sync
// ALONE: tile.get %[[KQ]]
// What warps read of each other: rows that others may still read, unless the warps have met since; then rows that others have written.
// MEET-NOT: tile.sync
// ALONE: tile.sync
// ALONE-NEXT: tile.solve_blocks
// CHECK: tile.put %[[T]]
// CHECK-NOT: tile.sync
// CHECK: tile.write
// CHECK: tile.sync
// CHECK-NEXT: tile.block_mma
// CHECK-NOT: tile.sync
// At the end of the put.
// CHECK: tile.write_blocks %{{.*}} at 3
// CHECK-NEXT: }
// CHECK-NEXT: tile.fence
// CHECK-NEXT: }
// CHECK: tile.write %{{.*}} lower
// CHECK-NEXT: }
// CHECK-NEXT: tile.fence
// The role's own ring: before the get, not in the put between two products.
// CHECK: tile.role @state
// CHECK: %[[OUT:.*]] = tile.ring
// CHECK: tile.put %[[OUT]]
// CHECK-NEXT: tile.write
// CHECK-NEXT: }
// CHECK: tile.fence
// CHECK-NEXT: tile.get %[[OUT]]
// CHECK: tile.fence
// CHECK-NEXT: tile.get %[[OUT]]
