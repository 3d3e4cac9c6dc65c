// Programs and libraries of the CUDA toolkit on this machine.
#pragma once
#include "compiler/backend/Target.h"
#include <optional>
#include <string>
#include <vector>

namespace gdnc {

struct Tool {
  std::string path;
  Version version;
  std::string versionText; // "13.0.88"
};

// What was found, or why it was not.
struct ToolSearch {
  std::optional<Tool> tool;
  std::string error;
};

// The first ptxas that is at least this old and new: $GDNC_PTXAS alone where set, else $CUDA_HOME/bin, PATH,
// /usr/local/cuda/bin and the wheels of a .venv beside or above this program.
ToolSearch findPtxas(Version atLeast);

// nvdisasm or cuobjdump, from the same places; $GDNC_NVDISASM alone where set.
ToolSearch findDisassembler();

// NVRTC 12 or 13, from the lib folders beside those places, else from where the loader looks; $GDNC_NVRTC alone where
// set.
ToolSearch findNvrtc();

} // namespace gdnc
