// Passes on the `tile` dialect, in the order in which the pipeline runs them.
#ifndef GDNC_TILE_PASSES_TD
#define GDNC_TILE_PASSES_TD
include "mlir/Pass/PassBase.td"

class TilePass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}
def InstantiatePass : TilePass<"tile-instantiate"> {
  let summary = "fix the parameters of every template: substitute, select, inline, check requirements";
  let options = [ListOption<"values", "values", "std::string", "name=value">];
}
def RotatePass : TilePass<"tile-rotate"> {
  let summary = "move deferred work to the next iteration's tile.resume, and to the loop's end for the last one";
  let description = [{
    What a loop carries from product to product is primed (tile.prime): it then comes out of a product on every path into the loop, without
    which ptxas waits for all products before it may be read or scaled (C7517).
  }];
}
def CheckProgressPass : TilePass<"tile-check-progress"> {
  let summary = "play the roles' puts, gets and releases against each other, for short and empty items, and report who waits for whom";
}
def NumberWaitsPass : TilePass<"tile-number-waits"> {
  let summary = "close products at loop back-edges and derive how many younger products each wait leaves in flight";
}
def AssignLayoutsPass : TilePass<"tile-assign-layouts"> {
  let summary = "decide which [1, n] fragments lie over the lanes of one warp, and report uses that do not fit";
}
def PlaceRolesPass : TilePass<"tile-place-roles"> {
  let summary = "warps to warpgroups, setmaxnreg, named barriers, the warp of one_warp; check registers, threads and barriers";
  let options = [Option<"registers", "registers", "int64_t", "65536", "registers of an SM">];
}
def PlanMemoryPass : TilePass<"tile-plan-memory"> {
  let summary = "offsets of rings, barriers and scratch in shared memory; check its size";
  let options = [Option<"shared", "shared", "int64_t", "232448", "shared memory of a block, bytes">];
}
def PlaceReleasesPass : TilePass<"tile-place-releases"> {
  let summary = "move each release behind the wait that retires the last product reading the slot; derive arrival counts and bytes";
}
def InsertFencesPass : TilePass<"tile-insert-fences"> {
  let summary = "async-proxy fences where generic writes are read by products or bulk copies; barriers between warps around scratch";
}
#endif
