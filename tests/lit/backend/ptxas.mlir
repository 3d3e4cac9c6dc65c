// How ptxas is found, and how an error of it is reported. The programs under Inputs stand in for ones that this machine does not have.
// RUN: env GDNC_PTXAS=%S/Inputs/old-ptxas not gdn-opt %s --emit=cubin 2>&1 | FileCheck --check-prefix=OLD %s
// OLD: error: expected ptxas 12.8 or newer, got only
// OLD-NEXT: {{.*}}old-ptxas: version 12.4.131 (for sm_90a)
// RUN: env GDNC_PTXAS=/nonexistent/ptxas not gdn-opt %s --emit=cubin 2>&1 | FileCheck --check-prefix=GONE %s
// GONE: error: expected ptxas 12.8 or newer, got only
// GONE-NEXT: /nonexistent/ptxas: does not tell its version (for sm_90a)

// A failure of the environment, exit code 3.
// RUN: env GDNC_PTXAS=%S/Inputs/old-ptxas sh -c 'gdn-opt %s --emit=cubin 2> %t.log; test $? = 3'
// RUN: env TMPDIR=/nonexistent sh -c 'gdn-opt %s --emit=cubin 2> %t.log; test $? = 3' && FileCheck --check-prefix=FOLDER %s < %t.log
// FOLDER: error: cannot write to the temporary folder '/nonexistent'

// One that is too old is passed over for a newer one further on.
// RUN: mkdir -p %t.old/bin %t.tmp && cp %S/Inputs/old-ptxas %t.old/bin/ptxas
// RUN: env CUDA_HOME=%t.old gdn-opt --emit=cubin %s -o %t.cubin

// An error in a line of PTX names the line that it comes from.
// RUN: env TMPDIR=%t.tmp GDNC_PTXAS=%S/Inputs/refusing-ptxas not gdn-opt %s --emit=cubin 2>&1 | FileCheck --check-prefix=ERROR %s
// ERROR: error: kernel 'ptxas_sm_90a': ptxas kernel.ptx, line {{[0-9]+}}; error   : Illegal operand [ptxas.mlir:[[# @LINE+11]]]
// ERROR: error: kernel 'ptxas_sm_90a': ptxas ended with status 255

// RUN: env GDNC_NVDISASM=/nonexistent not gdn-opt %s --emit=sass 2>&1 | FileCheck --check-prefix=SASS %s
// SASS: error: expected nvdisasm or cuobjdump of the CUDA toolkit
// RUN: env GDNC_NVDISASM=%S/Inputs/nvdisasm gdn-opt %s --emit=sass | FileCheck --check-prefix=CODE %s
// CODE: --print-code of {{[1-9][0-9]+}} bytes
// RUN: env GDNC_NVDISASM=%S/Inputs/nvdisasm DISASSEMBLER_STATUS=7 not gdn-opt %s --emit=sass 2>&1 | FileCheck --check-prefix=BROKEN %s
// BROKEN: error: {{.*}}nvdisasm ended with status 7: --print-code of {{[1-9][0-9]+}} bytes
sm.kernel @k() attributes {threads = 128 : i64, shared_bytes = 0 : i64, params = []} {
  sm.warp_sync
  sm.bar.sync 1 threads 128
  sm.warp_sync
}
