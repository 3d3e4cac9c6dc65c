// Fences between generic writes and what products and bulk copies read; barriers between warps around scratch.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128" | FileCheck %s
// CHECK: %[[T:.*]] = tile.ring depth(3) {{.*}}zeroed} : <!tile.buf
// What warps read of each other: rows that others may still read, then rows that others have written.
// CHECK: tile.put %[[T]]
// CHECK: tile.sync
// CHECK-NEXT: tile.solve_blocks
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
