// What the compiler knows of each architecture. Differences between architectures are here and in the tile-to-sm
// lowering.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gdnc {

enum class MatrixUnit { Wgmma, Tcgen05, MmaSync };

struct Version {
  unsigned major = 0, minor = 0;
  auto operator<=>(const Version &) const = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

struct Target {
  std::string_view arch; // as ptxas and LLVM name it
  Version ptx;           // the lowest that has what the architecture's kernels use
  Version ptxas;         // the oldest toolkit whose ptxas assembles that PTX version for the architecture
  MatrixUnit unit;
  uint32_t sharedBytes;   // dynamic shared memory that a block may have
  uint32_t registers;     // of an SM, which one block may have
  uint32_t namedBarriers; // of a block
  bool served;            // a template of this build lowers to it
};

// All targets, in a fixed order.
std::span<const Target> targets();

// The target of this name, or null.
const Target *findTarget(std::string_view arch);

// Names of the targets served, "sm_90a, ...", for messages.
std::string servedTargetNames();

} // namespace gdnc
