// What the ELF header of a cubin says.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gdn {

struct CubinInfo {
  uint32_t abi = 0; // version of the CUDA ELF ABI
  uint32_t sm = 0;  // 90 for sm_90a
};

// Returns "" and fills `info`, or says what is wrong.
std::string readCubin(std::string_view image, CubinInfo &info);

// The CUDA version that a driver must have to load an image of this ABI, major * 1000 + minor * 10.
uint32_t minimumDriver(uint32_t abi);

// "sm_90a" -> 90; 0 if `arch` is not the name of an architecture.
uint32_t smNumber(std::string_view arch);

} // namespace gdn
