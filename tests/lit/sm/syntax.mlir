// What is printed reads back as the same.
// RUN: gdn-opt %S/lowering.mlir --strip-debuginfo > %t.once
// RUN: gdn-opt %t.once > %t.twice
// RUN: diff %t.once %t.twice
// RUN: FileCheck %s < %t.once

// CHECK: sm.mbarrier.arrive %{{.*}} if %{{.*}} after %{{.*}}, %{{.*}}
// CHECK: sm.bulk.load %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}} on %{{.*}}
// CHECK: sm.wgmma.fence(%{{.*}} : i32, i32, i32, i32, f32, f32, f32, f32)
// CHECK: sm.wgmma f16 n 8 a(%{{.*}}) b %{{.*}} into(%{{.*}}) {trans_b} : f32, f32, f32, f32
// CHECK: sm.wgmma bf16 n 8 at %{{.*}} b %{{.*}} {trans_a}
// CHECK: sm.wgmma.wait 0(%{{.*}} : f32
// CHECK: sm.store_global narrow %{{.*}} to %{{.*}} if %{{.*}} : i32
