// Runs passes and pipelines on IR, for tests and for looking at one phase. With --emit=PHASE it runs the compiler's own
// driver up to that phase on IR of any earlier one.
#include "compiler/backend/Passes.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Dialects.h"
#include "compiler/lower/Lower.h"
#include "compiler/tile/Pipeline.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using gdnc::Phase;

static llvm::cl::opt<Phase> emitPhase(
    "emit", llvm::cl::desc("compile up to this phase and print it"),
    llvm::cl::values(clEnumValN(Phase::Tile, "tile", "tile dialect, every barrier, count and offset decided"),
                     clEnumValN(Phase::Sm, "sm", "sm dialect"), clEnumValN(Phase::Llvm, "llvm", "optimised LLVM IR"),
                     clEnumValN(Phase::Ptx, "ptx", "PTX"), clEnumValN(Phase::Cubin, "cubin", "ELF image"),
                     clEnumValN(Phase::Sass, "sass", "disassembled image")));
static llvm::cl::opt<std::string> arch("arch", llvm::cl::desc("architecture, with --emit"), llvm::cl::init("sm_90a"));
static llvm::cl::opt<std::string> entry("entry", llvm::cl::desc("name of the PTX entry, with --emit"));
static llvm::cl::list<std::string> values("set", llvm::cl::desc("a template parameter, name=value, with --emit"));

// Exit codes as those of gdnc: 0 ok, 1 compile error, 2 usage, 3 environment.
static int emit(const std::string &input, llvm::raw_ostream &output) {
  gdnc::CompileRequest request;
  request.templateFile = input;
  request.arch = arch;
  request.entry = entry;
  for (const std::string &value : values) {
    size_t equals = value.find('=');
    if (equals == std::string::npos) {
      llvm::errs() << "error: expected name=value, got '" << value << "'\n";
      return 2;
    }
    request.values[value.substr(0, equals)] = value.substr(equals + 1);
  }
  gdnc::CompileResult result = gdnc::compile(request, emitPhase);
  llvm::errs() << result.diagnostics;
  output << result.text;
  return result.ok ? 0 : result.environmentError ? 3 : 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::registerTransformsPasses();
  gdnc::registerBackendPasses();
  tile::registerTilePipeline();
  tile::registerLowerPasses();
  mlir::DialectRegistry registry;
  gdnc::registerDialects(registry);
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, "passes and phases of the kernel compiler", registry);
  if (emitPhase.getNumOccurrences()) {
    std::error_code code;
    llvm::ToolOutputFile file(output, code, llvm::sys::fs::OF_None);
    if (code) {
      llvm::errs() << "error: " << output << ": " << code.message() << "\n";
      return 3;
    }
    int status = emit(input, file.os());
    if (status == 0)
      file.keep();
    return status;
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
}
