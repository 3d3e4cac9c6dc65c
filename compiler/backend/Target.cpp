#include "compiler/backend/Target.h"

namespace gdnc {

static constexpr Target table[] = {
    {"sm_90a", {8, 6}, {12, 8}, MatrixUnit::Wgmma, 227 << 10, 1 << 16, 16, true},
    {"sm_100a", {8, 6}, {12, 8}, MatrixUnit::Tcgen05, 227 << 10, 1 << 16, 16, false},
    {"sm_103a", {8, 8}, {12, 9}, MatrixUnit::Tcgen05, 227 << 10, 1 << 16, 16, false},
    {"sm_120a", {8, 7}, {12, 8}, MatrixUnit::MmaSync, 99 << 10, 1 << 16, 16, false},
    {"sm_121a", {8, 8}, {12, 9}, MatrixUnit::MmaSync, 99 << 10, 1 << 16, 16, false},
};

std::span<const Target> targets() { return table; }

const Target *findTarget(std::string_view arch) {
  for (const Target &target : table)
    if (target.arch == arch)
      return &target;
  return nullptr;
}

std::string servedTargetNames() {
  std::string names;
  for (const Target &target : table)
    if (target.served)
      names += (names.empty() ? "" : ", ") + std::string(target.arch);
  return names;
}

} // namespace gdnc
