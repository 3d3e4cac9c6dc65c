// Templates in CUDA C++: the planner.
#include "compiler/driver/CompileCuda.h"
#include "compiler/backend/Nvrtc.h"
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
namespace fs = std::filesystem;
using gdn::KernelParam;

namespace gdnc {
namespace {

// Of gdn_plan, in its order.
std::vector<KernelParam> planParameters() {
  using Kind = KernelParam::Kind;
  std::vector<KernelParam> params;
  auto add = [&](Kind kind, std::initializer_list<const char *> names, uint8_t axis = 0) {
    for (const char *name : names)
      params.push_back({kind, name, axis});
  };
  add(Kind::Batch, {"cu_seqlens", "cu_wide", "sequences", "length", "tokens", "heads"});
  add(Kind::Pointer, {"g_in"});
  add(Kind::Stride, {"g_in"}, 0);
  add(Kind::Stride, {"g_in"}, 1);
  add(Kind::Element, {"g_in"});
  for (const char *name : {"A_log", "dt_bias"}) {
    add(Kind::Pointer, {name});
    add(Kind::Element, {name});
  }
  add(Kind::Scalar, {"options"});
  add(Kind::Batch, {"work", "blocks", "key_dim", "value_dim", "columns", "plan_flags"});
  return params;
}

// Macros from parameters: full=3930 is GDN_FULL.
std::vector<std::string> optionsOf(const CompileRequest &request) {
  fs::path folder = fs::path(request.templateFile).parent_path();
  std::vector<std::string> options = {"--ftz=true", "--include-path=" + folder.string(),
                                      "--include-path=" + (folder.parent_path() / "runtime").string()};
  for (const auto &[name, value] : request.values) {
    std::string macro;
    for (char c : name)
      macro += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    options.push_back("-DGDN_" + macro + "=" + value);
  }
  return options;
}

// Of `.maxntid 512, 1, 1`.
uint32_t threadsOf(const std::string &ptx) {
  uint32_t threads = 0;
  if (size_t at = ptx.find(".maxntid"); at != ptx.npos)
    std::sscanf(ptx.c_str() + at, ".maxntid %u", &threads);
  return threads;
}

} // namespace

bool isCuda(const CompileRequest &request) { return fs::path(request.templateFile).extension() == ".cu"; }

CompileResult compileCuda(const CompileRequest &request, Phase phase, const Target &target) {
  CompileResult result;
  std::string name = fs::path(request.templateFile).filename().string();
  auto take = [&](const Assembly &assembly) {
    result.ok = assembly.ok;
    result.environmentError = assembly.environmentError;
    result.diagnostics += assembly.error;
    return assembly.ok;
  };
  if (phase < Phase::Ptx) {
    result.diagnostics = name + ": error: expected phase ptx, cubin or sass of CUDA C++, got an earlier one\n";
    return result;
  }
  std::stringstream source;
  source << std::ifstream(request.templateFile).rdbuf();
  Assembly ptx = compileCuda(source.str(), name, optionsOf(request), target);
  if (!take(ptx))
    return result;
  gdn::Kernel &kernel = result.kernel;
  kernel.entry = "gdn_plan";
  kernel.params = planParameters();
  kernel.ptx = result.text = ptx.output;
  kernel.threads = threadsOf(kernel.ptx);
  if (phase == Phase::Ptx)
    return result;
  Assembly cubin = assemble(kernel.ptx, kernel.entry, name, target, true); // with any GPU's costs
  result.report = cubin.report;
  kernel.registers = cubin.report.registers;
  kernel.cubin = result.text = cubin.output;
  if (take(cubin) && phase == Phase::Sass) {
    Assembly sass = disassemble(kernel.cubin);
    result.text = sass.output;
    take(sass);
  }
  return result;
}

} // namespace gdnc
