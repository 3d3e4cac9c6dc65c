// CUDA C++ to PTX, with the toolkit's NVRTC.
#pragma once
#include "compiler/backend/Assemble.h"

namespace gdnc {

// The PTX of one source file, for what the target is: as the PTX version that all its kernels have, whatever NVRTC
// writes, so that its oldest ptxas takes it. `options` are NVRTC's.
Assembly compileCuda(const std::string &source, const std::string &name, const std::vector<std::string> &options,
                     const Target &target);

} // namespace gdnc
