// The tile phase as one pipeline.
#include "compiler/tile/Pipeline.h"
#include "compiler/tile/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
using namespace mlir;

void tile::buildTilePipeline(OpPassManager &pm, const PipelineOptions &options) {
  InstantiatePassOptions instantiate;
  llvm::append_range(instantiate.values, options.values);
  pm.addPass(createInstantiatePass(instantiate));
  pm.addPass(createRotatePass());
  pm.addPass(createCheckProgressPass());
  pm.addPass(createNumberWaitsPass());
  pm.addPass(createAssignLayoutsPass());
  pm.addPass(createPlaceRolesPass({options.registers}));
  pm.addPass(createPlanMemoryPass({options.shared}));
  pm.addPass(createPlaceReleasesPass());
  pm.addPass(createInsertFencesPass());
}

namespace {
struct TileOptions : PassPipelineOptions<TileOptions> {
  ListOption<std::string> values{*this, "values", llvm::cl::desc("name=value of the template's parameters")};
  Option<int64_t> registers{*this, "registers", llvm::cl::desc("registers of an SM"), llvm::cl::init(65536)};
  Option<int64_t> shared{*this, "shared", llvm::cl::desc("shared memory of a block, bytes"), llvm::cl::init(232448)};
};
} // namespace

void tile::registerTilePipeline() {
  registerTilePasses();
  PassPipelineRegistration<TileOptions>("tile-pipeline", "the whole tile phase",
                                        [](OpPassManager &pm, const TileOptions &o) {
                                          PipelineOptions options;
                                          options.values.assign(o.values.begin(), o.values.end());
                                          options.registers = o.registers;
                                          options.shared = o.shared;
                                          buildTilePipeline(pm, options);
                                        });
}
