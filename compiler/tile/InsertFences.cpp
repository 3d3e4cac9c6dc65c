// tile-insert-fences: what products and bulk copies read was written by the generic proxy; what other warps read, by
// this one.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_INSERTFENCESPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
struct InsertFences : tile::impl::InsertFencesPassBase<InsertFences> {
  static bool readByAsyncProxy(Value ring) {
    for (Operation *user : ring.getUsers())
      if (auto get = dyn_cast<GetOp>(user))
        for (Value buf : get.getBufs())
          if (llvm::any_of(buf.getUsers(), llvm::IsaPred<MmaOp, CopyOutOp>))
            return true;
    return false;
  }
  static void fence(PutOp put) {
    bool writes = put.walk([](Operation *op) {
                       return isa<WriteOp, WriteBlocksOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
                     })
                      .wasInterrupted();
    if (!writes || !readByAsyncProxy(put.getRing()) || isa<RoleOp>(put.getRing().getDefiningOp()->getParentOp()))
      return;
    OpBuilder b = OpBuilder::atBlockEnd(&put.getBody().front());
    FenceOp::create(b, put.getLoc());
  }

  // A role's own ring is published by the barrier in its get: the fence stands there, off the path between products.
  static void fence(GetOp get) {
    if (!isa<RoleOp>(get.getRing().getDefiningOp()->getParentOp()) || !readByAsyncProxy(get.getRing()))
      return;
    OpBuilder b(get);
    FenceOp::create(b, get.getLoc());
  }

  // A slot's last use belongs to another copy where copies take turns in a ring that is not theirs in whole rounds.
  // Only the warp that puts has waited for it; a parity cannot tell two phases back from none, so the others may not
  // look before it has.
  static void follow(OneWarpOp one) {
    auto role = one->getParentOfType<RoleOp>();
    int64_t copies = intOf(role.getCopies());
    bool aliases = one.walk([&](PutOp put) {
                        auto ring = put.getRing().getDefiningOp<RingOp>();
                        bool got = llvm::any_of(ring->getUsers(), [&](Operation *user) {
                          return isa<GetOp>(user) && user->getParentOfType<RoleOp>() == role;
                        });
                        return got && copies % intOf(ring.getDepth()) ? WalkResult::interrupt() : WalkResult::advance();
                      })
                       .wasInterrupted();
    if (!aliases || copies == 1)
      return;
    OpBuilder b(one);
    b.setInsertionPointAfter(one);
    SyncOp::create(b, one.getLoc());
  }
  // Whether the role has met at a barrier in this turn already.
  static bool hasMet(Operation *op) {
    auto loop = op->getParentOfType<scf::ForOp>();
    Operation *in = loop ? loop.getBody()->findAncestorOpInBlock(*op) : nullptr;
    for (in = in ? in->getPrevNode() : nullptr; in; in = in->getPrevNode())
      if (isa<SyncOp>(in))
        return true;
    return false;
  }

  // Scratch rows are written by their own warp and read by others. Between turns of the loop around, whoever reads is
  // ahead of whoever writes: the scan starts as if others' rows had just been read.
  static void synchronise(PerWarpOp region) {
    bool written = false, read = !hasMet(region);
    for (Operation &op : region.getBody().front()) {
      auto scratch = [](Value v) { return isa_and_nonnull<ScratchOp>(v.getDefiningOp()); };
      auto mma = dyn_cast<BlockMmaOp>(op);
      auto write = dyn_cast<WriteOp>(op);
      bool reads = mma && mma.getI() > 0 && scratch(mma.getB());
      bool writes = isa<SolveBlocksOp>(op) || (write && scratch(write.getBuf()));
      if ((reads && written) || (writes && read)) {
        OpBuilder b(&op);
        SyncOp::create(b, op.getLoc());
        written = read = false;
      }
      read |= reads;
      written |= writes;
    }
  }
  void runOnOperation() override {
    getOperation().walk([](PutOp put) { fence(put); });
    getOperation().walk([](GetOp get) { fence(get); });
    getOperation().walk([](OneWarpOp one) { follow(one); });
    getOperation().walk([](PerWarpOp region) { synchronise(region); });
  }
};
} // namespace
