#include "compiler/backend/Emit.h"
#include "compiler/backend/TemplateLines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace gdnc {

void registerTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const Target &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // 32-bit pointers to shared memory, which the backend knows only as an option of the command line
    auto *shortPointers =
        static_cast<llvm::cl::opt<bool> *>(llvm::cl::getRegisteredOptions().lookup("nvptx-short-ptr"));
    assert(shortPointers && "LLVM is built with the NVPTX backend");
    shortPointers->setValue(true);
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  assert(backend && "LLVM is built with the NVPTX backend");
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast; // else mul.rn and add.rn, which ptxas never contracts
  std::string features = "+ptx" + std::to_string(target.ptx.major) + std::to_string(target.ptx.minor);
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target.arch, features, options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

// What the LLVM dialect cannot say of inline assembly: it may not be copied to or moved between paths that different
// threads take (R4: O3 otherwise copies a barrier to both sides of a branch on the thread), and what it does to memory.
static void markAssembly(llvm::CallInst &call) {
  auto *assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
  call.setConvergent();
  call.setDoesNotThrow();
  bool clobbersMemory = llvm::StringRef(assembly->getConstraintString()).contains("~{memory}");
  if (!assembly->hasSideEffects()) {
    call.setDoesNotAccessMemory();
    call.addFnAttr(llvm::Attribute::WillReturn);
  } else if (!clobbersMemory) {
    call.setOnlyAccessesInaccessibleMemory();
  }
}

static void markModule(llvm::Module &module) {
  for (llvm::Function &function : module) {
    // A tensor map stays in the parameter space, where the copy engine reads it.
    for (llvm::Argument &argument : function.args())
      if (argument.hasByValAttr())
        argument.addAttr(llvm::Attribute::get(module.getContext(), "nvvm.grid_constant"));
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->isInlineAsm())
        markAssembly(*call);
  }
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  // Loops keep the shape that the lowering gave them: an unrolled body moves products across their waits and costs
  // registers.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cycles;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cycles);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cycles, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

std::unique_ptr<llvm::Module> emitLlvm(mlir::ModuleOp module, const Target &target, llvm::LLVMContext &context) {
  std::unique_ptr<llvm::Module> result = mlir::translateModuleToLLVMIR(module, context);
  if (!result)
    return nullptr;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target);
  result->setTargetTriple(machine->getTargetTriple());
  result->setDataLayout(machine->createDataLayout());
  markModule(*result);
  optimise(*result, *machine);
  return result;
}

std::string printLlvm(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

std::string emitPtx(std::unique_ptr<llvm::Module> module, const Target &target) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  [[maybe_unused]] bool unsupported =
      machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  assert(!unsupported && "NVPTX prints assembly");
  passes.run(*module);
  return commentLines(text.str());
}

} // namespace gdnc
