// Test inputs: a recipe names what is special about them, a seed makes the rest.
#pragma once
#include "tests/reference/problem.h"
#include <cmath>
#include <string>

namespace gdn::reference {

struct Recipe {
  uint32_t keyHeads = 1, valueHeads = 1, keyDim = 128, valueDim = 128;
  std::vector<int64_t> lengths;
  int64_t tail = 0; // rows behind the last sequence
  ElementType io = ElementType::BF16;
  float scale = NAN; // NAN: keyDim^-0.5

  // Keys have this scalar product with each other, in units of keyNorm^2; 1 makes all keys of a head equal.
  float correlation = 0;
  float keyNorm = 1, queryNorm = 1;
  float normSpread = 0;   // each row's norm is multiplied by 2 to a uniform power in [-normSpread, normSpread]
  bool normalise = false; // the call is to do that
  bool oneHot = false;
  uint32_t zeroRowEvery = 0; // every so many tokens q or k is a zero row, in turn

  enum class Gates {
    Mix,       // logsigmoid(normal) / 16, and 0 on every fourth head
    Decay,     // logsigmoid(normal) / 16 on every head
    Constant,  // `gate`
    Chunk,     // `gate` a chunk of 64, and 0 on every fourth head
    Softplus,  // -gate * softplus(normal)
    ZeroRuns,  // Softplus, but exactly 0 for 5 tokens in 8
    LastToken, // 0 but for the last token of each sequence, which has `gate`
  } gates = Gates::Mix;
  float gate = 0;
  ElementType gateType = ElementType::F32; // g and beta hold values of it
  enum class GateForm {
    Log,   // g is the log decay
    Decay, // its exponential
    Raw,   // center + spread normal; decays by `rate` (and by 2 rate on every other head), with a bias where `biased`
  } gateForm = GateForm::Log;
  float center = 0, spread = 1, rate = 1;
  bool biased = false;

  enum class Beta {
    Sigmoid,   // sigmoid(normal)
    Constant,  // `strength`
    Alternate, // 0, strength, 0, ...
    Uniform,   // in [0, strength]
    Saturated, // sigmoid(+-20)
  } beta = Beta::Sigmoid;
  float strength = 1;
  bool logits = false; // beta holds them: of Sigmoid and Saturated their argument, else the values as they are
  bool doubled = false;

  float valueScale = 1; // standard deviation of v; 0 makes it exactly zero
  bool hasState = true;
  float stateScale = 1;
  ElementType stateType = ElementType::F32; // the initial state holds values of it
  int64_t every = 0;                        // tokens from one checkpoint to the next; 0: none
  bool before = false;                      // they are states before tokens

  // Where the fixed error bounds hold: writes never overshoot and keys are not nearly parallel.
  bool benign() const;
};

Problem generate(const Recipe &recipe, uint64_t seed);

// Independent normal values, rounded to `type`.
std::vector<float> normals(size_t count, float deviation, ElementType type, uint64_t seed, uint64_t stream);

// Lengths of sequences: "4x8192", "1+7+2x63", or "mixed", the benchmark's uneven batch. Empty if `text` is none of
// these.
std::vector<int64_t> parseLengths(const std::string &text);

} // namespace gdn::reference
