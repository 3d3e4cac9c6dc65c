// tile-rotate: deferred work runs in the next iteration, at its tile.resume, and behind the loop for the last one. What
// a loop of products carries enters it as the result of one.
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
  OneWarpOp worker; // the resume stands in it
};

// What a product accumulates: a value a token is none.
bool carriesMatrix(scf::ForOp loop) {
  return llvm::any_of(loop.getResultTypes(), [](Type t) {
    auto f = dyn_cast<FragType>(t);
    return f && f.dim(0) > 1 && f.dim(1) > 1;
  });
}

struct Rotate : tile::impl::RotatePassBase<Rotate> {
  FailureOr<Deferred> analyse(DeferOp defer) {
    auto loop = dyn_cast<scf::ForOp>(defer->getParentOp());
    if (!loop)
      return defer.emitOpError("expected a loop around it");
    SmallVector<ResumeOp> resumes;
    loop.walk([&](ResumeOp r) {
      if (r.getName() == defer.getName())
        resumes.push_back(r);
    });
    if (resumes.size() != 1 || !loop.getBody()->findAncestorOpInBlock(*resumes[0])->isBeforeInBlock(defer))
      return defer.emitOpError("expected one tile.resume of this name before it in the loop");
    Deferred d{defer, resumes[0], {}, resumes[0]->getParentOfType<OneWarpOp>()};
    defer.walk([&](Operation *op) {
      for (Value v : op->getOperands())
        if (!defer.getBody().isAncestor(v.getParentRegion()) && loop.getRegion().isAncestor(v.getParentRegion()))
          d.captures.insert(v);
    });
    for (Value v : d.captures)
      if (auto arg = dyn_cast<BlockArgument>(v); arg && arg.getOwner() == loop.getBody())
        return defer.emitOpError(
            "captures a variable of the loop, which names another iteration there; capture what is "
            "computed from it");
    for (Value v : d.captures)
      if (isa<BufType>(v.getType()))
        return defer.emitOpError("captures a slot, which the next iteration may no longer hold");
    return d;
  }

  // What a capture is before the first iteration. Only where deferred work runs without a test does it matter: a
  // product that has finished, and a chunk without rows, of which nothing is copied.
  FailureOr<Value> neutral(OpBuilder &b, scf::ForOp loop, Value capture, bool tested) {
    if (tested)
      return Value(UndefOp::create(b, capture.getLoc(), capture.getType()));
    if (auto pending = dyn_cast<PendingType>(capture.getType())) {
      Value zero = FillOp::create(b, capture.getLoc(), pending.getValue(), b.getF32FloatAttr(0));
      return Value(ReadyOp::create(b, capture.getLoc(), PrimeOp::create(b, capture.getLoc(), zero)));
    }
    if (auto chunk = capture.getDefiningOp<ChunkOp>())
      return Value(ChunkOp::create(b, capture.getLoc(), chunk.getSpan(), loop.getUpperBound()));
    return emitError(capture.getLoc(), "is captured by deferred work and has no value before the first iteration");
  }

  // Deferred work stands at its resume and behind the loop, its captures travel with the loop. A loop that carries
  // matrices runs it from the first iteration on, without a branch between products; elsewhere a test keeps it off the
  // first.
  LogicalResult rotate(scf::ForOp loop, MutableArrayRef<Deferred> work) {
    IRRewriter b(loop);
    bool tested = !carriesMatrix(loop);
    SmallVector<Value> inits, yielded;
    for (Deferred &d : work)
      for (Value v : d.captures) {
        auto init = neutral(b, loop, v, tested);
        if (failed(init))
          return failure();
        inits.push_back(*init);
        yielded.push_back(v);
      }
    unsigned old = loop.getNumResults();
    auto yields = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return yielded; };
    auto next = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(b, inits, false, yields));
    ValueRange carried = next.getRegionIterArgs().drop_front(old), last = next.getResults().drop_front(old);
    Operation *end = next;
    for (Deferred &d : work) {
      size_t n = d.captures.size();
      b.setInsertionPoint(d.resume);
      place(b, d, carried.take_front(n), tested ? differs(b, next) : Value());
      b.setInsertionPointAfter(end);
      Block *block = end->getBlock();
      Operation *behind = end->getNextNode();
      Value some = tested ? Value(arith::CmpIOp::create(b, next.getLoc(), arith::CmpIPredicate::slt,
                                                        next.getLowerBound(), next.getUpperBound()))
                          : Value();
      if (d.worker) {
        auto worker = OneWarpOp::create(b, d.defer.getLoc(), TypeRange(), d.worker.getNthAttr());
        b.setInsertionPointToStart(&worker.getBody().emplaceBlock());
      }
      place(b, d, last.take_front(n), some);
      end = behind ? behind->getPrevNode() : &block->back();
      carried = carried.drop_front(n), last = last.drop_front(n);
    }
    for (Deferred &d : work) {
      b.eraseOp(d.resume);
      b.eraseOp(d.defer);
    }
    return success();
  }

  static void prime(scf::ForOp loop) {
    if (!carriesMatrix(loop) || loop.getBody()->getOps<MmaOp>().empty())
      return;
    OpBuilder b(loop);
    for (OpOperand &o : loop.getInitArgsMutable())
      if (isa<FragType>(o.get().getType()))
        o.set(PrimeOp::create(b, loop.getLoc(), o.get()));
  }

  static Value differs(OpBuilder &b, scf::ForOp loop) {
    if (loop.getLowerBound().getDefiningOp<ShareOp>()) // which begins below the step
      return arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::sge, loop.getInductionVar(), loop.getStep());
    return arith::CmpIOp::create(b, loop.getLoc(), arith::CmpIPredicate::ne, loop.getInductionVar(),
                                 loop.getLowerBound());
  }
  static void place(OpBuilder &b, Deferred &d, ValueRange captures, Value test) {
    if (test)
      b.setInsertionPointToStart(scf::IfOp::create(b, d.defer.getLoc(), test, false).thenBlock());
    IRMapping map;
    map.map(d.captures.getArrayRef(), captures);
    for (Operation &op : d.defer.getBody().front())
      b.clone(op, map);
  }

  void runOnOperation() override {
    llvm::MapVector<Operation *, SmallVector<Deferred>> loops;
    WalkResult r = getOperation().walk([&](DeferOp d) {
      auto work = analyse(d);
      if (failed(work))
        return WalkResult::interrupt();
      loops[d->getParentOp()].push_back(*work);
      return WalkResult::advance();
    });
    if (r.wasInterrupted())
      return signalPassFailure();
    for (auto &[op, work] : loops)
      if (failed(rotate(cast<scf::ForOp>(op), work)))
        return signalPassFailure();
    getOperation().walk<WalkOrder::PreOrder>([](scf::ForOp loop) { prime(loop); });
  }
};
} // namespace
