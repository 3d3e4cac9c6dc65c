// What is recorded of a device, to be compared with another record: results of single instructions, and of the forward.
#pragma once
#include "tests/device/call.h"
#include <functional>
#include <map>
#include <string_view>

namespace gdn::device {

struct Section {
  ElementType type; // of the elements in `bytes`
  // How far a device may be from the emulator. In units in the last place; 0: the same bits, but for those of a NaN.
  uint32_t ulps = 0;
  double absolute = 0; // where this is more
  uint64_t inputs = 0; // a hash: records of other inputs, as another libm makes them, cannot be compared
  std::vector<std::byte> bytes;
  uint64_t hash = 0; // of the bytes: all that a digest keeps of them
};
using Record = std::map<std::string, Section>; // by instruction and inputs, or kernel and inputs

// The same inputs every time. Throws gpu::Error.
Record recordInstructions(const gpu::Gpu &gpu);
Record recordForward(const gpu::Gpu &gpu, const gpu::Bundle &bundle);

template <typename T> uint64_t hashed(const std::vector<T> &values, uint64_t seed = 0) {
  std::string_view bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  return seed * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(bytes);
}

void save(const Record &record, const std::string &path);
Record digest(Record record); // of the sections that must have the same bits
Record load(const std::string &path);

// Prints a line for each section of `device`; false where one is not within its bounds or is missing from `emulator`.
bool compare(const Record &device, const Record &emulator);

} // namespace gdn::device
