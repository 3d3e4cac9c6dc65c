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

// Items: sequence by sequence, all v-heads of one, all V blocks of a head. Blocks take them in strides of the grid.
LogicalResult Lowering::lowerForeach(ForeachOp op) {
  SmallVector<Value> &w = work.at(op.getItems());
  Value cu = w[0], cuWide = w[1], sequences = w[2], length = w[3], tokens = w[4], heads = w[5], ratio = w[6];
  auto items = cast<ItemsType>(op.getItems().getType());
  int64_t split = intOf(items.getSplit()), columns = intOf(items.getColumns());
  Value perSequence = mul(heads, split);
  Value count = mul(sequences, perSequence);
  Value block = ::sm::BlockOp::create(b, loc, b.getI32Type()), blocks = ::sm::BlocksOp::create(b, loc, b.getI32Type());
  SmallVector<Value *> carried = movedIn(op);
  carried.push_back(&turnOffset);
  auto loop = scf::ForOp::create(b, loc, block, count, blocks, load(carried));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  forgetLane();
  store(carried, loop.getRegionIterArgs());
  Value item = loop.getInductionVar();
  Value sequence = arith::DivUIOp::create(b, loc, item, perSequence);
  Value rest = arith::RemUIOp::create(b, loc, item, perSequence);
  Value head = split == 1 ? rest : Value(arith::DivUIOp::create(b, loc, rest, i32(split)));
  Value part = split == 1 ? i32(0) : Value(arith::RemUIOp::create(b, loc, rest, i32(split)));
  // Offsets outside the token axis, or decreasing ones, are cut to it: nothing outside the caller's tensors is touched.
  Value packed = cmp(arith::CmpIPredicate::ne, cu, i64(0));
  Value narrow = arith::AndIOp::create(b, loc, packed, eq(cuWide, 0)), broad = arith::AndIOp::create(b, loc, packed, eq(cuWide, 1));
  auto offset = [&](Value index) {
    Value i = wide(index);
    Value lo = ::sm::LoadGlobalOp::create(b, loc, TypeRange{b.getI32Type()}, add(cu, mul(i, 4)), narrow, false).getResult(0);
    Value hi = ::sm::LoadGlobalOp::create(b, loc, TypeRange{b.getI64Type()}, add(cu, mul(i, 8)), broad, false).getResult(0);
    Value dense = mul(i, wide(length));
    Value v = select(packed, arith::AddIOp::create(b, loc, wide(lo), hi), dense);
    v = arith::MaxSIOp::create(b, loc, v, i64(0));
    return Value(arith::TruncIOp::create(b, loc, b.getI32Type(), Value(arith::MinSIOp::create(b, loc, v, wide(tokens)))));
  };
  Value begin = offset(sequence), end = arith::MaxSIOp::create(b, loc, offset(add(sequence, 1)), begin);
  ValueRange args = op.getBody().getArguments();
  regs[args[0]] = {begin, end};
  regs[args[1]] = {sequence};
  regs[args[2]] = {Value(arith::DivUIOp::create(b, loc, head, ratio))};
  regs[args[3]] = {head};
  regs[args[4]] = {mul(part, columns)};
  if (failed(lowerBlock(op.getBody().front()))) return failure();
  b.setInsertionPointToEnd(loop.getBody());
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
  auto bound = [&](Value v) { return regs.at(v)[0]; };
  auto loop = scf::ForOp::create(b, loc, bound(op.getLowerBound()), bound(op.getUpperBound()), bound(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  if (!loop.getBody()->empty()) loop.getBody()->back().erase();
  b.setInsertionPointToStart(loop.getBody());
  forgetLane();
  regs[op.getInductionVar()] = {loop.getInductionVar()};
  ValueRange args = loop.getRegionIterArgs();
  bind(op.getRegionIterArgs(), args.take_front(own));
  store(moved, args.drop_front(own));
  if (failed(lowerBlock(*op.getBody()))) return failure();
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
  auto branch = scf::IfOp::create(b, loc, types, regs.at(op.getCondition())[0], both);
  OpBuilder::InsertionGuard guard(b);
  auto side = [&](Block *into, Block *from) -> LogicalResult {
    if (!into->empty()) into->back().erase();
    b.setInsertionPointToStart(into);
    forgetLane();
    store(moved, before);
    if (from && failed(lowerBlock(*from))) return failure();
    SmallVector<Value> yields;
    if (from) yields = flat(from->getTerminator()->getOperands());
    llvm::append_range(yields, load(moved));
    scf::YieldOp::create(b, loc, yields);
    return success();
  };
  if (failed(side(branch.thenBlock(), op.thenBlock()))) return failure();
  if (both && failed(side(branch.elseBlock(), op.elseBlock()))) return failure();
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
    if (!last) {
      auto branch = scf::IfOp::create(b, loc, eq(roleWarp, w), true);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      forgetLane();
      staticWarp = w;
      if (failed(lowerBlock(op.getBody().front()))) return failure();
      b.setInsertionPoint(branch.elseBlock()->getTerminator());
      continue;
    }
    forgetLane();
    staticWarp = w;
    if (failed(lowerBlock(op.getBody().front()))) return failure();
  }
  staticWarp.reset();
  forgetLane();
  return success();
}

LogicalResult Lowering::lowerOneWarp(OneWarpOp op) {
  SmallVector<Value *> moved = movedIn(op);
  SmallVector<Value> before = load(moved);
  int64_t chosen = op->getAttrOfType<IntegerAttr>("warp").getInt();
  auto branch = scf::IfOp::create(b, loc, ValueRange(before).getTypes(), eq(roleWarp, chosen), !before.empty());
  OpBuilder::InsertionGuard guard(b);
  if (!branch.thenBlock()->empty()) branch.thenBlock()->back().erase();
  b.setInsertionPointToStart(branch.thenBlock());
  forgetLane();
  if (failed(lowerBlock(op.getBody().front()))) return failure();
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
    auto branch = scf::IfOp::create(b, loc, eq(copy, i), true);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    body(i);
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
  }
  body(copies - 1);
}

// A named barrier for each copy: it waits on its own, and the copy before it arrives there. Barrier ids are constants: with one
// in a register ptxas reserves all sixteen.
LogicalResult Lowering::lowerTurn(TurnOp op) {
  int64_t id = role->getAttrOfType<IntegerAttr>("turn_barrier").getInt(), threads = 2 * warps * 32;
  branchOnCopy([&](int64_t i) { ::sm::BarSyncOp::create(b, loc, id + i, threads); });
  if (failed(lowerBlock(op.getBody().front()))) return failure();
  for (auto [result, yielded] : llvm::zip_equal(op.getResults(), op.getBody().front().getTerminator()->getOperands())) {
    if (isa<PendingType>(result.getType()))
      alias[result] = yielded;
    else
      regs[result] = regs.at(yielded);
  }
  branchOnCopy([&](int64_t i) { ::sm::BarArriveOp::create(b, loc, id + (i + 1) % copies, threads); });
  return success();
}

// Copies take iterations by turns, counted through all items: copy i the numbers = i modulo their number.
LogicalResult Lowering::lowerShare(ShareOp op) {
  Value count = regs.at(op.getCount())[0];
  regs[op.getFirst()] = {turnOffset};
  regs[op.getStep()] = {i32(copies)};
  Value behind = arith::RemUIOp::create(b, loc, count, i32(copies)); // n mod copies
  Value next = sub(turnOffset, behind);
  turnOffset = select(cmp(arith::CmpIPredicate::slt, next, i32(0)), add(next, copies), next);
  return success();
}

void Lowering::lowerScalar(Operation &op) {
  if (auto chunks = dyn_cast<ChunksOp>(op)) {
    SmallVector<Value> &span = regs.at(chunks.getSpan());
    regs[chunks.getCount()] = {Value(arith::DivUIOp::create(b, loc, add(sub(span[1], span[0]), chunk - 1), i32(chunk)))};
  } else if (isa<ChunkOp>(op)) {
    SmallVector<Value> &span = regs.at(op.getOperand(0));
    Value first = add(span[0], mul(regs.at(op.getOperand(1))[0], chunk));
    Value valid = arith::MinSIOp::create(b, loc, sub(span[1], first), i32(chunk));
    regs[op.getResult(0)] = {first, Value(arith::MaxSIOp::create(b, loc, valid, i32(0)))};
  } else {
    IRMapping map;
    for (Value v : op.getOperands())
      map.map(v, regs.at(v)[0]);
    Operation *clone = b.clone(op, map);
    for (auto [from, to] : llvm::zip_equal(op.getResults(), clone->getResults()))
      regs[from] = {to};
  }
}

// All threads of the grid, sixteen bytes each.
void Lowering::lowerClear(ClearOp op) {
  SmallVector<Value> &w = work.at(op.getItems());
  ViewRef &view = views.at(op.getView());
  auto type = cast<ViewType>(op.getView().getType());
  int64_t vectors = intOf(type.getDims()[2]) * 2 / 16, threads = kernel->getAttrOfType<IntegerAttr>("threads").getInt();
  Value cu = w[0], cuWide = w[1], tokens = w[4], heads = w[5];
  Value packed = cmp(arith::CmpIPredicate::ne, cu, i64(0));
  Value sequences = wide(w[2]);
  Value lo = ::sm::LoadGlobalOp::create(b, loc, TypeRange{b.getI32Type()}, add(cu, mul(sequences, 4)),
                                        arith::AndIOp::create(b, loc, packed, eq(cuWide, 0)), false).getResult(0);
  Value hi = ::sm::LoadGlobalOp::create(b, loc, TypeRange{b.getI64Type()}, add(cu, mul(sequences, 8)),
                                        arith::AndIOp::create(b, loc, packed, eq(cuWide, 1)), false).getResult(0);
  Value last = arith::MaxSIOp::create(b, loc, Value(arith::AddIOp::create(b, loc, wide(lo), hi)), i64(0));
  last = select(packed, last, wide(tokens)); // a dense batch has no tail
  Value rows = arith::MaxSIOp::create(b, loc, sub(wide(tokens), last), i64(0));
  Value perRow = wide(mul(heads, vectors));
  Value thread = ::sm::ThreadOp::create(b, loc, b.getI32Type()), block = ::sm::BlockOp::create(b, loc, b.getI32Type()),
        blocks = ::sm::BlocksOp::create(b, loc, b.getI32Type());
  Value start = add(mul(wide(block), threads), wide(thread));
  auto loop = scf::ForOp::create(b, loc, start, mul(rows, perRow), mul(wide(blocks), threads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  Value row = add(last, Value(arith::DivUIOp::create(b, loc, i, perRow))), rest = arith::RemUIOp::create(b, loc, i, perRow);
  Value head = arith::DivUIOp::create(b, loc, rest, i64(vectors)), vector = arith::RemUIOp::create(b, loc, rest, i64(vectors));
  Value at = add(mul(row, view.strides[0]), mul(head, view.strides[1]));
  Value to = add(view.pointer, add(mul(at, 2), mul(vector, 16)));
  Value zero = i32(0);
  ::sm::StoreGlobalOp::create(b, loc, ValueRange{zero, zero, zero, zero}, to, yes(), false);
}
