// tile-number-waits: how many younger products a wait leaves in flight follows from program order.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_NUMBERWAITSPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
struct NumberWaits : tile::impl::NumberWaitsPassBase<NumberWaits> {
  static MmaOp issuer(Value pending) {
    if (auto turn = pending.getDefiningOp<TurnOp>())
      pending = turn.getBody().front().getTerminator()->getOperand(cast<OpResult>(pending).getResultNumber());
    return pending.getDefiningOp<MmaOp>();
  }
  static void number(WaitOp wait, SmallVector<MmaOp> &inFlight) {
    auto it = llvm::find(inFlight, issuer(wait.getPending()));
    OpBuilder b(wait);
    if (it == inFlight.end()) {
      wait->setAttr("done", b.getUnitAttr()); // retired by an earlier wait or by the loop's drain
      return;
    }
    wait->setAttr("leaves", b.getI64IntegerAttr(std::distance(it, inFlight.end()) - 1));
    inFlight.erase(inFlight.begin(), it + 1);
  }
  static Value drain(OpBuilder &b, Value pending, SmallVector<MmaOp> &inFlight) {
    auto wait = WaitOp::create(b, pending.getLoc(), pending);
    number(wait, inFlight);
    return ReadyOp::create(b, pending.getLoc(), wait.getValue());
  }
  // Products retire in issue order, so a wait leaves in flight exactly the products issued after the one it names.
  LogicalResult number(Block &block, SmallVector<MmaOp> &inFlight) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      // Accumulators in tensor memory are ordered by their ring, not by waits.
      if (auto mma = dyn_cast<MmaOp>(op); mma && !mma.behind() && isa<FragType>(mma.getD().getType().getValue()))
        inFlight.push_back(mma);
      if (auto wait = dyn_cast<WaitOp>(op))
        number(wait, inFlight);
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        // The same holds for what an iteration peeled off leaves to the loop.
        OpBuilder before(loop);
        for (OpOperand &o : loop.getInitArgsMutable())
          if (isa<PendingType>(o.get().getType()) && issuer(o.get()))
            o.set(drain(before, o.get(), inFlight));
        if (!inFlight.empty())
          return loop.emitOpError("entered with a product in flight").attachNote(inFlight[0].getLoc()) << "issued here";
        // ptxas serialises products in flight across a back-edge: close the ones the loop carries.
        auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
        OpBuilder b(yield);
        for (OpOperand &o : yield->getOpOperands())
          if (isa<PendingType>(o.get().getType()) && issuer(o.get())) {
            auto wait = WaitOp::create(b, o.get().getLoc(), o.get()); // numbered with the rest of the body
            o.set(ReadyOp::create(b, o.get().getLoc(), wait.getValue()));
          }
        SmallVector<MmaOp> inside;
        if (failed(number(*loop.getBody(), inside)))
          return failure();
        if (!inside.empty())
          return inside[0].emitOpError("is still in flight at the loop's back-edge and is not carried");
        continue;
      }
      for (Region &r : op.getRegions())
        for (Block &inner : r)
          if (failed(number(inner, inFlight)))
            return failure();
    }
    return success();
  }
  void runOnOperation() override {
    WalkResult r = getOperation().walk([&](RoleOp role) {
      SmallVector<MmaOp> inFlight;
      return WalkResult(number(role.getBody().front(), inFlight));
    });
    if (r.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
