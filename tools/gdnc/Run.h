// Runs the forward on the GPU, or on whatever driver GDN_DRIVER names, and compares it with the fp64 reference.
#pragma once
#include "compiler/config/Model.h"
#include <string>
#include <vector>

namespace gdnc {

struct RunResult {
  std::string io, state;
  uint32_t split = 0;
  double outputError = 0, stateError = 0; // relative, Frobenius norm
  bool accurate = false;                  // both within the bound of the element type
  double milliseconds = 0;                // of one launch
};

struct RunReport {
  std::string device;
  uint32_t tokens = 0;
  std::vector<RunResult> results;
};

// Every kernel of the bundle that writes no clock stamps, on one sequence of `tokens` and the heads of one rank. Throws
// Failure where there is no device or a call fails.
RunReport runForward(const std::string &bundle, const Model &rank, uint32_t tokens);

} // namespace gdnc
