// Rules R1 and R2: what may be done with registers that a warpgroup product in flight reads or writes. The hardware
// does not check it, ptxas serialises all products where it cannot prove it (C7510 and following), and LLVM knows
// nothing of it.
#include "compiler/backend/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
using namespace mlir;
using namespace sm;

namespace gdnc {

#define GEN_PASS_DEF_SMVERIFYRULES
#include "compiler/backend/Passes.h.inc"

namespace {

// Why a register is not free: the latest product that uses it, and the groups committed since.
struct Flight {
  Operation *product;
  int64_t age;  // 1: in the newest group; 0: not committed yet
  bool operand; // a register of A, which others may read; else of the accumulator
};

using State = llvm::MapVector<Value, Flight>;

class Walker {
public:
  // Both fail after the first diagnostic.
  LogicalResult run(Block &block, State &state);

private:
  LogicalResult visit(Operation *op, State &state);
  LogicalResult visit(WgmmaOp op, State &state);
  LogicalResult visit(WgmmaFenceOp op, State &state);
  LogicalResult visit(WgmmaWaitOp op, State &state);
  LogicalResult visit(scf::ForOp op, State &state);
  LogicalResult visit(scf::WhileOp op, State &state);
  LogicalResult visitBranches(Operation *op, State &state);
  LogicalResult fail(Operation *op, const Twine &message, Operation *product) {
    InFlightDiagnostic diagnostic = op->emitOpError(message);
    diagnostic.attachNote(product->getLoc()) << "the product";
    return diagnostic;
  }
};

// Values that go on under other names, all at once: a loop may pass on its own arguments in another order.
void forward(ValueRange from, ValueRange to, State &state) {
  SmallVector<std::pair<Value, Flight>> moved;
  for (auto [source, target] : llvm::zip(from, to))
    if (auto it = state.find(source); it != state.end())
      moved.push_back({target, it->second});
  for (Value source : from)
    state.erase(source);
  for (auto [target, flight] : moved)
    state[target] = flight;
}

// In flight where it is on either path, and then in the newer of both groups.
void merge(State &state, const State &other) {
  for (const auto &[value, flight] : other) {
    auto [it, inserted] = state.insert({value, flight});
    if (!inserted && flight.age < it->second.age)
      it->second = flight;
  }
}

LogicalResult Walker::visit(WgmmaOp op, State &state) {
  for (Value value : op.getA()) {
    if (!state.contains(value) && !value.getDefiningOp<WgmmaFenceOp>())
      return op.emitOpError(
          "expected register operands of a product in flight, or ones that come out of sm.wgmma.fence (R2)");
    state[value] = {op, 0, true};
  }
  for (Value value : op.getAcc()) {
    if (!state.erase(value) && !value.getDefiningOp<WgmmaFenceOp>())
      return op.emitOpError(
          "expected an accumulator of a product in flight, or one that comes out of sm.wgmma.fence (R2)");
  }
  for (Value value : op.getD())
    state[value] = {op, 0, false};
  return success();
}

LogicalResult Walker::visit(WgmmaFenceOp op, State &state) {
  forward(op.getValues(), op.getResults(), state);
  return success();
}

LogicalResult Walker::visit(WgmmaWaitOp op, State &state) {
  int64_t leaves = op.getLeaves();
  for (Value value : op.getValues()) {
    auto it = state.find(value);
    if (it == state.end())
      continue;
    if (it->second.age <= leaves)
      return fail(op,
                  "expected registers of products that it retires, got one of a product in a group that it leaves in "
                  "flight (R1)",
                  it->second.product);
    state.erase(it);
  }
  for (const auto &[value, flight] : state)
    if (flight.age > leaves)
      return fail(op,
                  flight.operand ? "expected all register operands of the products that it retires (R2)"
                                 : "expected the whole accumulators of the products that it retires (R1)",
                  flight.product);
  return success();
}

// Loops are followed for this many rounds: a schedule keeps at most two groups of products in flight, so a third finds
// nothing new.
constexpr int rounds = 3;

LogicalResult Walker::visit(scf::ForOp op, State &state) {
  State exits = state;
  forward(op.getInitArgs(), op.getResults(), exits);
  forward(op.getInitArgs(), op.getRegionIterArgs(), state);
  for (int round = 0; round < rounds; ++round) {
    if (failed(run(*op.getBody(), state)))
      return failure();
    State left = state;
    forward(op.getYieldedValues(), op.getResults(), left);
    merge(exits, left);
    forward(op.getYieldedValues(), op.getRegionIterArgs(), state);
  }
  state = exits;
  return success();
}

LogicalResult Walker::visit(scf::WhileOp op, State &state) {
  State exits;
  forward(op.getInits(), op.getBeforeArguments(), state);
  for (int round = 0; round < rounds; ++round) {
    if (failed(run(*op.getBeforeBody(), state)))
      return failure();
    State left = state;
    forward(op.getConditionOp().getArgs(), op.getResults(), left);
    merge(exits, left);
    forward(op.getConditionOp().getArgs(), op.getAfterArguments(), state);
    if (failed(run(*op.getAfterBody(), state)))
      return failure();
    forward(op.getYieldOp().getOperands(), op.getBeforeArguments(), state);
  }
  state = exits;
  return success();
}

// One of the regions runs, or none where one is missing.
LogicalResult Walker::visitBranches(Operation *op, State &state) {
  State before = state;
  bool first = true;
  for (Region &region : op->getRegions()) {
    State path = before;
    if (!region.empty()) {
      if (failed(run(region.front(), path)))
        return failure();
      if (op->getNumResults())
        forward(region.front().getTerminator()->getOperands(), op->getResults(), path);
    }
    if (first)
      state = path;
    else
      merge(state, path);
    first = false;
  }
  return success();
}

LogicalResult Walker::visit(Operation *op, State &state) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return success(); // its parent forwards what it passes on
  for (Value value : op->getOperands()) {
    auto it = state.find(value);
    Operation *product = it != state.end() && !it->second.operand ? it->second.product : value.getDefiningOp<WgmmaOp>();
    if (product)
      return fail(op,
                  "reads an accumulator that has not passed through the sm.wgmma.wait that retires its product (R1)",
                  product);
  }
  return op->getNumRegions() ? visitBranches(op, state) : success();
}

LogicalResult Walker::run(Block &block, State &state) {
  for (Operation &op : block) {
    LogicalResult result = llvm::TypeSwitch<Operation *, LogicalResult>(&op)
                               .Case<WgmmaOp, WgmmaFenceOp, WgmmaWaitOp, scf::ForOp, scf::WhileOp>(
                                   [&](auto concrete) { return visit(concrete, state); })
                               .Case([&](WgmmaCommitOp) {
                                 for (auto &[value, flight] : state)
                                   ++flight.age;
                                 return success();
                               })
                               .Default([&](Operation *other) { return visit(other, state); });
    if (failed(result))
      return failure();
  }
  return success();
}

struct SmVerifyRules : impl::SmVerifyRulesBase<SmVerifyRules> {
  void runOnOperation() override {
    State state;
    if (failed(Walker().run(getOperation().getBody().front(), state)))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace gdnc
