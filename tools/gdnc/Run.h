// Runs the forward on the GPU, on whatever driver GDN_DRIVER names or on the emulator, and compares it with the fp64
// reference.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdnc {

struct RunResult {
  size_t kernel = 0;                      // its place in the bundle
  double outputError = 0, stateError = 0; // relative, Frobenius norm
  bool accurate = false;                  // both within the bound of the element type
  std::optional<double> milliseconds;     // of one launch on a GPU
  std::map<std::string, double> work;     // on the emulator: what the launch did, by name
};

struct RunReport {
  std::string device;
  uint32_t tokens = 0;
  std::vector<RunResult> results; // in the bundle's order
};

// From here on the process runs kernels on the emulator, whatever GDN_DRIVER says. Before anything was run.
void useEmulator();

// Every kernel of a bundle, given as its bytes, that writes no clock stamps, on one sequence of `tokens` with `heads`
// k-heads and `valueHeads` v-heads. Throws Failure where there is no device, where a call fails, and on the emulator
// where the bundle carries no PTX.
RunReport runForward(std::string_view bundle, uint32_t heads, uint32_t valueHeads, uint32_t tokens);

} // namespace gdnc
