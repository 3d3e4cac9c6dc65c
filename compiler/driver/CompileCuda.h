// Templates in CUDA C++, which NVRTC compiles.
#pragma once
#include "compiler/backend/Target.h"
#include "compiler/driver/Compile.h"

namespace gdnc {

bool isCuda(const CompileRequest &request);

// As `compile`, from PTX on.
CompileResult compileCuda(const CompileRequest &request, Phase phase, const Target &target);

} // namespace gdnc
