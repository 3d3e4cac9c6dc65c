// From the tile dialect to the instructions of one architecture.
#pragma once
#include <memory>

namespace mlir {
class Pass;
}

namespace tile {
// convert-tile-to-sm: kernels after the tile pipeline become sm.kernel ops with wgmma products (sm_90a).
std::unique_ptr<mlir::Pass> createConvertTileToSmPass();
void registerLowerPasses();
} // namespace tile
