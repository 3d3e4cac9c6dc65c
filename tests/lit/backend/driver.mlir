// What the compiler refuses before it lowers anything.
// RUN: not gdn-opt %t.none --emit=ptx 2>&1 | FileCheck --check-prefix=FILE %s
// FILE: driver.mlir.tmp.none: error: No such file or directory
// RUN: not gdn-opt %s --emit=ptx --arch=sm_80 2>&1 | FileCheck --check-prefix=ARCH %s
// ARCH: driver.mlir: error: expected an architecture out of sm_90a, got 'sm_80'
// RUN: not gdn-opt %s --emit=ptx --arch=sm_100a 2>&1 | FileCheck --check-prefix=SERVED %s
// SERVED: driver.mlir: error: expected an architecture out of sm_90a, got 'sm_100a'
// RUN: not gdn-opt %s --emit=ptx 2>&1 | FileCheck --check-prefix=TWO %s
// TWO: driver.mlir: error: expected one kernel, got 2
// RUN: echo "module {}" | not gdn-opt - --emit=ptx 2>&1 | FileCheck --check-prefix=NONE %s
// NONE: error: expected one kernel, got 0
// RUN: echo "sm.kernel {" | not gdn-opt - --emit=ptx 2>&1 | FileCheck --check-prefix=SYNTAX %s
// SYNTAX: error: custom op 'sm.kernel' expected valid '@'-identifier for symbol name
// RUN: grep -v small %s | not gdn-opt - --emit=ptx 2>&1 | FileCheck --check-prefix=SHARED %s
// SHARED: error: expected at most 232448 bytes of shared memory on sm_90a, got 232449
// RUN: grep -v large %s | gdn-opt - --emit=ptx --set k=1 --entry=small | FileCheck --check-prefix=ENTRY %s
// ENTRY: .visible .entry small(
// RUN: not gdn-opt %s --emit=ptx --set k 2>&1 | FileCheck --check-prefix=SET %s
// SET: error: expected name=value, got 'k'
sm.kernel @small() attributes {threads = 128 : i64, shared_bytes = 232448 : i64, params = []} {}
sm.kernel @large() attributes {threads = 128 : i64, shared_bytes = 232449 : i64, params = []} {}
