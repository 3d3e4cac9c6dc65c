// The parameters of an sm.kernel as the bundle records them.
#pragma once
#include "runtime/format/kernel.h"

namespace sm {
class KernelOp;
}

namespace gdnc {
std::vector<gdn::KernelParam> kernelParameters(sm::KernelOp kernel);
} // namespace gdnc
