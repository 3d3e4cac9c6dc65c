// tile-rotate: deferred work runs in the next iteration, at its tile.resume, and behind the loop for the last one.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_ROTATEPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
// What one loop defers: the values that travel to the next iteration, and where they are used there.
struct Deferred {
  DeferOp defer;
  ResumeOp resume;
  SetVector<Value> captures;
  bool byOneWarp; // the resume stands in a tile.one_warp
};

// What a product accumulates: a value a token is none.
bool carriesMatrix(scf::ForOp loop) {
  return llvm::any_of(loop.getResultTypes(), [](Type t) {
    auto f = dyn_cast<FragType>(t);
    return f && f.dim(0) > 1 && f.dim(1) > 1;
  });
}

void cloneBody(OpBuilder &b, Region &region, IRMapping &map) {
  for (Operation &op : region.front())
    if (!op.hasTrait<OpTrait::IsTerminator>()) b.clone(op, map);
}

struct Rotate : tile::impl::RotatePassBase<Rotate> {
  FailureOr<Deferred> analyse(DeferOp defer) {
    auto loop = dyn_cast<scf::ForOp>(defer->getParentOp());
    if (!loop) return defer.emitOpError("expected a loop around it");
    SmallVector<ResumeOp> resumes;
    loop.walk([&](ResumeOp r) {
      if (r.getName() == defer.getName()) resumes.push_back(r);
    });
    if (resumes.size() != 1 || !loop.getBody()->findAncestorOpInBlock(*resumes[0])->isBeforeInBlock(defer))
      return defer.emitOpError("expected one tile.resume of this name before it in the loop");
    Deferred d{defer, resumes[0], {}, bool(resumes[0]->getParentOfType<OneWarpOp>())};
    defer.walk([&](Operation *op) {
      for (Value v : op->getOperands())
        if (!defer.getBody().isAncestor(v.getParentRegion()) && loop.getRegion().isAncestor(v.getParentRegion()))
          d.captures.insert(v);
    });
    for (Value v : d.captures)
      if (isa<BufType>(v.getType()))
        return defer.emitOpError("captures a slot, which the next iteration may no longer hold");
    return d;
  }

  // The loop with the captures of all deferred work as further iteration arguments; the work stands at its resume, inside a
  // test for the first iteration unless that one is peeled off.
  scf::ForOp carry(IRRewriter &b, scf::ForOp loop, MutableArrayRef<Deferred> work, ValueRange inits, bool peeled) {
    unsigned old = loop.getNumResults();
    SmallVector<Value> all;
    for (Deferred &d : work)
      llvm::append_range(all, d.captures);
    auto yields = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return all; };
    b.setInsertionPoint(loop);
    auto next = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(b, inits, false, yields));
    ValueRange carried = next.getRegionIterArgs().drop_front(old);
    for (Deferred &d : work) {
      b.setInsertionPoint(d.resume);
      if (!peeled) {
        Value later = arith::CmpIOp::create(b, next.getLoc(), arith::CmpIPredicate::ne, next.getInductionVar(),
                                            next.getLowerBound());
        b.setInsertionPointToStart(scf::IfOp::create(b, next.getLoc(), later, false).thenBlock());
      }
      IRMapping map;
      map.map(d.captures.getArrayRef(), carried.take_front(d.captures.size()));
      carried = carried.drop_front(d.captures.size());
      cloneBody(b, d.defer.getBody(), map);
      b.eraseOp(d.resume);
    }
    return next;
  }

  // Behind the loop: the last iteration's share.
  void placeTails(IRRewriter &b, scf::ForOp loop, unsigned old, MutableArrayRef<Deferred> work) {
    ValueRange last = loop.getResults().drop_front(old);
    for (Deferred &d : work) {
      IRMapping map;
      map.map(d.captures.getArrayRef(), last.take_front(d.captures.size()));
      last = last.drop_front(d.captures.size());
      OpBuilder::InsertionGuard guard(b);
      if (d.byOneWarp) b.setInsertionPointToStart(&OneWarpOp::create(b, d.defer.getLoc()).getBody().emplaceBlock());
      cloneBody(b, d.defer.getBody(), map);
    }
  }

  void rotateGuarded(scf::ForOp loop, MutableArrayRef<Deferred> work) {
    IRRewriter b(loop.getContext());
    b.setInsertionPoint(loop);
    SmallVector<Value> inits;
    for (Deferred &d : work)
      for (Value v : d.captures)
        inits.push_back(UndefOp::create(b, v.getLoc(), v.getType()));
    unsigned old = loop.getNumResults();
    auto next = carry(b, loop, work, inits, /*peeled=*/false);
    b.setInsertionPointAfter(next);
    Value some = arith::CmpIOp::create(b, next.getLoc(), arith::CmpIPredicate::slt, next.getLowerBound(),
                                       next.getUpperBound());
    b.setInsertionPointToStart(scf::IfOp::create(b, next.getLoc(), some, false).thenBlock());
    placeTails(b, next, old, work);
    for (Deferred &d : work)
      b.eraseOp(d.defer);
  }

  // The first iteration in front of the loop, without what an earlier one would have deferred.
  IRMapping peel(IRRewriter &b, scf::ForOp loop, MutableArrayRef<Deferred> work) {
    IRMapping map;
    map.map(loop.getInductionVar(), loop.getLowerBound());
    map.map(loop.getRegionIterArgs(), loop.getInits());
    cloneBody(b, loop.getRegion(), map);
    for (Deferred &d : work) {
      b.eraseOp(map.lookup(d.defer.getOperation()));
      b.eraseOp(map.lookup(d.resume.getOperation()));
    }
    return map;
  }

  void rotatePeeled(scf::ForOp loop, MutableArrayRef<Deferred> work) {
    splitEmptyItems(loop);
    IRRewriter b(loop.getContext());
    b.setInsertionPoint(loop);
    IRMapping first = peel(b, loop, work);
    SmallVector<Value> inits, start;
    for (Deferred &d : work)
      for (Value v : d.captures)
        inits.push_back(first.lookupOrDefault(v));
    for (Value v : loop.getYieldedValues())
      start.push_back(first.lookupOrDefault(v));
    loop.getInitArgsMutable().assign(start);
    loop.setLowerBound(arith::AddIOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getStep()));
    unsigned old = loop.getNumResults();
    auto next = carry(b, loop, work, inits, /*peeled=*/true);
    b.setInsertionPointAfter(next);
    placeTails(b, next, old, work);
    for (Deferred &d : work)
      b.eraseOp(d.defer);
  }

  // An item without iterations goes its own way from the first fragment on, so that on the other path the loop is entered
  // without a test: ptxas sees the carried fragment come out of a product there.
  static void splitEmptyItems(scf::ForOp loop) {
    Block *block = loop->getBlock();
    Operation *start = loop;
    for (Operation &op : *block)
      if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<FragType>)) { // the load of what is carried
        start = &op;
        break;
      }
    IRRewriter b(start);
    Value some = arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    auto split = scf::IfOp::create(b, loop.getLoc(), some, true);
    b.setInsertionPointToStart(split.elseBlock());
    IRMapping map;
    SmallVector<Operation *> moved;
    for (Operation *op = start; op; op = op->getNextNode()) {
      if (op == loop.getOperation())
        map.map(loop.getResults(), llvm::map_to_vector(loop.getInits(), [&](Value v) { return map.lookupOrDefault(v); }));
      else
        b.clone(*op, map);
      moved.push_back(op);
    }
    for (Operation *op : moved)
      op->moveBefore(split.thenBlock()->getTerminator());
  }

  void runOnOperation() override {
    llvm::MapVector<Operation *, SmallVector<Deferred>> loops;
    WalkResult r = getOperation().walk([&](DeferOp d) {
      auto work = analyse(d);
      if (failed(work)) return WalkResult::interrupt();
      loops[d->getParentOp()].push_back(*work);
      return WalkResult::advance();
    });
    if (r.wasInterrupted()) return signalPassFailure();
    for (auto &[op, work] : loops) {
      auto loop = cast<scf::ForOp>(op);
      if (carriesMatrix(loop))
        rotatePeeled(loop, work);
      else
        rotateGuarded(loop, work);
    }
  }
};
} // namespace
