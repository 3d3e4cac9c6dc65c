// convert-tile-to-sm: loops, branches, regions, scalars.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

namespace {
SmallVector<Value> load(ArrayRef<Value *> places) {
  return llvm::map_to_vector(places, [](Value *p) { return *p; });
}
void store(ArrayRef<Value *> places, ValueRange values) {
  for (auto [p, v] : llvm::zip_equal(places, values))
    *p = v;
}
} // namespace

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

// Offset of a sequence on the token axis. One outside it is cut to it: nothing outside the caller's tensors is touched.
Value Lowering::sequenceOffset(ValueRange work, Value index) {
  Value cu = work[0], i = wide(index);
  Value packed = cmp(arith::CmpIPredicate::ne, cu, i64(0));
  auto load = [&](Type type, int64_t bytes, int64_t isWide) {
    Value here = arith::AndIOp::create(b, loc, packed, eq(work[1], isWide));
    return ::sm::LoadGlobalOp::create(b, loc, TypeRange{type}, add(cu, mul(i, bytes)), here, false).getResult(0);
  };
  Value given = arith::AddIOp::create(b, loc, wide(load(b.getI32Type(), 4, 0)), load(b.getI64Type(), 8, 1));
  Value v = arith::MaxSIOp::create(b, loc, select(packed, given, mul(i, wide(work[3]))), i64(0));
  return arith::TruncIOp::create(b, loc, b.getI32Type(), Value(arith::MinSIOp::create(b, loc, v, wide(work[4]))));
}

// Items: sequence by sequence, all v-heads of one, all V blocks of a head. Blocks take them in strides of the grid. The
// item lies in a record of the warp's: a role with few registers reads what it needs when it needs it.
LogicalResult Lowering::lowerForeach(ForeachOp op) {
  auto items = cast<ItemsType>(op.getItems().getType());
  int64_t split = intOf(items.getSplit()), columns = intOf(items.getColumns());
  writeRecord(6, {copyIndex(), ::sm::BlockOp::create(b, loc, b.getI32Type())});
  SmallVector<Value *> carried = movedIn(op);
  SmallVector<Value> inits = load(carried);
  auto loop = scf::WhileOp::create(b, loc, ValueRange(inits).getTypes(), inits);
  OpBuilder::InsertionGuard guard(b);
  // Read afresh: what LLVM computes from parameters in front of the loop stays in registers around it.
  auto parameters = [&] {
    SmallVector<Value> w;
    for (Value v : work.at(op.getItems()))
      w.push_back(::sm::OpaqueOp::create(b, loc, v));
    return w;
  };
  Block *before =
      b.createBlock(&loop.getBefore(), {}, ValueRange(inits).getTypes(), SmallVector<Location>(inits.size(), loc));
  forgetLane();
  SmallVector<Value> w = parameters();
  Value more = cmp(arith::CmpIPredicate::slt, field(7), mul(mul(w[2], w[5]), split));
  scf::ConditionOp::create(b, loc, more, before->getArguments());

  Block *body =
      b.createBlock(&loop.getAfter(), {}, ValueRange(inits).getTypes(), SmallVector<Location>(inits.size(), loc));
  forgetLane();
  store(carried, body->getArguments());
  w = parameters();
  Value item = field(7), perSequence = mul(w[5], split);
  Value sequence = arith::DivUIOp::create(b, loc, item, perSequence);
  Value rest = arith::RemUIOp::create(b, loc, item, perSequence);
  Value head = split == 1 ? rest : Value(arith::DivUIOp::create(b, loc, rest, i32(split)));
  Value part = split == 1 ? i32(0) : Value(arith::RemUIOp::create(b, loc, rest, i32(split)));
  Value begin = sequenceOffset(w, sequence);
  Value end = arith::MaxSIOp::create(b, loc, sequenceOffset(w, add(sequence, 1)), begin);
  writeRecord(0, {begin, end, sequence, Value(arith::DivUIOp::create(b, loc, head, w[6])), head, mul(part, columns)});
  for (int64_t i = 1; i < 5; ++i)
    fields[op.getBody().getArgument(i)] = i + 1;
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  Value next = field(6);
  if (auto shares = op.getBody().getOps<ShareOp>(); !shares.empty()) {
    next = sub(next, Value(arith::RemUIOp::create(b, loc, scalar((*shares.begin()).getCount()), i32(copies))));
    next = select(cmp(arith::CmpIPredicate::slt, next, i32(0)), add(next, copies), next);
  }
  Value blocks = ::sm::BlocksOp::create(b, loc, b.getI32Type());
  writeRecord(6, {next, add(field(7), blocks)});
  scf::YieldOp::create(b, loc, load(carried));
  store(carried, loop.getResults());
  forgetLane();
  return success();
}

LogicalResult Lowering::lowerFor(scf::ForOp op) {
  SmallVector<Value *> moved = movedIn(op);
  SmallVector<Value> inits = flat(op.getInits());
  unsigned own = inits.size();
  llvm::append_range(inits, load(moved));
  auto loop =
      scf::ForOp::create(b, loc, scalar(op.getLowerBound()), scalar(op.getUpperBound()), scalar(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  if (!loop.getBody()->empty())
    loop.getBody()->back().erase();
  b.setInsertionPointToStart(loop.getBody());
  forgetLane();
  regs[op.getInductionVar()] = {loop.getInductionVar()};
  ValueRange args = loop.getRegionIterArgs();
  bind(op.getRegionIterArgs(), args.take_front(own));
  store(moved, args.drop_front(own));
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
  SmallVector<Value> before = load(moved);
  int64_t chosen = op->getAttrOfType<IntegerAttr>("warp").getInt();
  auto branch = scf::IfOp::create(b, loc, ValueRange(before).getTypes(), eq(warpInCopy(), chosen), !before.empty());
  OpBuilder::InsertionGuard guard(b);
  if (!branch.thenBlock()->empty())
    branch.thenBlock()->back().erase();
  b.setInsertionPointToStart(branch.thenBlock());
  forgetLane();
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  scf::YieldOp::create(b, loc, load(moved));
  if (!before.empty()) {
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, loc, before);
  }
  store(moved, branch.getResults());
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
  fields[op.getFirst()] = 6;
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
