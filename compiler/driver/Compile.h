// The compiler as a library: from a template to a kernel, or to the text of any phase on the way. Without MLIR in its
// interface, so that the command line and the tests stay light.
#pragma once
#include "compiler/backend/Report.h"
#include "runtime/format/kernel.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gdnc {

enum class Phase { Tile, Sm, Llvm, Ptx, Cubin, Sass };

struct CompileRequest {
  std::string templateFile;                  // path of the .mlir, or of a .cu
  std::map<std::string, std::string> values; // template parameters, e.g. K=128 V=128 io=bf16
  std::string arch = "sm_90a";
  std::string entry; // name of the PTX entry; empty: derived from template, parameters and arch
};

struct CompileResult {
  bool ok = false;
  bool environmentError = false; // ptxas missing or too old: exit code 3 instead of 1
  std::string diagnostics;       // errors and notes, with template locations
  std::string text;              // of the phase asked for; bytes of the ELF for Cubin
  gdn::Kernel kernel;            // filled for Cubin: params, threads, shared, cubin, ptx; key is set by the caller
  Report report;
};

// Runs the pipeline up to `phase`. Thread-safe: each call has its own context.
CompileResult compile(const CompileRequest &request, Phase phase);

// Architectures that a template in this build serves, in the order of the target table.
std::vector<std::string> servedArchs();

} // namespace gdnc
