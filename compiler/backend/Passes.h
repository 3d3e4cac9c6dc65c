// Passes and pipelines from the sm dialect to the LLVM dialect.
#pragma once
#include "dialects/sm/Sm.h"
#include "mlir/Pass/Pass.h"

namespace gdnc {

#define GEN_PASS_DECL
#include "compiler/backend/Passes.h.inc"

// Checks on sm before it is lowered.
void buildSmPipeline(mlir::OpPassManager &pm);

// sm, scf and arith to the LLVM dialect.
void buildLlvmPipeline(mlir::OpPassManager &pm);

// Registers the passes, and the pipelines as `sm-pipeline` and `llvm-pipeline`.
void registerBackendPasses();

} // namespace gdnc
