// convert-tile-to-sm: global memory. Offsets are 64-bit.
#include "compiler/lower/Lowering.h"
#include <set>
using namespace mlir;
using namespace tile;

// Box coordinates of a chunk's rows, innermost first: a dimension that ends behind the last valid row clips the box
// there (the map is described in runtime/format/kernel.h).
SmallVector<Value> Lowering::coordinates(Value column, Value head, Value chunk) {
  auto [first, valid] = rowsOf(chunk);
  return {column, head, sub(i32(this->chunk), valid), add(first, valid)};
}

// Of a copy; a matrix has no heads.
std::pair<Value, Value> Lowering::headAndColumn(Value view, ValueRange index) {
  bool heads = cast<ViewType>(view.getType()).getDims().size() == 3;
  return {heads ? scalar(index[0]) : i32(0), index.size() > heads ? scalar(index.back()) : i32(0)};
}

void Lowering::lowerCopyIn(CopyInOp op) {
  auto type = cast<BufType>(op.getBuf().getType());
  const BufferRef &slot = buffers.at(op.getBuf());
  Value barrier = slotBarrier(slot.ring, slot.track, "full");
  if (cast<ViewType>(op.getView().getType()).getPacked()) { // a fragment's columns stand behind each other
    SmallVector<Value> index = flat(op.getIndex());
    Value column = index.back();
    index.back() = i32(0);
    Value at = add(elementAddress(op.getView(), index, {}, 4), wide(mul(column, 4 * type.dim(0))));
    ::sm::BulkCopyOp::create(b, loc, at, copiedBytes(op), addressOf(op.getBuf()), barrier);
    return;
  }
  auto [head, column] = headAndColumn(op.getView(), op.getIndex());
  for (int64_t box = 0; box < boxes(type); ++box)
    ::sm::BulkLoadOp::create(b, loc, views.at(op.getView()).map,
                             coordinates(add(column, box * boxColumns), head, op.getChunk()),
                             add(addressOf(op.getBuf()), box * boxBytes(type)), barrier);
}

void Lowering::lowerCopyOut(CopyOutOp op) {
  auto type = cast<BufType>(op.getBuf().getType());
  auto issuer = scf::IfOp::create(b, loc, isFirstThread(), false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(issuer.thenBlock()->getTerminator());
    auto [head, column] = headAndColumn(op.getView(), op.getIndex());
    for (int64_t box = 0; box < boxes(type); ++box)
      ::sm::BulkStoreOp::create(b, loc, add(addressOf(op.getBuf()), box * boxBytes(type)), views.at(op.getView()).map,
                                coordinates(add(column, box * boxColumns), head, op.getChunk()));
    ::sm::BulkCommitOp::create(b, loc);
  }
  forgetLane();
}

// Place of an element: leading axes by `index`, the last ones by element offsets in `inner` (null: none).
Value Lowering::elementOffset(Value view, ValueRange index, ArrayRef<Value> inner) {
  ViewRef &v = views.at(view);
  Value at;
  auto accumulate = [&](Value i, Value stride) {
    Value x = i.getType().isInteger(64) ? i : wide(i);
    if (stride)
      x = mul(x, stride);
    at = at ? add(at, x) : x;
  };
  for (auto [axis, i] : llvm::enumerate(index))
    accumulate(i, v.strides[axis]);
  for (auto [k, i] : llvm::enumerate(inner))
    if (i)
      accumulate(i, v.strides[index.size() + k]);
  return at;
}
Value Lowering::elementAddress(Value view, ValueRange index, ArrayRef<Value> inner, int64_t bytes) {
  return add(views.at(view).pointer, mul(elementOffset(view, index, inner), bytes));
}

// Emits a body for fp32 elements and one for 16-bit elements of a view whose element type is known at run time.
SmallVector<Value> Lowering::ifWide(Value view, TypeRange types, function_ref<SmallVector<Value>(bool)> body) {
  if (!views.at(view).element)
    return body(cast<ViewType>(view.getType()).getElement().isF32());
  // Opaque: the comparison would be hoisted and occupy a predicate for the whole kernel.
  Value element = ::sm::OpaqueOp::create(b, loc, views.at(view).element);
  auto branch = scf::IfOp::create(b, loc, types, eq(element, 0), true);
  OpBuilder::InsertionGuard guard(b);
  for (bool wide : {true, false}) {
    Block *block = wide ? branch.thenBlock() : branch.elseBlock();
    if (!block->empty())
      block->back().erase();
    b.setInsertionPointToStart(block);
    forgetLane();
    scf::YieldOp::create(b, loc, body(wide));
  }
  forgetLane();
  return llvm::to_vector_of<Value>(branch.getResults());
}

// The low or high 16 bits of a word as fp32: bf16 (1) or f16 (2).
Value Lowering::widen(Value bits, Value element, bool high) {
  auto [b0, b1] = unpack(b.getBF16Type(), bits);
  auto [h0, h1] = unpack(b.getF16Type(), bits);
  return select(eq(element, 2), high ? h1 : h0, high ? b1 : b0);
}

void Lowering::lowerLoad(LoadOp op) {
  auto type = cast<FragType>(op.getType());
  regs[op.getFrag()] = type.dim(0) > 1 ? loadMatrix(op) : type.dim(1) > 1 ? loadRow(op) : loadElement(op);
}

SmallVector<Value> Lowering::loadElement(LoadOp op) {
  ViewRef &view = views.at(op.getView());
  return ifWide(op.getView(), {b.getF32Type()}, [&](bool full) {
    Value there = cmp(arith::CmpIPredicate::ne, view.pointer, i64(0));
    Value at = elementAddress(op.getView(), flat(op.getIndex()), {}, full ? 4 : 2);
    Value v =
        ::sm::LoadGlobalOp::create(b, loc, TypeRange{full ? Type(b.getF32Type()) : b.getI32Type()}, at, there, !full)
            .getResult(0);
    return SmallVector<Value>{full ? v : widen(v, view.element, false)};
  });
}

// Two tokens a lane; past the chunk's end, zeros. Nothing is computed from the bits: the warp need not wait for them.
SmallVector<Value> Lowering::loadRow(LoadOp op) {
  ViewRef &view = views.at(op.getView());
  auto [first, rows] = rowsOf(op.getChunk());
  Value token = shl(lane(), 1);
  SmallVector<Value> index{add(first, token)};
  llvm::append_range(index, flat(op.getIndex()));
  Value at = elementOffset(op.getView(), index, {}), step = view.strides[0] ? view.strides[0] : i64(1);
  Value there[] = {cmp(arith::CmpIPredicate::slt, token, rows), cmp(arith::CmpIPredicate::slt, add(token, 1), rows)};
  return ifWide(op.getView(), SmallVector<Type>(2, b.getI32Type()), [&](bool full) {
    int64_t bytes = full ? 4 : 2;
    Value here = add(view.pointer, mul(at, bytes));
    SmallVector<Value> out;
    for (Value valid : there) {
      auto load = ::sm::LoadGlobalOp::create(b, loc, TypeRange{b.getI32Type()}, here, valid, !full);
      out.push_back(load.getResult(0));
      here = add(here, mul(step, bytes));
    }
    return out;
  });
}

// Opaque: else LLVM may widen them where they are loaded.
void Lowering::lowerWiden(WidenOp op) {
  Value element = views.at(op.getView()).element;
  SmallVector<Value> bits;
  for (Value loaded : regs.at(op.getBits()))
    bits.push_back(::sm::OpaqueOp::create(b, loc, loaded));
  regs[op.getResult()] = ifWide(op.getView(), SmallVector<Type>(bits.size(), b.getF32Type()), [&](bool full) {
    return llvm::map_to_vector(bits, [&](Value v) { return full ? asFloat(v) : widen(v, element, false); });
  });
}

// Visits a thread's registers of a matrix in global memory, the last two axes of its view, columns 8j + 2q + e and rows
// + 8h, with the address of each (with `pairs`: of each two).
void Lowering::forEachAddress(Value view, ValueRange index, FragType type, int64_t bytes, bool pairs,
                              function_ref<void(int64_t r, Value at)> visit) {
  ViewRef &v = views.at(view);
  Value l = lane(), w = warpInCopy();
  unsigned rows = index.size() - 2, columns = rows + 1;
  Value row = add(add(index[rows], shl(w, 4)), shr(l, 2)), column = add(index[columns], shl(andi(l, 3), 1));
  Value at = elementAddress(view, index.take_front(rows), {row, column}, bytes);
  auto step = [&](unsigned axis, int64_t n) {
    return v.strides[axis] ? mul(v.strides[axis], n * bytes) : i64(n * bytes);
  };
  for (int64_t j = 0; j < type.dim(1) / 8; ++j) {
    for (int64_t r = 4 * j; r < 4 * j + 4; r += pairs ? 2 : 1) {
      Value here = add(at, step(columns, 8 * j));
      if (r / 2 % 2)
        here = add(here, step(rows, 8));
      if (r % 2)
        here = add(here, step(columns, 1));
      visit(r, here);
    }
  }
}

// The same of a packed one: where this thread's first four registers lie.
Value Lowering::quadAddress(Value view, ValueRange index) {
  return add(elementAddress(view, index, {}, 4), wide(quadOffset()));
}

SmallVector<Value> Lowering::loadMatrix(LoadOp op) {
  auto type = cast<FragType>(op.getType());
  ViewRef &view = views.at(op.getView());
  if (cast<ViewType>(op.getView().getType()).getPacked()) {
    SmallVector<Value> out;
    Value at = quadAddress(op.getView(), flat(op.getIndex()));
    for (int64_t r = 0; r < registersOf(type); r += 4) {
      auto load = ::sm::LoadGlobalOp::create(b, loc, SmallVector<Type>(4, b.getF32Type()), add(at, r / 4 * quadBytes()),
                                             yes(), false);
      llvm::append_range(out, load.getValues());
    }
    return out;
  }
  bool pairs = !view.strides.back(); // the columns of a row are contiguous
  return ifWide(op.getView(), SmallVector<Type>(registersOf(type), b.getF32Type()), [&](bool full) {
    Value there = cmp(arith::CmpIPredicate::ne, view.pointer, i64(0));
    SmallVector<Value> out;
    forEachAddress(op.getView(), flat(op.getIndex()), type, full ? 4 : 2, pairs, [&](int64_t, Value at) {
      SmallVector<Type> types(pairs && full ? 2 : 1, full ? Type(b.getF32Type()) : b.getI32Type());
      auto load = ::sm::LoadGlobalOp::create(b, loc, types, at, there, !full && !pairs);
      if (full) {
        llvm::append_range(out, load.getValues());
        return;
      }
      out.push_back(widen(load.getResult(0), view.element, false));
      if (pairs)
        out.push_back(widen(load.getResult(0), view.element, true));
    });
    return out;
  });
}

void Lowering::lowerStore(StoreOp op) {
  auto type = cast<FragType>(op.getFrag().getType());
  ViewRef &view = views.at(op.getView());
  SmallVector<Value> v = regs.at(op.getFrag());
  bool pairs = !view.strides.back();
  if (cast<ViewType>(op.getView().getType()).getPacked()) {
    Value at = quadAddress(op.getView(), flat(op.getIndex()));
    for (int64_t r = 0; r < registersOf(type); r += 4)
      ::sm::StoreGlobalOp::create(b, loc, ArrayRef(v).slice(r, 4), add(at, r / 4 * quadBytes()), yes(), false);
    return;
  }
  if (!type.getElement().isF32()) { // a register is a pair already
    forEachAddress(op.getView(), flat(op.getIndex()), type, 2, true, [&](int64_t r, Value at) {
      ::sm::StoreGlobalOp::create(b, loc, ValueRange{v[r / 2]}, at, yes(), false);
    });
    return;
  }
  ifWide(op.getView(), {}, [&](bool full) {
    Value there = cmp(arith::CmpIPredicate::ne, view.pointer, i64(0));
    forEachAddress(op.getView(), flat(op.getIndex()), type, full ? 4 : 2, pairs, [&](int64_t r, Value at) {
      SmallVector<Value> words{v[r]};
      if (full && pairs)
        words.push_back(v[r + 1]);
      if (!full) {
        Value hi = pairs ? v[r + 1] : v[r];
        words = {select(eq(view.element, 2), pack(b.getF16Type(), v[r], hi), pack(b.getBF16Type(), v[r], hi))};
      }
      ::sm::StoreGlobalOp::create(b, loc, words, at, there, !full && !pairs);
    });
    return SmallVector<Value>();
  });
}

// By one thread, if there is a matrix.
void Lowering::lowerPrefetch(PrefetchOp op) {
  auto type = cast<ViewType>(op.getView().getType());
  ViewRef &view = views.at(op.getView());
  unsigned rank = type.getDims().size();
  int64_t elements = intOf(type.getDims()[rank - 2]) * intOf(type.getDims()[rank - 1]);
  Value there = cmp(arith::CmpIPredicate::ne, view.pointer, i64(0));
  auto branch = scf::IfOp::create(b, loc, Value(arith::AndIOp::create(b, loc, isLane0(), there)), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  forgetLane();
  Value bytes = select(eq(view.element, 0), i32(4), i32(2)), offset = i64(0);
  for (auto [axis, i] : llvm::enumerate(flat(op.getIndex())))
    offset = add(offset, mul(wide(i), view.strides[axis]));
  ::sm::BulkPrefetchOp::create(b, loc, add(view.pointer, mul(offset, wide(bytes))), mul(bytes, elements));
  forgetLane();
}

// One thread spins, the others wait for it.
void Lowering::lowerAwait(AwaitOp op) {
  bool alone = op->getParentOfType<OneWarpOp>() != nullptr;
  forgetLane();
  Value at = elementAddress(op.getFlags(), flat(op.getIndex()), {}, 4), count = scalar(op.getCount());
  auto spinner = scf::IfOp::create(b, loc, alone ? isLane0() : isFirstThread(), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(spinner.thenBlock()->getTerminator());
  ::sm::FlagWaitOp::create(b, loc, at, count);
  b.setInsertionPointAfter(spinner);
  forgetLane();
  if (!alone)
    return roleSync();
  ::sm::WarpSyncOp::create(b, loc);
  ::sm::FenceAsyncGlobalOp::create(b, loc); // whichever thread issues the copies
  forgetLane();
}

void Lowering::lowerSignal(SignalOp op) {
  if (op.getBy())
    ::sm::BarSyncOp::create(b, loc, role->getAttrOfType<IntegerAttr>("meet_barrier").getInt(), copies * warps * 32);
  else if (!op.getBulk())
    roleSync();
  forgetLane();
  Value at = elementAddress(op.getFlags(), flat(op.getIndex()), {}, 4);
  // Not by the warp that next waits for others: it takes a while until all that was stored is seen.
  Value last = arith::AndIOp::create(b, loc, eq(warpInCopy(), warps - 1), isLane0());
  if (op.getBy())
    last = arith::AndIOp::create(b, loc, last, scalar(op.getBy()));
  auto first = scf::IfOp::create(b, loc, op.getBulk() ? isFirstThread() : last, false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(first.thenBlock()->getTerminator());
    if (op.getBulk()) // which this thread has issued
      ::sm::BulkWaitOp::create(b, loc, 0, false);
    ::sm::FlagRaiseOp::create(b, loc, at);
  }
  forgetLane();
}

// The item's row of stamps.
Value Lowering::stampRow(Value view) {
  Value block = ::sm::BlockOp::create(b, loc, b.getI32Type());
  Value item = arith::MinSIOp::create(b, loc, field(ItemNumber), i32(StampOp::rows - 1));
  ViewRef &v = views.at(view);
  return add(v.pointer, mul(mul(wide(add(mul(block, StampOp::rows), item)), v.strides[0]), 8));
}

// One thread of the role's first copy writes.
void Lowering::lowerStamp(StampOp op) {
  forgetLane();
  Value value = op.getGlobal() ? Value(::sm::TimerOp::create(b, loc)) : Value(::sm::ClockOp::create(b, loc));
  if (!op.waits()) {
    ::sm::StoreGlobalOp::create(b, loc, ValueRange{value}, add(stampRow(op.getView()), 8 * op.getSlot()),
                                isRolesFirstThread(), false);
    return;
  }
  auto mine = scf::IfOp::create(b, loc, isRolesFirstThread(), false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(mine.thenBlock()->getTerminator());
    Value at = add(sharedBase(), kernel->getAttrOfType<IntegerAttr>("stamps").getInt() + 4 * op.getSlot());
    Value low = arith::TruncIOp::create(b, loc, b.getI32Type(), value);
    ::sm::StoreSharedOp::create(b, loc, ValueRange{low}, at, false);
  }
  forgetLane();
}

void Lowering::lowerRecord(RecordOp op) {
  forgetLane();
  ::sm::StoreGlobalOp::create(b, loc, ValueRange{wide(scalar(op.getValue()))},
                              add(stampRow(op.getView()), 8 * op.getSlot()), isRolesFirstThread(), false);
}

static std::set<int64_t> columnsThatWait(ForeachOp op) {
  std::set<int64_t> columns;
  op.walk([&](StampOp stamp) {
    if (stamp.waits())
      columns.insert(stamp.getSlot());
  });
  return columns;
}

// What waits in shared memory is made 0 and, when an item `ends`, goes to its row before: 0 where it has stamped
// nothing.
void Lowering::clearStamps(ForeachOp op, bool ends) {
  std::set<int64_t> columns = columnsThatWait(op);
  if (columns.empty())
    return;
  Value view;
  op.walk([&](StampOp stamp) { view = stamp.getView(); });
  forgetLane();
  auto mine = scf::IfOp::create(b, loc, isRolesFirstThread(), false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(mine.thenBlock()->getTerminator());
    Value row = ends ? stampRow(view) : Value();
    Value at = add(sharedBase(), kernel->getAttrOfType<IntegerAttr>("stamps").getInt());
    Value now = ::sm::ClockOp::create(b, loc), nowLow = arith::TruncIOp::create(b, loc, b.getI32Type(), now);
    for (int64_t column : columns) {
      Value place = add(at, 4 * column);
      if (ends) {
        Value low = ::sm::LoadSharedOp::create(b, loc, TypeRange{b.getI32Type()}, place).getResult(0);
        Value ago = arith::ExtUIOp::create(b, loc, b.getI64Type(), sub(nowLow, low)); // the upper halves are not kept
        Value stamp = select(eq(low, 0), i64(0), sub(now, ago));
        ::sm::StoreGlobalOp::create(b, loc, ValueRange{stamp}, add(row, 8 * column), yes(), false);
      }
      ::sm::StoreSharedOp::create(b, loc, ValueRange{i32(0)}, place, false);
    }
  }
  forgetLane();
}
