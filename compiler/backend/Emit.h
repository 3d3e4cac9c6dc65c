// From the LLVM dialect to PTX, in process.
#pragma once
#include "compiler/backend/Target.h"
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm
namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace gdnc {

// What translation to LLVM IR needs of a context's registry.
void registerTranslations(mlir::DialectRegistry &registry);

// LLVM IR of a module of the LLVM dialect, optimised for the target; null after a diagnostic.
std::unique_ptr<llvm::Module> emitLlvm(mlir::ModuleOp module, const Target &target, llvm::LLVMContext &context);

std::string printLlvm(const llvm::Module &module);

// PTX of such a module. LLVM lowers it while printing: the module is spent.
std::string emitPtx(std::unique_ptr<llvm::Module> module, const Target &target);

} // namespace gdnc
