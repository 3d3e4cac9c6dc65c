// tile-place-releases: a slot is given back behind the wait that retires the last product reading it.
#include "compiler/tile/Layout.h"
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_PLACERELEASESPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
bool inShare(Operation *op) {
  for (auto f = op->getParentOfType<scf::ForOp>(); f; f = f->getParentOfType<scf::ForOp>())
    if (f.getLowerBound().getDefiningOp<ShareOp>())
      return true;
  return false;
}

struct PlaceReleases : tile::impl::PlaceReleasesPassBase<PlaceReleases> {
  DenseMap<Operation *, Operation *> retiredBy; // product to wait

  void retire(Block &block, SmallVector<MmaOp> &inFlight) {
    for (Operation &op : block) {
      if (auto mma = dyn_cast<MmaOp>(op); mma && !mma.behind())
        inFlight.push_back(mma);
      if (auto wait = dyn_cast<WaitOp>(op))
        if (auto leaves = wait->getAttrOfType<IntegerAttr>("leaves")) {
          size_t n = inFlight.size() - leaves.getInt();
          for (MmaOp m : ArrayRef(inFlight).take_front(n))
            for (; m; m = m.before())
              retiredBy[m] = wait;
          inFlight.erase(inFlight.begin(), inFlight.begin() + n);
        }
      for (Region &r : op.getRegions())
        for (Block &inner : r)
          retire(inner, inFlight);
    }
  }

  LogicalResult place(ReleaseOp release) {
    // The slot is the oldest one held: the one of the nearest get before, as each ring has one slot held at a time.
    Block *block = release->getBlock();
    GetOp get;
    for (Operation *op = release->getPrevNode(); op && !get; op = op->getPrevNode())
      if (auto g = dyn_cast<GetOp>(op); g && g.getRing() == release.getRing())
        get = g;
    if (!get)
      return release.emitOpError("expected the get of its slot before it in the same block");
    Operation *last = release;
    SmallVector<Value> bufs(get.getBufs());
    for (size_t i = 0; i < bufs.size(); ++i)
      for (Operation *user : bufs[i].getUsers()) {
        if (auto sub = dyn_cast<SubOp>(user))
          bufs.push_back(sub.getBox());
        if (!isa<MmaOp>(user))
          continue;
        Operation *wait = retiredBy.lookup(user);
        wait = wait ? block->findAncestorOpInBlock(*wait) : nullptr;
        if (!wait)
          return release.emitOpError("reads its slot in a product that is not waited for in this block");
        if (last->isBeforeInBlock(wait))
          last = wait;
      }
    if (last != release)
      release->moveAfter(last);
    return success();
  }

  // Arrivals that complete a phase: one a warp, of every warp that touches the slot; one of the thread that issues bulk
  // copies.
  LogicalResult count(RingOp ring) {
    int64_t full = 0, empty = 0;
    bool bulk = false;
    SetVector<Operation *> getters;
    for (Operation *user : ring->getUsers()) {
      auto role = user->getParentOfType<RoleOp>();
      int64_t sharers = inShare(user) ? 1 : intOf(role.getCopies());
      if (auto put = dyn_cast<PutOp>(user)) {
        int64_t writers = put->getParentOfType<OneWarpOp>() ? 1 : intOf(role.getWarps());
        bool copies = put.walk([](CopyInOp) { return WalkResult::interrupt(); }).wasInterrupted();
        if (copies && writers != 1)
          return put.emitOpError("copies from a role's warps together, expected tile.one_warp around it");
        bool keepsStep = put.getBody().front().empty();
        if (full && (full != writers || (!keepsStep && bulk && !copies)))
          return put.emitOpError("fills a slot otherwise than another put of the ring");
        full = writers, bulk |= copies;
      }
      if (isa<GetOp>(user) && getters.insert(role))
        empty += intOf(role.getWarps()) * sharers;
    }
    OpBuilder b(ring);
    ring->setAttr("full_count", b.getI64IntegerAttr(full));
    ring->setAttr("empty_count", b.getI64IntegerAttr(empty));
    ring->setAttr("bulk", b.getI64IntegerAttr(bulk));
    return success();
  }

  void runOnOperation() override {
    WalkResult r = getOperation().walk([&](RoleOp role) -> WalkResult {
      SmallVector<MmaOp> inFlight;
      retire(role.getBody().front(), inFlight);
      SmallVector<ReleaseOp> releases;
      role.walk([&](ReleaseOp op) { releases.push_back(op); });
      for (ReleaseOp op : releases)
        if (failed(place(op)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (!r.wasInterrupted())
      r = getOperation().walk([&](RingOp ring) { return WalkResult(count(ring)); });
    if (r.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
