// Passes on the sm dialect, and the pipelines of the phases `sm` and `llvm`.
#pragma once
#include "dialects/sm/Sm.h"
#include "mlir/Pass/Pass.h"

namespace gdnc {

#define GEN_PASS_DECL
#include "compiler/backend/Passes.h.inc"

// tile, every decision taken, to sm that keeps the rules.
void buildSmPipeline(mlir::OpPassManager &pm);

// sm, scf and arith to the LLVM dialect.
void buildLlvmPipeline(mlir::OpPassManager &pm);

// Registers the passes, and the pipelines as `sm-pipeline` and `llvm-pipeline`.
void registerBackendPasses();

} // namespace gdnc
