// A slot is given back behind the wait that retires the last product reading it; arrivals and bytes of its barriers.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-pipeline="values=K=128,V=128" | FileCheck %s
// CHECK: %[[KQ:.*]] = tile.ring depth(3) {bytes = 32768 : i64, {{.*}}empty_count = 12 : i64, {{.*}}full_count = 1 : i64
// CHECK: %[[V:.*]] = tile.ring depth(2) {bytes = 16384 : i64, {{.*}}empty_count = 8 : i64, {{.*}}full_count = 1 : i64
// CHECK: %[[GATES:.*]] = tile.ring depth(3) {bytes = 0 : i64, {{.*}}empty_count = 12 : i64, {{.*}}full_count = 1 : i64
// CHECK: %[[T:.*]] = tile.ring depth(3) {bytes = 0 : i64, {{.*}}empty_count = 8 : i64, {{.*}}full_count = 4 : i64
// CHECK: tile.role @state
// CHECK: %[[TT:.*]] = tile.get %[[T]]
// CHECK-NEXT: %[[U:.*]] = tile.mma %{{.*}}, trans %[[TT]]
// CHECK: tile.wait %[[U]]
// CHECK-NEXT: tile.release %[[T]]
// The text gives K, Q and P back earlier than the products that read them end.
// CHECK: %[[S:.*]] = tile.mma
// CHECK-NOT: tile.release %[[KQ]]
// CHECK: %[[O:.*]] = tile.mma
// CHECK: tile.wait %[[S]]
// CHECK-NEXT: tile.release %[[KQ]]
// CHECK-NEXT: tile.wait %[[O]]
// CHECK-NEXT: tile.release
