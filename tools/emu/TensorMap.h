// Copies of boxes between a tensor in global memory and a tile in shared memory.
#pragma once
#include "Machine.h"

namespace gdn::emu {

// What 16-byte pieces of a tile lie where: swizzle modes exchange bits 4..6 of an address with bits 7..9.
constexpr uint32_t swizzled(uint32_t address, unsigned mode) { // mode as in CUtensorMapSwizzle
  return address ^ ((address >> 7 & ((1u << mode) - 1)) << 4);
}

uint32_t boxBytes(const TensorMap &map);
TensorMap readTensorMap(const Warp &w, const uint8_t *p);

// Calls f(row's address in global memory or 0 where it is outside, offset in the tile, bytes inside, bytes of the row)
// for each row of the box at `at`. A row that begins before the tensor is given piece by piece.
struct BoxRow {
  uint64_t global; // of its first inside element
  uint32_t tile;   // offset of the row in the tile
  uint32_t skip;   // bytes of the row before the first inside element
  uint32_t inside; // bytes inside
  uint32_t bytes;  // of the row
};
std::vector<BoxRow> rowsOf(const TensorMap &map, const int32_t *at);

} // namespace gdn::emu
