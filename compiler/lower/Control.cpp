// convert-tile-to-sm: loops, branches, regions, scalars.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

// By one lane for its whole warp, whose lanes have all read what was there and will all read what is there now.
void Lowering::writeRecord(int64_t word, ValueRange values) {
  ::sm::WarpSyncOp::create(b, loc);
  auto writer = scf::IfOp::create(b, loc, isLane0(), false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(writer.thenBlock()->getTerminator());
    Value at = add(add(sharedBase(), kernel->getAttrOfType<IntegerAttr>("records").getInt() + 4 * word),
                   mul(warp, recordBytes));
    for (size_t i = 0; i < values.size(); i += 2)
      ::sm::StoreSharedOp::create(b, loc, values.slice(i, std::min<size_t>(2, values.size() - i)), add(at, 4 * i),
                                  false);
  }
  ::sm::WarpSyncOp::create(b, loc);
  forgetLane();
}

// Counted up to 0: the bound, which is read afresh where the variable itself is asked for, needs no register.
LogicalResult Lowering::lowerFor(scf::ForOp op) {
  SmallVector<Value *> moved = movedIn(op);
  SmallVector<Value> inits = flat(op.getInits());
  unsigned own = inits.size();
  llvm::append_range(inits, load(moved));
  auto loop = scf::ForOp::create(b, loc, sub(scalar(op.getLowerBound()), scalar(op.getUpperBound())), i32(0),
                                 scalar(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  if (!loop.getBody()->empty())
    loop.getBody()->back().erase();
  b.setInsertionPointToStart(loop.getBody());
  forgetLane();
  regs[op.getInductionVar()] = {loop.getInductionVar()};
  ValueRange args = loop.getRegionIterArgs();
  bind(op.getRegionIterArgs(), args.take_front(own));
  store(moved, args.drop_front(own));
  // ptxas takes what a loop of unknown length has counted for different in each lane: descriptors that are computed
  // from it would have to cross to uniform registers one by one.
  for (Value *place : moved)
    *place = uniform(*place);
  if (failed(lowerBlock(*op.getBody())))
    return failure();
  SmallVector<Value> yields = flat(op.getYieldedValues());
  llvm::append_range(yields, load(moved));
  scf::YieldOp::create(b, loc, yields);
  bind(op.getResults(), loop.getResults().take_front(own));
  store(moved, loop.getResults().drop_front(own));
  forgetLane();
  return success();
}

LogicalResult Lowering::lowerIf(scf::IfOp op) {
  SmallVector<Value *> moved = movedIn(op);
  SmallVector<Value> before = load(moved);
  SmallVector<Type> types;
  for (Type t : op.getResultTypes())
    llvm::append_range(types, typesOf(t));
  unsigned own = types.size();
  for (Value v : before)
    types.push_back(v.getType());
  bool both = !types.empty() || op.elseBlock();
  auto branch = scf::IfOp::create(b, loc, types, scalar(op.getCondition()), both);
  OpBuilder::InsertionGuard guard(b);
  auto side = [&](Block *into, Block *from) -> LogicalResult {
    if (!into->empty())
      into->back().erase();
    b.setInsertionPointToStart(into);
    forgetLane();
    store(moved, before);
    if (from && failed(lowerBlock(*from)))
      return failure();
    SmallVector<Value> yields;
    if (from)
      yields = flat(from->getTerminator()->getOperands());
    llvm::append_range(yields, load(moved));
    scf::YieldOp::create(b, loc, yields);
    return success();
  };
  if (failed(side(branch.thenBlock(), op.thenBlock())))
    return failure();
  if (both && failed(side(branch.elseBlock(), op.elseBlock())))
    return failure();
  bind(op.getResults(), branch.getResults().take_front(own));
  store(moved, branch.getResults().drop_front(own));
  forgetLane();
  return success();
}

// A branch a warp: in each, the block row is a constant.
LogicalResult Lowering::lowerPerWarp(PerWarpOp op) {
  OpBuilder::InsertionGuard guard(b);
  for (int64_t w = 0; w < warps; ++w) {
    bool last = w + 1 == warps;
    staticWarp.reset(); // the condition is about the warp at run time
    forgetLane();
    if (!last) {
      auto branch = scf::IfOp::create(b, loc, eq(warpInCopy(), w), true);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      forgetLane();
      staticWarp = w;
      if (failed(lowerBlock(op.getBody().front())))
        return failure();
      b.setInsertionPoint(branch.elseBlock()->getTerminator());
      continue;
    }
    forgetLane();
    staticWarp = w;
    if (failed(lowerBlock(op.getBody().front())))
      return failure();
  }
  staticWarp.reset();
  forgetLane();
  return success();
}

LogicalResult Lowering::lowerOneWarp(OneWarpOp op) {
  SmallVector<Value *> moved = movedIn(op);
  SmallVector<Value> others;
  for (Value result : op.getResults())
    for (Type type : typesOf(result.getType()))
      others.push_back(type.isF32() ? f32(0) : i32(0));
  unsigned own = others.size();
  llvm::append_range(others, load(moved));
  int64_t chosen = op->getAttrOfType<IntegerAttr>("warp").getInt();
  auto branch = scf::IfOp::create(b, loc, ValueRange(others).getTypes(), eq(warpInCopy(), chosen), !others.empty());
  OpBuilder::InsertionGuard guard(b);
  if (!branch.thenBlock()->empty())
    branch.thenBlock()->back().erase();
  b.setInsertionPointToStart(branch.thenBlock());
  forgetLane();
  Block &body = op.getBody().front();
  if (failed(lowerBlock(body)))
    return failure();
  SmallVector<Value> yields;
  if (own)
    yields = flat(body.getTerminator()->getOperands());
  llvm::append_range(yields, load(moved));
  scf::YieldOp::create(b, loc, yields);
  if (!others.empty()) {
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, loc, others);
  }
  bind(op.getResults(), branch.getResults().take_front(own));
  store(moved, branch.getResults().drop_front(own));
  forgetLane();
  return success();
}

void Lowering::branchOnCopy(function_ref<void(int64_t)> body) {
  OpBuilder::InsertionGuard guard(b);
  for (int64_t i = 0; i + 1 < copies; ++i) {
    auto branch = scf::IfOp::create(b, loc, eq(copyIndex(), i), true);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    body(i);
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
  }
  body(copies - 1);
}

// A named barrier for each copy: it waits on its own, and the copy before it arrives there. Barrier ids are constants:
// with one in a register ptxas reserves all sixteen.
LogicalResult Lowering::lowerTurn(TurnOp op) {
  int64_t id = role->getAttrOfType<IntegerAttr>("turn_barrier").getInt(), threads = 2 * warps * 32;
  branchOnCopy([&](int64_t i) { ::sm::BarSyncOp::create(b, loc, id + i, threads); });
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  for (auto [result, yielded] : llvm::zip_equal(op.getResults(), op.getBody().front().getTerminator()->getOperands())) {
    if (isa<PendingType>(result.getType()))
      alias[result] = yielded;
    else
      regs[result] = flat(yielded);
  }
  branchOnCopy([&](int64_t i) { ::sm::BarArriveOp::create(b, loc, id + (i + 1) % copies, threads); });
  return success();
}

// Copies take iterations by turns, counted through all items: copy i the numbers = i modulo their number. The record
// says with which iteration of the item in work this copy begins.
LogicalResult Lowering::lowerShare(ShareOp op) {
  fields[op.getFirst()] = FirstShared;
  regs[op.getStep()] = {i32(copies)};
  return success();
}

// All threads of the grid, sixteen bytes each.
void Lowering::lowerClear(ClearOp op) {
  SmallVector<Value> &w = work.at(op.getItems());
  ViewRef &view = views.at(op.getView());
  auto type = cast<ViewType>(op.getView().getType());
  int64_t vectors = intOf(type.getDims()[2]) * 2 / 16, threads = kernel->getAttrOfType<IntegerAttr>("threads").getInt();
  Value tokens = w[4], heads = w[5];
  Value last = wide(sequenceOffset(w, w[2]));
  last = select(cmp(arith::CmpIPredicate::ne, w[0], i64(0)), last, wide(tokens)); // a dense batch has no tail
  Value rows = arith::MaxSIOp::create(b, loc, sub(wide(tokens), last), i64(0));
  Value perRow = wide(mul(heads, vectors));
  Value thread = ::sm::ThreadOp::create(b, loc, b.getI32Type()), block = ::sm::BlockOp::create(b, loc, b.getI32Type()),
        blocks = ::sm::BlocksOp::create(b, loc, b.getI32Type());
  Value start = add(mul(wide(block), threads), wide(thread));
  auto loop = scf::ForOp::create(b, loc, start, mul(rows, perRow), mul(wide(blocks), threads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  Value row = add(last, Value(arith::DivUIOp::create(b, loc, i, perRow))),
        rest = arith::RemUIOp::create(b, loc, i, perRow);
  Value head = arith::DivUIOp::create(b, loc, rest, i64(vectors)),
        vector = arith::RemUIOp::create(b, loc, rest, i64(vectors));
  Value at = add(mul(row, view.strides[0]), mul(head, view.strides[1]));
  Value to = add(view.pointer, add(mul(at, 2), mul(vector, 16)));
  Value zero = i32(0);
  ::sm::StoreGlobalOp::create(b, loc, ValueRange{zero, zero, zero, zero}, to, yes(), false);
}
