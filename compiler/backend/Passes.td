// Passes from the sm dialect to LLVM.
#ifndef GDNC_BACKEND_PASSES
#define GDNC_BACKEND_PASSES
include "mlir/Pass/PassBase.td"

def ConvertSmToLLVM : Pass<"convert-sm-to-llvm", "::mlir::ModuleOp"> {
  let summary = "sm.kernel to a kernel of the LLVM dialect, sm ops to inline assembly, intrinsics and shared-memory accesses";
  let description = [{
    Whatever has an effect on other threads, on memory or on the order of either becomes side-effecting inline assembly, with a clobber of memory
    where ordinary accesses must not pass it. scf and arith stay as they are.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SmVerifyRules : Pass<"sm-verify-rules", "::sm::KernelOp"> {
  let summary = "checks that registers of warpgroup products in flight are left alone";
  let description = [{
    R1: an accumulator is read only after it has passed through the sm.wgmma.wait that retires its product.
    R2: a register operand comes out of an sm.wgmma.fence before its product, and passes through the wait that retires it.
    R3: an accumulator that a loop carries is read beside products in flight only where the loop is entered with it as a product's result.
    Products are followed through loops and branches, group by group.
  }];
}
#endif
