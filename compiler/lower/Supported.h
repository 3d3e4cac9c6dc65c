// What tile can say and the lowering to sm_90a has no instructions or no layout for.
#pragma once
#include "dialects/tile/Tile.h"

namespace tile {

// Refuses such an op of a role of `warps` warps; `perWarp`: inside tile.per_warp. What remains, the lowering takes for
// granted.
mlir::LogicalResult checkSupported(mlir::Operation &op, int64_t warps, bool perWarp);

} // namespace tile
