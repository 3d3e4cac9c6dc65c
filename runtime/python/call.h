// One call of gdn_forward from torch, however its tensors come here.
#pragma once
#include <cstdint>

namespace gdn::python {

struct Device {
  enum Kind : uint8_t { Cpu, Cuda, Other } kind = Other;
  int32_t index = 0;
  bool operator==(const Device &) const = default;
};

// A tensor that lives as long as the call. Without one, rank is -1.
struct View {
  void *data = nullptr;
  const int64_t *sizes = nullptr, *strides = nullptr; // strides in elements
  int32_t rank = -1;
  int32_t dtype = -1; // gdn_dtype; -1 for another
  Device device{};

  explicit operator bool() const { return rank >= 0; }
};

struct Operands {
  View q, k, v, g, beta, o, initialState, finalState, offsets, aLog, dtBias, readIndices, writeIndices, checkpoints,
      checkpointStarts;
  double scale = 0;
  bool stateVFirst = false;
  int64_t split = 0, flags = 0, checkpointEvery = 0;
};

// Checks that the kernel stays within the tensors, and enqueues it on the current stream of q's device. Throws
// std::runtime_error.
void forward(const Operands &operands);
// Throws what forward would, and enqueues nothing.
void check(const Operands &operands);

} // namespace gdn::python
