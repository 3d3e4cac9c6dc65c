// What the parts of a forward cost on a GPU, from stamps of calls that take them apart: coefs/<gpu>.csv.
#pragma once
#include "tools/bench/stamps.h"
#include <string>

namespace gdn::bench {

// Stamps of one round, of
//   longPieces, shortPieces  two batches of whole sequences, more than there are blocks, longer and shorter ones
//   chains                   calls of one sequence of one head, each piece on a block of its own: a root, makers of N
//   and
//                            M, hops over all of them, and dependents
struct Round {
  std::vector<Block> longPieces, shortPieces;
  std::vector<std::vector<Block>> chains;
  double plan = 0; // clocks of the planning kernel, beside the launch that a call without a plan has, too
};

struct Cost {
  const char *name, *meaning;
  double clocks = 0; // median of the rounds
  double spread = 0; // between the highest and the lowest, in parts of it
};

// Throws gpu::Error where the stamps do not hold what is to be measured.
std::vector<Cost> costsOf(const std::vector<Round> &rounds);

// Of the costs that spread by more than the limit, the one that does most; null: none does.
const Cost *noisiest(const std::vector<Cost> &costs, double limit);

// The text of coefs/<gpu>.csv.
std::string costsFile(const std::vector<Cost> &costs, const std::string &gpu, const std::string &date, size_t rounds);

} // namespace gdn::bench
