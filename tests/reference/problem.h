// One call of the operator in plain memory: what the references read and what they return.
#pragma once
#include "runtime/format/kernel.h"
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gdn::reference {

struct Problem {
  uint32_t keyHeads = 1, valueHeads = 1; // valueHeads is a multiple of keyHeads
  uint32_t keyDim = 128, valueDim = 128;
  std::vector<int64_t> offsets = {0}; // sequences + 1 ascending token indices
  int64_t tokens = 0;                 // rows of the token axis; those from offsets.back() on are the padded tail
  ElementType io = ElementType::BF16; // what q, k, v hold exactly, and what the output is rounded to
  float scale = 0;
  std::vector<float> q, k;    // [tokens, keyHeads, keyDim]
  std::vector<float> v;       // [tokens, valueHeads, valueDim]
  std::vector<float> g, beta; // [tokens, valueHeads]
  std::vector<float> state;   // [sequences, valueHeads, keyDim, valueDim]; empty: zeros
  // What g and beta hold instead of log decays and write strengths.
  bool gateIsDecay = false;        // g is the decay itself
  std::vector<float> aLog, dtBias; // [valueHeads]: log decay = -exp(aLog) softplus(g + dtBias); empty: as it is, 0
  bool betaLogits = false, betaDoubled = false;
  bool normalise = false; // rows of q and k are divided by sqrt(sum of squares + 1e-6)
  // Checkpoints: the states after every so many tokens, or before them; 0: none.
  int64_t every = 0;
  bool before = false;

  size_t sequences() const { return offsets.size() - 1; }
  size_t stateSize() const { return size_t(keyDim) * valueDim; }
  uint32_t keyHead(uint32_t valueHead) const { return valueHead / (valueHeads / keyHeads); }

  // Of element `at` of g and beta.
  double logDecay(size_t at) const;
  double strength(size_t at) const;
  // By what a row [keyDim] of q or k is divided.
  double norm(const std::vector<float> &rows, size_t token, uint32_t keyHead) const;

  // The first row of each sequence's checkpoints, and the number of all.
  std::vector<size_t> checkpointRows() const;
  // Whether the state behind so many tokens is one, of a sequence that is long enough.
  bool isCheckpoint(int64_t tokens) const { return every && tokens % every == 0 && (before || tokens > 0); }

  // The same call for some value heads, whole groups of a key head or one, and their key heads alone.
  Problem someHeads(uint32_t first, uint32_t count) const;
  Problem oneHead(uint32_t valueHead) const { return someHeads(valueHead, 1); }
  // For one sequence alone.
  Problem oneSequence(size_t sequence) const;
};

struct Result {
  std::vector<double> output;      // [tokens, valueHeads, valueDim]; zero in the padded tail
  std::vector<double> state;       // [sequences, valueHeads, keyDim, valueDim]
  std::vector<double> checkpoints; // [rows, valueHeads, keyDim, valueDim], those of a sequence in order

  Result() = default;
  explicit Result(const Problem &problem); // zeros
};

// The specification: token by token in fp64.
Result recurrence(const Problem &problem);

// Where a chunkwise evaluation rounds. Everything between is fp64.
struct Rounding {
  enum class Precision { F64, F32, BF16, F16 };
  Precision accumulator = Precision::F64; // what leaves a product or sits in a register: G, D, S, ...
  Precision operand = Precision::F64;     // S, U and P as operands; the output
  Precision chain = Precision::F64;       // T and W
  Precision merge = Precision::F64;       // the operands of the block inverse
  Precision coupling = Precision::F64;    // of these, A between diagonal tiles
  double floor = -100;                    // log2 below which a chunk's decay stays a gate on the products
  bool lateDecay = true;                  // U enters the state with what the floor left out

  static Rounding exact() { return {}; }
  // As the forward kernel computes; `chain` is the template's element type of T and W.
  static Rounding kernel(ElementType io, ElementType chain);
};

// Chunk by chunk of 64 tokens, with the gates kept out of the products.
Result chunkwise(const Problem &problem, const Rounding &rounding);

} // namespace gdn::reference
