// Times the forward on one set of lengths.
#pragma once
#include "tests/device/call.h"
#include "tests/reference/generate.h"
#include "tools/bench/calibrate.h"

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

struct Measurement {
  double milliseconds = 0; // median of the replays
  double fastest = 0, slowest = 0;
  double microsecondsPerChunk = 0; // of one SM, as if the work were spread evenly
  uint32_t split = 0;              // 0: as the runtime picked, which it does not tell
  std::optional<Clocks> clocks;    // none if the bundle has no profile variant
  std::optional<double> outputError, stateError;
};

// One case on the GPU.
class Session {
public:
  // Throws gpu::Error where the driver has no graphs, as the emulator's.
  Session(const Setup &setup, const Case &c);

  // Milliseconds of `count` replays of the call's graph, the L2 overwritten before each.
  std::vector<float> replay(int count);
  // The same of one, with the variant that writes stamps, and its stamps. Throws where there is no such variant.
  float replayStamped(std::vector<Block> &stamps);
  // Microseconds that each of `count` calls keeps the host, without a graph, the GPU idle as they begin.
  double hostTime(int count);
  void compareHeads(Measurement &result); // with the reference

private:
  std::vector<float> replay(const gpu::Graph &graph, int count);

  const Setup &setup;
  const reference::Problem problem;
  device::Call call;
  gpu::Memory flush;
};

bool hasProfile(const Setup &setup, const Case &c);
Measurement measure(const Setup &setup, const Case &c);

// A call's time by kernels, in ms, and what the profile variant stamped.
struct Profile {
  double total; // of a replay
  double start; // of the graph and the kernel, and what follows its last block: that of the same call without a plan
  double plan;
  double main; // from the first block's first piece to the last one's end
  std::vector<Block> blocks;
};
Profile profile(const Setup &setup, const Case &c);

// Microseconds that a call keeps the host: the median of so many times 20 as `setup` has repetitions.
double hostTime(const Setup &setup, const Case &c);

// The sequence whose pieces are Round::chains: tokens and flags. With GDN_CUT_INVARIANT it is cut every 2,048 tokens:
// into a root, `middle` makers of N and as many of M, hops of two times 64 rows over them, and middle + 1 dependents.
constexpr int64_t chainTokens(int middle) { return (middle + 2) * 2048ll; }
constexpr uint32_t chainCuts = GDN_CUT_EXACT | GDN_CUT_INVARIANT;

// What costsOf takes, with the kernel for K = V = 128 of `setup`.
std::vector<Round> measureRounds(const Setup &setup, int rounds);

} // namespace gdn::bench
