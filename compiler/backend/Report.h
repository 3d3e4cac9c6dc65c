// What ptxas said of a kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace gdnc {

struct Report {
  uint32_t registers = 0, spillBytes = 0, stackBytes = 0;
  std::vector<std::string> advisories; // C75xx lines
  std::string log;                     // all it printed
  std::string command;                 // that reproduces it
  std::string ptxasVersion;            // "13.0.88"
};

} // namespace gdnc
