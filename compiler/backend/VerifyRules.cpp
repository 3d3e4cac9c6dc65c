// Rules R1 to R3: what may be done with registers that a warpgroup product in flight reads or writes, or that a loop
// carries from product to product. The hardware does not check it, ptxas serialises all products or waits for them
// where it cannot prove it (C7510 and following), and LLVM knows nothing of it.
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

struct State {
  llvm::MapVector<Value, Flight> flights;
  llvm::DenseSet<Value> carried; // accumulators of a loop that it is not always entered with as a product's result
};

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
  for (auto [source, target] : llvm::zip(from, to)) {
    if (auto it = state.flights.find(source); it != state.flights.end())
      moved.push_back({target, it->second});
    if (state.carried.contains(source))
      state.carried.insert(target);
  }
  for (Value source : from)
    state.flights.erase(source);
  for (auto [target, flight] : moved)
    state.flights[target] = flight;
}

// In flight where it is on either path, and then in the newer of both groups.
void merge(State &state, const State &other) {
  for (const auto &[value, flight] : other.flights) {
    auto [it, inserted] = state.flights.insert({value, flight});
    if (!inserted && flight.age < it->second.age)
      it->second = flight;
  }
  state.carried.insert_range(other.carried);
}

// Whether a value is what a product left in these registers, on every path.
bool isProduct(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
    return init && isProduct(init->get()); // what comes around, the loop is checked for
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<WgmmaFenceOp, WgmmaWaitOp>(op))
    return isProduct(op->getOperand(index));
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return isProduct(loop.getInitArgs()[index]) && isProduct(loop.getYieldedValues()[index]);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return isProduct(branch.thenYield().getOperand(index)) && isProduct(branch.elseYield().getOperand(index));
  return isa<WgmmaOp>(op);
}

LogicalResult Walker::visit(WgmmaOp op, State &state) {
  for (Value value : op.getA()) {
    if (!state.flights.contains(value) && !value.getDefiningOp<WgmmaFenceOp>())
      return op.emitOpError(
          "expected register operands of a product in flight, or ones that come out of sm.wgmma.fence (R2)");
    state.flights[value] = {op, 0, true};
  }
  for (Value value : op.getAcc()) {
    if (!state.flights.erase(value) && !value.getDefiningOp<WgmmaFenceOp>())
      return op.emitOpError(
          "expected an accumulator of a product in flight, or one that comes out of sm.wgmma.fence (R2)");
  }
  for (Value value : op.getD())
    state.flights[value] = {op, 0, false};
  return success();
}

LogicalResult Walker::visit(WgmmaFenceOp op, State &state) {
  forward(op.getValues(), op.getResults(), state);
  return success();
}

LogicalResult Walker::visit(WgmmaWaitOp op, State &state) {
  int64_t leaves = op.getLeaves();
  for (auto [value, result] : llvm::zip(op.getValues(), op.getResults()))
    if (state.carried.contains(value))
      state.carried.insert(result);
  for (Value value : op.getValues()) {
    auto it = state.flights.find(value);
    if (it == state.flights.end())
      continue;
    if (it->second.age <= leaves)
      return fail(op,
                  "expected registers of products that it retires, got one of a product in a group that it leaves in "
                  "flight (R1)",
                  it->second.product);
    state.flights.erase(it);
  }
  for (const auto &[value, flight] : state.flights)
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
  for (auto [init, yielded, argument] : llvm::zip(op.getInitArgs(), op.getYieldedValues(), op.getRegionIterArgs()))
    if (isProduct(yielded) && !isProduct(init))
      state.carried.insert(argument);
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
    auto it = state.flights.find(value);
    Operation *product =
        it != state.flights.end() && !it->second.operand ? it->second.product : value.getDefiningOp<WgmmaOp>();
    if (product)
      return fail(op,
                  "reads an accumulator that has not passed through the sm.wgmma.wait that retires its product (R1)",
                  product);
    if (state.carried.contains(value) && !state.flights.empty())
      return fail(op,
                  "reads an accumulator that its loop is entered with otherwise than as a product's result, while a "
                  "product is in flight (R3)",
                  state.flights.back().second.product);
  }
  return op->getNumRegions() ? visitBranches(op, state) : success();
}

LogicalResult Walker::run(Block &block, State &state) {
  for (Operation &op : block) {
    LogicalResult result = llvm::TypeSwitch<Operation *, LogicalResult>(&op)
                               .Case<WgmmaOp, WgmmaFenceOp, WgmmaWaitOp, scf::ForOp, scf::WhileOp>(
                                   [&](auto concrete) { return visit(concrete, state); })
                               .Case([&](WgmmaCommitOp) {
                                 for (auto &[value, flight] : state.flights)
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
