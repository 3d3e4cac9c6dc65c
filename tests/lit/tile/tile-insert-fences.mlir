// Fences between generic writes and what products and bulk copies read; barriers between warps around scratch.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128" | FileCheck --check-prefixes=CHECK,MEET %s
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128,aux=1" | FileCheck --check-prefixes=CHECK,ALONE %s
// CHECK: %[[T:.*]] = tile.ring depth(3) {{.*}}zeroed} : <!tile.buf
// Copies that take turns in a ring follow the warp that has waited for the slot. One copy has nobody to follow.
// CHECK: tile.one_warp
// MEET: } {warp = 0 : i64}
// MEET-NEXT: tile.sync
// ALONE-NOT: tile.sync
// What warps read of each other: rows that others may still read, unless the warps have met since; then rows that others have written.
// CHECK: tile.put %[[T]]
// ALONE: tile.sync
// ALONE-NEXT: tile.solve_blocks
// MEET-NOT: tile.sync
// CHECK: tile.write
// CHECK: tile.sync
// CHECK-NEXT: tile.block_mma
// CHECK-NOT: tile.sync
// At the end of the put.
// CHECK: tile.write_blocks %{{.*}} at 3
// CHECK-NEXT: }
// CHECK-NEXT: tile.fence
// CHECK-NEXT: }
// A bulk copy into a slot needs none.
// CHECK: tile.copy_in
// CHECK-NOT: tile.fence
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
