// Times the forward on one set of lengths.
#pragma once
#include "tests/device/call.h"
#include "tests/reference/generate.h"
#include <optional>

namespace gdn::bench {

struct Case {
  uint32_t keyHeads, valueHeads, keyDim, valueDim;
  ElementType io;
  std::string label; // "4x8192"
  std::vector<int64_t> lengths;
  bool allDecay;                            // else every fourth head has no decay
  bool normalise = false, rawGates = false; // the kernel normalises q and k; it is given gates' inputs and logits

  int64_t chunks() const; // of 64 tokens, over all heads
  // Clocks that the tensor cores of an SM need for a chunk, where `split` blocks share a head's V.
  double floor(uint32_t split) const;
};

struct Setup {
  const gpu::Gpu &gpu;
  const gpu::Bundle &bundle;
  uint32_t split; // 0: as the runtime picks
  uint32_t cuts;  // bits of gdn_forward_args::flags
  bool valueFirst;
  int repetitions;
  int errorHeads; // value heads that are compared with the reference; 0: none
  uint64_t seed;
};

// From the clock stamps of the profile variant, medians over the blocks.
struct Clocks {
  double perChunk, megahertz;
};

struct Measurement {
  double milliseconds = 0; // median of the replays
  double fastest = 0, slowest = 0;
  double microsecondsPerChunk = 0; // of one SM, as if the work were spread evenly
  uint32_t split = 0;              // 0: as the runtime picked, which it does not tell
  std::optional<Clocks> clocks;    // none if the bundle has no profile variant
  std::optional<double> outputError, stateError;
};

Measurement measure(const Setup &setup, const Case &c);

} // namespace gdn::bench
