// Verifiers across ops: declared names, rings, held slots, turns, operands that a loop carries.
#include "dialects/tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
using namespace mlir;
using namespace tile;

static bool isElementType(StringRef name) { return name == "bf16" || name == "f16" || name == "f32" || name == "any"; }
LogicalResult TemplateOp::verifyRegions() {
  DenseMap<StringAttr, bool> declared;
  for (Operation &op : getBody().front())
    if (isa<ParamOp, LetOp>(op))
      declared[mlir::SymbolTable::getSymbolName(&op)] = true;
  LogicalResult ok = success();
  walk([&](Operation *op) {
    if (op == getOperation())
      return;
    AttrTypeWalker walker;
    auto check = [&](StringAttr name) {
      if (declared.contains(name) || isElementType(name.getValue()))
        return;
      ok = op->emitOpError("uses undeclared parameter '") << name.getValue() << "'";
    };
    walker.addWalk([&](ExprAttr e) {
      if (e.getOp() == "ref")
        check(cast<StringAttr>(e.getArgs()[0]));
    });
    walker.addWalk([&](DTypeType t) { check(t.getName()); });
    walker.walk(op->getAttrDictionary());
    for (Type t : op->getResultTypes())
      walker.walk(t);
    for (Region &r : op->getRegions())
      for (Type t : r.getArgumentTypes())
        walker.walk(t);
  });
  return ok;
}

LogicalResult KernelOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (isa<TileDialect>(op.getDialect()) && !isa<RingOp, RoleOp, ClearOp, ValueOp, IfOp>(op))
      return op.emitOpError("expected a role around it");
  WalkResult result = walk([&](RingOp ring) -> WalkResult {
    SetVector<Operation *> putters, getters;
    PutOp unread;
    for (Operation *user : ring->getUsers()) {
      Operation *role = user->getParentOfType<RoleOp>();
      if (auto put = dyn_cast<PutOp>(user)) {
        putters.insert(role);
        unread = put.getUnread() ? put : unread;
      }
      if (isa<GetOp>(user))
        getters.insert(role);
    }
    if (llvm::any_of(ring->getUsers(), [](Operation *u) { return isa<CallOp>(u); }))
      return success(); // once inlined
    if (ring->use_empty())
      return success(); // a feature that this instance does not have
    if (putters.empty() || getters.empty())
      return ring.emitOpError("expected a role that puts and a role that gets");
    if (unread && (!getters.contains(unread->getParentOfType<RoleOp>()) || !unread->getParentOfType<OneWarpOp>()))
      return unread.emitOpError(
          "is unread by a role that takes nothing from the ring, or put by more than tile.one_warp");
    if (putters.size() > 1 && !ring->hasAttr("turns"))
      return ring.emitOpError("is put by ") << putters.size() << " roles, which only a ring with turns allows";
    return success();
  });
  return failure(result.wasInterrupted());
}

// Copies that share a loop keep slots and chunks in step: it runs over the share, and a ring moves one slot a turn.
static LogicalResult verifyShare(scf::ForOp loop) {
  ShareOp share;
  for (Value v : {loop.getLowerBound(), loop.getStep()})
    if (auto s = v.getDefiningOp<ShareOp>())
      share = s;
  if (!share)
    return success();
  if (loop.getLowerBound() != share.getFirst() || loop.getStep() != share.getStep() ||
      loop.getUpperBound() != share.getCount())
    return loop.emitOpError("expected the first, the count and the step of one tile.share");
  llvm::MapVector<Value, int> puts, gets;
  loop.walk([&](PutOp put) { ++puts[put.getRing()]; });
  loop.walk([&](GetOp get) { ++gets[get.getRing()]; });
  for (auto &moved : {puts, gets})
    for (auto &[ring, n] : moved)
      if (n != 1)
        return loop.emitOpError("moves ") << n << " slots of a ring in one turn, expected 1";
  return success();
}
static LogicalResult verifyYields(Operation *op) {
  Block &body = op->getRegion(0).front();
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if ((yield ? TypeRange(yield.getOperandTypes()) : TypeRange()) != op->getResultTypes())
    return op->emitOpError("expected the region to yield the results");
  return success();
}
LogicalResult PerWarpOp::verify() {
  WalkResult r = getBody().walk([&](Operation *op) {
    if (!isa<MmaOp, WaitOp, OneWarpOp, TurnOp, PerWarpOp>(op))
      return WalkResult::advance();
    op->emitOpError("belongs to the whole role, not to one warp of it");
    return WalkResult::interrupt();
  });
  return failure(r.wasInterrupted());
}
LogicalResult OneWarpOp::verify() { return verifyYields(*this); }
LogicalResult TurnOp::verify() {
  if (failed(verifyYields(*this)))
    return failure();
  for (auto loop = (*this)->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
    if (loop.getLowerBound().getDefiningOp<ShareOp>())
      return emitOpError("in a shared loop, where the role's copies do not all get here");
  return success();
}

// Held slots per ring must balance on every structured path; a product may not be dropped unread.
static LogicalResult verifyHeld(Block &block, llvm::MapVector<Value, int> &held) {
  for (Operation &op : block) {
    if (auto get = dyn_cast<GetOp>(op))
      ++held[get.getRing()];
    if (auto release = dyn_cast<ReleaseOp>(op))
      if (--held[release.getRing()] < 0)
        return release.emitOpError("gives back a slot that this role does not hold");
    if (auto mma = dyn_cast<MmaOp>(op);
        mma && mma.getD().use_empty() && !isa_and_nonnull<BufType>(mma.getC() ? mma.getC().getType() : Type()))
      return mma.emitOpError("is never waited for");
    llvm::MapVector<Value, int> entry = held;
    for (auto [i, region] : llvm::enumerate(op.getRegions())) {
      if (region.empty())
        continue;
      llvm::MapVector<Value, int> inside = entry;
      if (failed(verifyHeld(region.front(), inside)))
        return failure();
      for (auto &[ring, n] : inside)
        if (n != entry.lookup(ring) && op.getName().getStringRef() != "tile.if")
          return op.emitOpError("leaves ") << n - entry.lookup(ring) << " slots of a ring held at the end of its body";
      if (op.getName().getStringRef() == "tile.if" && i == 0)
        held = inside;
    }
  }
  return success();
}
LogicalResult RoleOp::verifyRegions() {
  llvm::MapVector<Value, int> held;
  if (failed(verifyHeld(getBody().front(), held)))
    return failure();
  // R2: an operand fragment lives within one iteration; carry the fp32 value and convert it there.
  WalkResult r = walk([&](Operation *op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      return WalkResult::advance();
    if (failed(verifyShare(loop)))
      return WalkResult::interrupt();
    for (Type t : op->getResultTypes())
      if (auto f = dyn_cast<FragType>(t); f && !f.getElement().isF32()) {
        op->emitOpError("carries an operand fragment ") << t << "; carry the fp32 value and convert it in the loop";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(r.wasInterrupted());
}

//===-- stamps -------------------------------------------------------------------===//
bool StampOp::waits() { return !getGlobal() && (*this)->getParentOfType<scf::ForOp>(); }
