// From what the user asks for to the kernels that a bundle gets.
#pragma once
#include "compiler/config/Model.h"
#include "compiler/config/Schedule.h"
#include "compiler/driver/Compile.h"
#include <filesystem>
#include <optional>

namespace gdnc {

struct BuildOptions {
  std::string config, model; // one of them, or
  bool all = false;          // all dimensions that are served
  uint32_t ranks = 1;
  std::vector<std::string> archs, dtypes{"bf16", "f16"}, states{"k-first", "v-first"};
  std::vector<uint32_t> splits;                // empty: all that are served
  std::vector<std::string> features{"l2norm"}; // also the variants with these, or "none"
  bool profile = false;                        // also the variants that write clock stamps
  bool withPtx = false;
  std::string costs; // file; empty: that of coefs/
  std::string output;
  unsigned jobs = 0;                          // 0: one a core
  uint32_t runTokens = 0, emulatorTokens = 0; // of the sequence that kernels are run on; 0: they are not
  bool json = false, noCache = false;
};

// One kernel to be compiled.
struct Variant {
  gdn::KernelKey key;
  CompileRequest request;
  std::string schedule; // "name=value name=value"
};

// "forward" and "plan", the templates that bundles are made from.
extern const char *const forwardTemplate, *const planTemplate;

// The file of costs that planners go by: the one that was given, or else that of the GPU that has been measured.
std::filesystem::path costsFile(const std::string &given = "");

// The planner's source and all that it includes, by the names that metadata gives them, sorted.
std::map<std::string, std::filesystem::path> plannerFiles();

// Rows of coefs/schedule.csv for architectures that the compiler has a target for.
std::vector<Schedule> servedSchedules();

// Of the whole model; none for all dimensions. Throws ConfigError or Failure.
std::optional<Model> selectModel(const BuildOptions &options);

std::vector<Variant> planBuild(const BuildOptions &options, const std::optional<Model> &model);

} // namespace gdnc
