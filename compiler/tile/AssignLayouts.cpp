// tile-assign-layouts: a [1, n] fragment lies either over the columns of the role's threads or over the lanes of one
// warp.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
bool isRow(Value v) {
  auto f = dyn_cast<FragType>(v.getType());
  return f && f.getDims().size() == 2 && f.dim(0) == 1 && f.dim(1) > 1;
}
bool isElementwise(Operation *op) {
  return isa<AddOp, SubFOp, MulOp, NegOp, Exp2Op, SigmoidOp, SoftplusOp, Log2Op, RsqrtOp, ScaleOp, AtLeastOp, PadOp,
             CumsumOp, LowerOp, WidenOp>(op);
}

struct AssignLayouts : tile::impl::AssignLayoutsPassBase<AssignLayouts> {
  llvm::EquivalenceClasses<void *> classes; // values that must be held alike

  void join(Value a, Value b) {
    if (isRow(a) && isRow(b))
      classes.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }
  void joinAll(ValueRange a, ValueRange b) {
    for (auto [x, y] : llvm::zip_equal(a, b))
      join(x, y);
  }
  void connect(Operation *op) {
    if (isElementwise(op)) {
      for (Value v : op->getOperands())
        for (Value w : op->getResults())
          join(v, w);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      joinAll(loop.getInits(), loop.getResults());
      joinAll(loop.getRegionIterArgs(), loop.getResults());
      joinAll(loop.getYieldedValues(), loop.getResults());
    } else if (isa<OneWarpOp>(op) && op->getNumResults()) {
      joinAll(op->getRegion(0).front().getTerminator()->getOperands(), op->getResults());
    } else if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch.getNumResults()) {
      joinAll(branch.thenYield().getOperands(), branch.getResults());
      joinAll(branch.elseYield().getOperands(), branch.getResults());
    }
  }

  LogicalResult assign(RoleOp role) {
    // A constant is held as each of its users needs it.
    SmallVector<FillOp> fills;
    role.walk([&](FillOp f) { fills.push_back(f); });
    llvm::erase_if(fills, [](FillOp f) { return f->use_empty(); });
    for (FillOp f : fills)
      for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(f->getUses()))) {
        OpBuilder b(use.getOwner());
        use.set(b.clone(*f)->getResult(0));
      }
    role.walk([&](Operation *op) { connect(op); });
    DenseMap<void *, LoadOp> lanes; // leader of a class to the load that spreads it over lanes
    role.walk([&](LoadOp load) {
      if (isRow(load.getFrag()))
        lanes.try_emplace(leader(load.getFrag()), load);
    });
    WalkResult r = role.walk([&](Operation *op) {
      if (isElementwise(op))
        for (Value v : op->getOperands())
          if (isRow(v) && lanes.contains(leader(v)) && !isRow(op->getResult(0))) {
            auto d = op->emitOpError(
                "needs a row over the columns of its threads, which is spread over the lanes of a warp");
            d.attachNote(lanes[leader(v)].getLoc()) << "loaded here";
            return WalkResult::interrupt();
          }
      return WalkResult::advance();
    });
    if (r.wasInterrupted())
      return failure();
    auto spread = [&](Value v) {
      if (!isRow(v) || !lanes.contains(leader(v)))
        return;
      auto f = cast<FragType>(v.getType());
      v.setType(FragType::get(f.getContext(), f.getDims(), f.getElement(), true));
    };
    role.walk([&](Operation *op) {
      llvm::for_each(op->getResults(), spread);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), spread);
    });
    return success();
  }
  void *leader(Value v) { return classes.getOrInsertLeaderValue(v.getAsOpaquePointer()); }

  void runOnOperation() override {
    WalkResult r = getOperation().walk([&](RoleOp role) { return WalkResult(assign(role)); });
    if (r.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
