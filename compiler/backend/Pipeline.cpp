#include "compiler/backend/Passes.h"
#include "compiler/lower/Lower.h"
#include "dialects/sm/Sm.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
using namespace mlir;

namespace gdnc {

#define GEN_PASS_REGISTRATION
#include "compiler/backend/Passes.h.inc"

void buildSmPipeline(OpPassManager &pm) {
  pm.addPass(tile::createConvertTileToSmPass());
  pm.addNestedPass<sm::KernelOp>(createSmVerifyRules());
}

void buildLlvmPipeline(OpPassManager &pm) {
  constexpr unsigned indexBits = 32; // shared memory and loop counts; offsets in global memory are i64 in sm
  pm.addPass(createConvertSmToLLVM());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createArithToLLVMConversionPass({indexBits}));
  pm.addPass(createConvertControlFlowToLLVMPass({indexBits}));
  pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass({LLVM::DIEmissionKind::DebugDirectivesOnly}));
}

void registerBackendPasses() {
  registerSmPasses();
  PassPipelineRegistration<>("sm-pipeline", "tile to sm, and the rules", buildSmPipeline);
  PassPipelineRegistration<>("llvm-pipeline", "sm, scf and arith to the LLVM dialect", buildLlvmPipeline);
}

} // namespace gdnc
