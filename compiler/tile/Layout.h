// How buffers lie in shared memory. One place, for the passes that allocate and for those that address.
#pragma once
#include "dialects/tile/Tile.h"

namespace tile {
// A tile of 16-bit elements at least 64 columns wide: boxes of 64 columns, rows of 128 bytes, 128-byte swizzle; what
// the copy engine writes and products read. Columns are rounded up to whole boxes.
constexpr int64_t boxColumns = 64, rowBytes = 128;
inline bool isTile(BufType t) { return t.dim(0) > 1 && t.dim(1) >= boxColumns; }
inline int64_t boxes(BufType t) { return (t.dim(1) + boxColumns - 1) / boxColumns; }
inline int64_t boxBytes(BufType t) { return t.dim(0) * rowBytes; }

// A row of fp32 values, one a token: four strips, one for each thread of a quad, so that a thread finds the values of
// its accumulator columns (8j + 2q, 8j + 2q + 1) side by side; a strip is padded by 16 bytes against bank conflicts.
inline bool isRowBuffer(BufType t) { return t.dim(0) == 1; }
inline int64_t stripBytes(int64_t columns) { return columns + 16; }

// A block diagonal [n, 16] of fp16: a 16x16 block for each warp, rows of 32 bytes, halves swapped on every other four
// rows.
constexpr int64_t blockBytes = 512;
// What solve_blocks needs of a warp's scratch: two 8x8 fp32 blocks, transposed, columns 48 bytes apart and the second
// one four banks on; then the fp16 inverse.
constexpr int64_t solveColumn = 48, solveSecond = 400, solveInverse = 1024, solveBytes = solveInverse + blockBytes;

// Zeros for products that only prime an accumulator: one core matrix.
constexpr int64_t zeroBytes = 128;

// What a warp keeps of the item in work. What it needs once stays in the block's slot of the item (work::Drawn), of
// which there are two: one warp draws the next item while the others still work on this one.
enum RecordWord { Begin, End, Sequence, HeadK, HeadV, Column, Warm, From, FirstShared, ItemNumber };
constexpr int64_t recordBytes = 48, itemSlots = 2;

inline int64_t bufferBytes(BufType t) {
  if (isTile(t))
    return boxes(t) * boxBytes(t);
  return isRowBuffer(t) ? 4 * stripBytes(t.dim(1)) : t.dim(0) / 16 * blockBytes;
}
// Of a packed view, what the elements need: the last box of a tile may be wider.
inline int64_t copiedBytes(CopyInOp copy) {
  auto buf = cast<BufType>(copy.getBuf().getType());
  bool packed = cast<ViewType>(copy.getView().getType()).getPacked();
  return packed ? buf.dim(0) * buf.dim(1) * 2 : bufferBytes(buf);
}
// By the copies that stand in a block itself.
inline int64_t copiedBytes(mlir::Block &block) {
  int64_t sum = 0;
  for (CopyInOp copy : block.getOps<CopyInOp>())
    sum += copiedBytes(copy);
  return sum;
}
inline int64_t bufferAlignment(BufType t) { return isTile(t) ? 1024 : 16; }
} // namespace tile
