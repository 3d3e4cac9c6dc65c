// Compiles the kernels of a plan, several at a time, and packs them.
#pragma once
#include "tools/gdnc/Plan.h"

namespace gdnc {

struct BuiltKernel {
  gdn::Kernel kernel;
  double seconds = 0;
  bool cached = false;
};

// In the order of the plan. Throws Failure with the diagnostics of the first kernel that fails.
std::vector<BuiltKernel> compileVariants(const std::vector<Variant> &variants, const BuildOptions &options);

// Canonical JSON: everything that decided the bundle; no times, hosts or paths.
std::string describeBuild(const BuildOptions &options, const std::optional<Model> &model,
                          const std::vector<BuiltKernel> &kernels);

} // namespace gdnc
