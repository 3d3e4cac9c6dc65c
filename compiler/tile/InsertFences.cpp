// tile-insert-fences: what products and bulk copies read was written by the generic proxy; what other warps read, by
// this one.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
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
  static bool aliases(Value ring, RoleOp role) {
    auto putsAlone = [&](Operation *user) {
      return isa<PutOp>(user) && user->getParentOfType<OneWarpOp>() && user->getParentOfType<RoleOp>() == role;
    };
    int64_t copies = intOf(role.getCopies());
    return copies > 1 && copies % intOf(ring.getDefiningOp<RingOp>().getDepth()) &&
           llvm::any_of(ring.getUsers(), putsAlone);
  }
  // So it is, once, where a loop begins whose role has let slots pass unread.
  static void follow(RoleOp role) {
    DenseSet<Value> fresh; // rings put since the last barrier
    DenseMap<Value, PutOp> unread;
    role.walk<WalkOrder::PreOrder>([&](Operation *op) {
      auto get = dyn_cast<GetOp>(op);
      if (auto put = dyn_cast<PutOp>(op); put && aliases(put.getRing(), role)) {
        fresh.insert(put.getRing());
      } else if (put && put.getUnread()) {
        unread[put.getRing()] = put;
      } else if (get && unread.contains(get.getRing())) {
        for (auto loop = op->getParentOfType<scf::ForOp>(); loop && !loop->isAncestor(unread[get.getRing()]);
             loop = loop->getParentOfType<scf::ForOp>())
          op = loop;
        OpBuilder b(op);
        SyncOp::create(b, op->getLoc());
        unread.clear();
      } else if (get && fresh.contains(get.getRing())) {
        OpBuilder b(op);
        SyncOp::create(b, op->getLoc());
        fresh.clear();
      }
    });
  }

  // Slots left unread are waited for by the warp that fills them alone. The other warps meet it behind the loop: one of
  // them may be the next to fill the ring.
  static void meet(RoleOp role) {
    llvm::SetVector<Operation *> loops;
    role.walk([&](PutOp put) {
      auto loop = put->getParentOfType<scf::ForOp>();
      if (put.getUnread() && loop)
        loops.insert(loop);
    });
    for (Operation *loop : loops) {
      OpBuilder b(loop->getBlock(), std::next(loop->getIterator()));
      SyncOp::create(b, loop->getLoc());
    }
  }

  // Scratch rows are written by their own warp and read by others. Between turns of the loop around, whoever reads is
  // ahead of whoever writes: in a loop the scan starts as if others' rows had just been read.
  static void synchronise(RoleOp role) {
    auto scratch = [](Value v) { return isa_and_nonnull<ScratchOp>(v.getDefiningOp()); };
    bool written = false, read = false;
    role.walk<WalkOrder::PreOrder>([&](Operation *op) {
      read |= isa<scf::ForOp>(op);
      auto mma = dyn_cast<BlockMmaOp>(op);
      auto write = dyn_cast<WriteOp>(op);
      bool reads = mma && mma.getI() > 0 && scratch(mma.getB());
      bool writes = isa<SolveBlocksOp>(op) || (write && scratch(write.getBuf()));
      bool meets = isa<SyncOp>(op) && !isa<scf::IfOp>(op->getParentOp());
      if ((reads && written) || (writes && read)) {
        OpBuilder b(op);
        SyncOp::create(b, op->getLoc());
        meets = true;
      }
      read = (read && !meets) || reads;
      written = (written && !meets) || writes;
    });
  }
  void runOnOperation() override {
    getOperation().walk([](PutOp put) { fence(put); });
    getOperation().walk([](GetOp get) { fence(get); });
    getOperation().walk([](RoleOp role) { meet(role); });
    getOperation().walk([](RoleOp role) { follow(role); });
    getOperation().walk([](RoleOp role) { synchronise(role); });
  }
};
} // namespace
