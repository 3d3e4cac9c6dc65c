#include "compiler/driver/Compile.h"
#include "compiler/backend/Assemble.h"
#include "compiler/backend/Emit.h"
#include "compiler/backend/Passes.h"
#include "compiler/driver/CompileCuda.h"
#include "compiler/driver/Dialects.h"
#include "compiler/driver/Parameters.h"
#include "compiler/tile/Pipeline.h"
#include "dialects/sm/Sm.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
using namespace mlir;

namespace gdnc {
namespace {

// One compilation: a context, the module in it, and what has been said about it.
class Compilation {
public:
  explicit Compilation(const CompileRequest &request)
      : request(request), stream(result.diagnostics), context(registry(), MLIRContext::Threading::DISABLED),
        handler(sources, &context, stream) {}

  CompileResult run(Phase phase);

private:
  static DialectRegistry registry() {
    DialectRegistry result;
    registerDialects(result);
    registerTranslations(result);
    return result;
  }

  bool fail(const std::string &message) {
    result.diagnostics += request.templateFile + ": error: " + message + "\n";
    return false;
  }
  bool parse();
  bool runPasses(llvm::function_ref<void(OpPassManager &)> build);
  bool lowerToSm(Phase phase);
  bool readKernel();
  bool lowerToPtx(Phase phase);
  bool assembleKernel(Phase phase);
  bool take(Assembly assembly);
  void print() { llvm::raw_string_ostream(result.text) << *module << '\n'; }
  std::string entryName() const;

  const CompileRequest &request;
  CompileResult result;
  llvm::raw_string_ostream stream;
  llvm::SourceMgr sources;
  MLIRContext context;
  SourceMgrDiagnosticHandler handler;
  const Target *target = nullptr;
  OwningOpRef<ModuleOp> module;
};

bool Compilation::parse() {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(request.templateFile, /*IsText=*/true);
  if (!buffer)
    return fail(buffer.getError().message());
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  return bool(module);
}

bool Compilation::runPasses(llvm::function_ref<void(OpPassManager &)> build) {
  PassManager manager(&context);
  build(manager);
  return succeeded(manager.run(*module));
}

// Passes on tile leave a module alone that is in sm already.
bool Compilation::lowerToSm(Phase phase) {
  tile::PipelineOptions options;
  for (const auto &[name, value] : request.values)
    options.values.push_back(name + "=" + value);
  options.registers = target->registers;
  options.shared = target->sharedBytes;
  if (!runPasses([&](OpPassManager &manager) { tile::buildTilePipeline(manager, options); }))
    return false;
  return phase == Phase::Tile || runPasses([](OpPassManager &manager) { buildSmPipeline(manager); });
}

// Letters, digits and underscores of the template's name, its parameters and the architecture.
std::string Compilation::entryName() const {
  std::string name = llvm::sys::path::stem(request.templateFile).str();
  for (const auto &[parameter, value] : request.values)
    name += "_" + parameter + value;
  name += "_" + request.arch;
  for (char &c : name)
    c = llvm::isAlnum(c) ? c : '_';
  return llvm::isAlpha(name[0]) ? name : "k" + name;
}

// What the bundle records of the kernel, and its name.
bool Compilation::readKernel() {
  auto kernels = llvm::to_vector(module->getOps<sm::KernelOp>());
  if (kernels.size() != 1)
    return fail("expected one kernel, got " + std::to_string(kernels.size()));
  sm::KernelOp op = kernels.front();
  if (op.getSharedBytes() > target->sharedBytes) {
    op.emitError("expected at most ") << target->sharedBytes << " bytes of shared memory on " << request.arch
                                      << ", got " << op.getSharedBytes();
    return false;
  }
  op.setSymName(request.entry.empty() ? entryName() : request.entry);
  gdn::Kernel &kernel = result.kernel;
  kernel.entry = op.getSymName().str();
  kernel.params = kernelParameters(op);
  kernel.threads = op.getThreads();
  kernel.sharedBytes = op.getSharedBytes();
  return true;
}

bool Compilation::lowerToPtx(Phase phase) {
  if (!runPasses([](OpPassManager &manager) { buildLlvmPipeline(manager); }))
    return false;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> lowered = emitLlvm(*module, *target, llvmContext);
  if (!lowered)
    return false;
  if (phase == Phase::Llvm)
    result.text = printLlvm(*lowered);
  else
    result.kernel.ptx = emitPtx(std::move(lowered), *target);
  return true;
}

bool Compilation::take(Assembly assembly) {
  result.environmentError |= assembly.environmentError;
  result.diagnostics += assembly.error;
  return assembly.ok;
}

bool Compilation::assembleKernel(Phase phase) {
  gdn::Kernel &kernel = result.kernel;
  Assembly assembly = assemble(kernel.ptx, kernel.entry, request.templateFile, *target);
  result.report = assembly.report;
  kernel.registers = result.report.registers;
  kernel.spillBytes = result.report.spillBytes;
  kernel.stackBytes = result.report.stackBytes;
  kernel.cubin = assembly.output;
  if (!take(assembly))
    return false;
  if (phase == Phase::Cubin) {
    result.text = kernel.cubin;
    return true;
  }
  Assembly disassembly = disassemble(kernel.cubin);
  result.text = disassembly.output;
  return take(disassembly);
}

CompileResult Compilation::run(Phase phase) {
  auto steps = [&] {
    target = findTarget(request.arch);
    if (!target || !target->served)
      return fail("expected an architecture out of " + servedTargetNames() + ", got '" + request.arch + "'");
    if (!parse() || !lowerToSm(phase))
      return false;
    if (phase == Phase::Tile || phase == Phase::Sm) {
      print();
      return true;
    }
    if (!readKernel() || !lowerToPtx(phase))
      return false;
    if (phase == Phase::Ptx)
      result.text = result.kernel.ptx;
    return phase == Phase::Llvm || phase == Phase::Ptx || assembleKernel(phase);
  };
  result.ok = steps();
  return std::move(result);
}

} // namespace

CompileResult compile(const CompileRequest &request, Phase phase) {
  const Target *target = findTarget(request.arch);
  if (isCuda(request) && target && target->served)
    return compileCuda(request, phase, *target);
  return Compilation(request).run(phase);
}

std::vector<std::string> servedArchs() {
  std::vector<std::string> names;
  for (const Target &target : targets())
    if (target.served)
      names.emplace_back(target.arch);
  return names;
}

} // namespace gdnc
