// tile-place-roles: which warps run which role, with how many registers, and which named barriers they use.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_PLACEROLESPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
struct PlaceRoles : tile::impl::PlaceRolesPassBase<PlaceRoles> {
  using PlaceRolesPassBase::PlaceRolesPassBase;

  // What one warp does alone is for those with the fewest blocks of a triangular inverse to multiply.
  static LogicalResult placeOneWarps(RoleOp role) {
    SmallVector<std::pair<int64_t, int64_t>> warps; // work, warp
    for (int64_t w = 0; w < intOf(role.getWarps()); ++w) {
      int64_t work = 0;
      role.walk([&](BlockMmaOp op) { work += w - int64_t(op.getI() + op.getJ()) >= 0; });
      warps.push_back({work, w});
    }
    llvm::sort(warps);
    OpBuilder b(role);
    WalkResult r = role.walk([&](OneWarpOp op) -> WalkResult {
      if (op.rank() < 0 || op.rank() >= int64_t(warps.size()))
        return op.emitOpError("expected one of the role's ") << warps.size() << " warps, got nth(" << op.rank() << ")";
      for (Operation *user : op->getUsers())
        if (auto other = user->getParentOfType<OneWarpOp>(); !other || other.rank() != op.rank())
          return user->emitOpError("uses what only warp nth(") << op.rank() << ") of its role holds";
      op->setAttr("warp", b.getI64IntegerAttr(warps[op.rank()].second));
      return WalkResult::advance();
    });
    return failure(r.wasInterrupted());
  }

  LogicalResult place(KernelOp kernel) {
    OpBuilder b(kernel);
    int64_t warp = 0, total = 0, barrier = 1; // 0 is the block's
    for (auto role : kernel.getBody().getOps<RoleOp>()) {
      int64_t regs = intOf(role.getRegisters()), warps = intOf(role.getWarps()), copies = intOf(role.getCopies());
      if (regs % 8 || regs < 24 || regs > 248)
        return role.emitError("role '") << role.getName()
                                        << "' expected a register budget in 24..248, a multiple of 8, got " << regs;
      if (warps % 4)
        return role.emitError("role '") << role.getName() << "' expected whole warpgroups of 4 warps, got " << warps;
      role->setAttr("first_warp", b.getI64IntegerAttr(warp));
      role->setAttr("barrier", b.getI64IntegerAttr(barrier));
      barrier += copies;
      if (copies > 1 && role.walk([](TurnOp) { return WalkResult::interrupt(); }).wasInterrupted()) {
        role->setAttr("turn_barrier", b.getI64IntegerAttr(barrier));
        barrier += copies;
      }
      if (role.walk([](SignalOp op) { return op.getBy() ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted())
        role->setAttr("meet_barrier", b.getI64IntegerAttr(barrier++));
      if (failed(placeOneWarps(role)))
        return failure();
      warp += warps * copies;
      total += warps * copies * 32 * regs;
    }
    if (warp > 32)
      return kernel.emitError("roles need ") << warp << " warps, a block has 32";
    if (barrier > 16)
      return kernel.emitError("roles need ") << barrier << " named barriers, a block has 16";
    if (total > registers)
      return kernel.emitError("roles need ") << total << " registers, the SM has " << int64_t(registers);
    // setmaxnreg only moves registers between the warps of a block: one that asks for more than the launch brought
    // waits for ever.
    int64_t brought = warp ? registers / (warp * 32) / 8 * 8 * warp * 32 : 0;
    if (total > brought)
      return kernel.emitError("roles need ")
             << total << " registers, a block of " << warp * 32 << " threads is launched with " << brought;
    kernel->setAttr("threads", b.getI64IntegerAttr(warp * 32));
    return success();
  }
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>())
      if (failed(place(kernel)))
        return signalPassFailure();
  }
};
} // namespace
