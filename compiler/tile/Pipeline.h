// The tile phase: from a template with parameters to a kernel in which every barrier, count and offset is decided.
#pragma once
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
}

namespace tile {
struct PipelineOptions {
  std::vector<std::string> values; // "name=value" for the template's parameters
  int64_t registers = 65536;       // of an SM
  int64_t shared = 232448;         // bytes of a block
};
void buildTilePipeline(mlir::OpPassManager &pm, const PipelineOptions &options);
// Registers the passes and the pipeline `tile-pipeline`.
void registerTilePipeline();
} // namespace tile
