// What is tested: members of each kind of input.
#pragma once
#include "tests/device/call.h"
#include "tests/reference/generate.h"

namespace gdn::device {

// Dimensions and types that a bundle has kernels for on this device.
struct Config {
  uint32_t keyDim = 0, valueDim = 0;
  ElementType io = ElementType::BF16;
  ElementType chain = ElementType::BF16; // of T and W in the kernel
  std::vector<bool> layouts;             // valueFirst of each layout served
  std::vector<uint32_t> splits;
  bool normalises = false;  // there are kernels that normalise q and k
  bool checkpoints = false; // that store checkpoints
};

enum class Check {
  Numbers,   // against the fp64 reference
  Finite,    // no infinity or NaN where fp32 has none
  NoState,   // without an initial state: the same bits as with zeros
  Repeat,    // the same bits every time
  Update,    // offsets and data replaced in place between calls
  Graph,     // the same, between replays of one graph
  Apart,     // each sequence alone, and each half of the heads: the same bits as together
  Splits,    // against the reference with every number of blocks a head
  Cuts,      // no less exact than without cuts, by more than a fifth
  Reference, // the fp64 reference on the GPU against the one on the CPU
  Large,     // against the reference on the GPU
};

struct Member {
  std::string kind, name;
  reference::Recipe recipe;
  Storage storage;
  Check check = Check::Numbers;
  size_t turns = 0; // of Update and Graph; 0: as many as there are sequences

  int64_t chunks() const; // of 64 tokens, over all heads: what it costs
};

std::vector<Member> members(const Config &config);

} // namespace gdn::device
