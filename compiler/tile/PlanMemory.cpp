// tile-plan-memory: where rings, scratch and barriers lie in shared memory.
#include "compiler/tile/Layout.h"
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/format/work.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
struct PlanMemory : tile::impl::PlanMemoryPassBase<PlanMemory> {
  using PlanMemoryPassBase::PlanMemoryPassBase;
  int64_t next = 0;

  int64_t take(int64_t bytes, int64_t alignment) {
    next = (next + alignment - 1) / alignment * alignment;
    return std::exchange(next, next + bytes);
  }

  static int64_t copiesOf(Operation *op) {
    auto role = op->getParentOfType<RoleOp>();
    return role ? intOf(role.getCopies()) : 1;
  }
  // Whether a slot of the ring is the operand of a product that skips blocks above the diagonal.
  static bool readLower(RingOp ring) {
    for (Operation *user : ring->getUsers())
      if (auto get = dyn_cast<GetOp>(user))
        for (Value buf : get.getBufs())
          for (Operation *reader : buf.getUsers())
            if (auto mma = dyn_cast<MmaOp>(reader); mma && mma.getLower())
              return true;
    return false;
  }

  void placeRing(RingOp ring) {
    OpBuilder b(ring);
    int64_t slot = 0, alignment = 16;
    for (Type t : cast<RingType>(ring.getRing().getType()).getSlot()) {
      slot += bufferBytes(cast<BufType>(t));
      alignment = std::max(alignment, bufferAlignment(cast<BufType>(t)));
    }
    int64_t depth = intOf(ring.getDepth());
    ring->setAttr("slot", b.getI64IntegerAttr(slot));
    ring->setAttr("offset", b.getI64IntegerAttr(take(copiesOf(ring) * depth * slot, alignment)));
    if (readLower(ring))
      ring->setAttr("zeroed", b.getUnitAttr());
  }

  // The rows of all scratch buffers that belong to one warp lie together: until it has published them it may use them
  // as it likes.
  void placeScratch(RoleOp role) {
    OpBuilder b(role);
    SmallVector<ScratchOp> all;
    role.walk([&](ScratchOp s) { all.push_back(s); });
    bool solves = role.walk([](SolveBlocksOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (all.empty() && !solves)
      return;
    int64_t bytes = std::max<int64_t>(all.size() * blockBytes, solves ? solveBytes : 0);
    int64_t offset = take(bytes * intOf(role.getWarps()) * intOf(role.getCopies()), 128);
    role->setAttr("scratch", b.getI64IntegerAttr(offset));
    role->setAttr("scratch_row", b.getI64IntegerAttr(bytes));
    for (auto [i, s] : llvm::enumerate(all))
      s->setAttr("offset", b.getI64IntegerAttr(i * blockBytes));
  }

  // Copies that take turns move by their number: a ring at least as deep has a slot for each of them.
  static LogicalResult checkDepth(RingOp ring) {
    for (Operation *user : ring->getUsers()) {
      auto loop = user->getParentOfType<scf::ForOp>();
      int64_t copies = copiesOf(user), depth = intOf(ring.getDepth());
      if (loop && loop.getLowerBound().getDefiningOp<ShareOp>() && copies > depth)
        return ring.emitOpError("expected a slot for each of ")
               << copies << " copies that take turns, got depth " << depth;
    }
    return success();
  }

  LogicalResult plan(KernelOp kernel) {
    next = 0;
    if (!kernel->hasAttr("threads"))
      return kernel.emitError("expected tile-place-roles before tile-plan-memory");
    OpBuilder b(kernel);
    SmallVector<RingOp> rings;
    kernel.walk([&](RingOp r) { rings.push_back(r); });
    for (RingOp r : rings)
      if (failed(checkDepth(r)))
        return failure();
    for (RingOp r : rings) // tiles first: they need the coarsest alignment
      if (bufferAlignment(cast<BufType>(cast<RingType>(r.getRing().getType()).getSlot()[0])) > 16)
        placeRing(r);
    // Zeros lie in front of the rest: a memory checker takes their descriptor for more than the one core matrix.
    if (kernel.walk([](PrimeOp) { return WalkResult::interrupt(); }).wasInterrupted())
      kernel->setAttr("zeros", b.getI64IntegerAttr(take(zeroBytes, 128)));
    for (auto role : kernel.getBody().getOps<RoleOp>())
      placeScratch(role);
    for (RingOp r : rings)
      if (!r->hasAttr("offset"))
        placeRing(r);
    for (RingOp r : rings) {
      if (isa<RoleOp>(r->getParentOp()))
        continue; // ordered by named barriers and bulk groups
      int64_t depth = intOf(r.getDepth());
      r->setAttr("full", b.getI64IntegerAttr(take(8 * depth, 8)));
      r->setAttr("empty", b.getI64IntegerAttr(take(8 * depth, 8)));
    }
    kernel->setAttr("records", b.getI64IntegerAttr(take(
                                   recordBytes * kernel->getAttrOfType<IntegerAttr>("threads").getInt() / 32, 16)));
    if (kernel.walk([](ForeachOp) { return WalkResult::interrupt(); }).wasInterrupted()) {
      kernel->setAttr("items", b.getI64IntegerAttr(take(itemSlots * sizeof(gdn::work::Drawn), 16)));
      kernel->setAttr("item_barriers", b.getI64IntegerAttr(take(2 * 8 * itemSlots, 8)));
    }
    int64_t first = INT64_MAX, last = -1;
    kernel.walk([&](StampOp op) {
      if (op.waits())
        first = std::min<int64_t>(first, op.getSlot()), last = std::max<int64_t>(last, op.getSlot());
    });
    if (last >= 0)
      kernel->setAttr("stamps", b.getI64IntegerAttr(take(4 * (last + 1 - first), 4) - 4 * first));
    if (next > shared)
      return kernel.emitError("rings and scratch need ")
             << next << " bytes of shared memory, a block has " << int64_t(shared);
    kernel->setAttr("shared_bytes", b.getI64IntegerAttr(next));
    return success();
  }
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>())
      if (failed(plan(kernel)))
        return signalPassFailure();
  }
};
} // namespace
