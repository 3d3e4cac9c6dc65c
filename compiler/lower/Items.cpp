// convert-tile-to-sm: where a block's work comes from. One warp draws an item and lays it into a slot of shared memory;
// every warp takes it from there.
#include "compiler/lower/Lowering.h"
#include "runtime/format/work.h"
#include <cstddef>
using namespace mlir;
using namespace tile;
using gdn::work::Drawn;
using gdn::work::Header;
using gdn::work::Item;

namespace {
constexpr int64_t itemBytes = sizeof(Item), slotBytes = sizeof(Drawn);
static_assert(offsetof(Drawn, item) == 0);
} // namespace

// A number at this place of an array of int32, or of int64; 0 where there is none.
Value Lowering::wideOrNot(Value array, Value index, Value isWide) {
  Value there = cmp(arith::CmpIPredicate::ne, array, i64(0));
  auto load = [&](Type type, int64_t bytes, int64_t ifWide) {
    Value here = arith::AndIOp::create(b, loc, there, eq(isWide, ifWide));
    return ::sm::LoadGlobalOp::create(b, loc, TypeRange{type}, add(array, mul(wide(index), bytes)), here, false)
        .getResult(0);
  };
  return arith::AddIOp::create(b, loc, wide(load(b.getI32Type(), 4, 0)), load(b.getI64Type(), 8, 1));
}

// Offset of a sequence on the token axis. One outside it is cut to it: nothing outside the caller's tensors is touched.
Value Lowering::sequenceOffset(ValueRange work, Value index) {
  Value packed = cmp(arith::CmpIPredicate::ne, work[0], i64(0)), given = wideOrNot(work[0], index, work[1]);
  Value v = arith::MaxSIOp::create(b, loc, select(packed, given, mul(wide(index), wide(work[3]))), i64(0));
  return arith::TruncIOp::create(b, loc, b.getI32Type(), Value(arith::MinSIOp::create(b, loc, v, wide(work[4]))));
}

// Read afresh: what LLVM computes from parameters in front of the loop stays in registers around it.
SmallVector<Value> Lowering::parameters(Value items) {
  return llvm::map_to_vector(work.at(items), [&](Value v) -> Value { return ::sm::OpaqueOp::create(b, loc, v); });
}

Value Lowering::itemSlot(Value number) {
  int64_t items = kernel->getAttrOfType<IntegerAttr>("items").getInt();
  return add(add(sharedBase(), items), mul(andi(number, itemSlots - 1), slotBytes));
}
Value Lowering::itemBarrier(Value number, bool full) {
  int64_t barriers = kernel->getAttrOfType<IntegerAttr>("item_barriers").getInt();
  return add(add(sharedBase(), barriers + (full ? 0 : 8 * itemSlots)), shl(andi(number, itemSlots - 1), 3));
}

ValueRange Lowering::slotWords(Value slot, size_t offset, size_t n) {
  SmallVector<Type> types(n, b.getI32Type());
  return ::sm::LoadSharedOp::create(b, loc, types, add(slot, int64_t(offset))).getValues();
}

// A block's n-th item where nothing is cut: tiles in the order of memory, sequence by sequence, all v-heads of one, all
// V blocks of a head. Blocks take them in strides of the grid.
void Lowering::writeTile(ForeachOp op, ValueRange w, Value slot, Value number) {
  auto items = cast<ItemsType>(op.getItems().getType());
  int64_t split = intOf(items.getSplit()), columns = intOf(items.getColumns());
  Value blocks = ::sm::BlocksOp::create(b, loc, b.getI32Type()), block = ::sm::BlockOp::create(b, loc, b.getI32Type());
  Value tile = add(block, mul(number, blocks)), perSequence = mul(w[5], split);
  Value sequence = arith::DivUIOp::create(b, loc, tile, perSequence);
  Value rest = arith::RemUIOp::create(b, loc, tile, perSequence);
  Value head = split == 1 ? rest : Value(arith::DivUIOp::create(b, loc, rest, i32(split)));
  Value part = split == 1 ? i32(0) : Value(arith::RemUIOp::create(b, loc, rest, i32(split)));
  Value some = cmp(arith::CmpIPredicate::slt, sequence, w[2]);
  sequence = select(some, sequence, i32(0));
  Value begin = sequenceOffset(w, sequence);
  Value end = arith::MaxSIOp::create(b, loc, sequenceOffset(w, add(sequence, 1)), begin);
  Value caller = i32(gdn::work::Caller), zero = i32(0);
  SmallVector<Value> words(slotBytes / 4, zero);
  auto set = [&](size_t offset, Value value) { words[offset / 4] = value; };
  set(offsetof(Item, begin), begin), set(offsetof(Item, end), end);
  set(offsetof(Item, sequence), sequence), set(offsetof(Item, head), head);
  set(offsetof(Item, column), mul(part, columns));
  set(offsetof(Item, from), caller), set(offsetof(Item, to), caller);
  set(offsetof(Item, guard), i32(-1));
  set(offsetof(Drawn, source), sequence), set(offsetof(Drawn, sink), sequence);
  set(offsetof(Item, last), select(some, zero, i32(-1)));
  for (size_t i = 0; i < words.size(); i += 2)
    ::sm::StoreSharedOp::create(b, loc, ArrayRef(words).slice(i, 2), add(slot, 4 * i), false);
}

// Whether everything that an item of the late queue waits for has been stored: the state it starts from, and for each
// hop, a lane each, matrix and vector. Other blocks raise flags; a flag that is up stays up.
Value Lowering::ready(Value flags, Value item) {
  auto words = ::sm::LoadGlobalOp::create(b, loc, SmallVector<Type>(4, b.getI32Type()),
                                          add(item, int64_t(offsetof(Item, column))), yes(), false);
  Value column = words.getResult(0), from = words.getResult(2), hops = words.getResult(3);
  auto more = ::sm::LoadGlobalOp::create(b, loc, SmallVector<Type>(2, b.getI32Type()),
                                         add(item, int64_t(offsetof(Item, segment))), yes(), false);
  Value segment = more.getResult(0), count = more.getResult(1);
  auto missing = [&](Value row, Value place, Value atLeast, Value asked) -> Value {
    Value at = add(flags, wide(shl(add(mul(row, gdn::work::flagWords), place), 2)));
    Value flag = ::sm::FlagLoadOp::create(b, loc, at, asked);
    return arith::AndIOp::create(b, loc, asked, cmp(arith::CmpIPredicate::slt, flag, atLeast));
  };
  Value row = shr(column, 6), mine = cmp(arith::CmpIPredicate::slt, lane(), hops), one = i32(1);
  Value first = arith::AndIOp::create(b, loc, isLane0(), cmp(arith::CmpIPredicate::sge, from, i32(0)));
  Value lacks = missing(from, row, count, first), hop = add(segment, lane());
  auto also = [&](Value other) { lacks = arith::OrIOp::create(b, loc, lacks, other); };
  auto parameters = kernel->getAttrOfType<DictionaryAttr>("parameters");
  auto extent = [&](StringRef name) { return parameters.getAs<IntegerAttr>(name).getInt(); };
  Value whole = arith::AndIOp::create(b, loc, first, eq(hops, 0));
  for (int64_t i = 1; i < extent("V") / extent("split") / 64; ++i)
    also(missing(from, add(row, i), count, whole));
  also(missing(hop, row, one, mine));
  for (int64_t i = 0; i < extent("K") / 64; ++i)
    also(missing(hop, i32(gdn::work::flagRows + i), one, mine));
  return arith::XOrIOp::create(b, loc, Value(::sm::AnyOp::create(b, loc, lacks)), yes());
}

// The next item of the plan's two queues. Early items wait for earlier ones of their own queue alone. A late one is
// taken when it will not wait and at least as much hangs on it as on the next early one; or when no early one is left:
// then running blocks hold all early ones, and late ones wait for those or for smaller late ones. So whatever the
// number of blocks, one of them can go on. A block's first item is an early one: it looks for no other.
void Lowering::writeDrawn(Value plan, ValueRange header, Value slot, Value number) {
  Type word = b.getI32Type();
  auto at = [&](size_t offset) { return add(plan, int64_t(offset)); };
  auto load = [&](Value address) {
    return ::sm::LoadGlobalOp::create(b, loc, TypeRange{word}, address, yes(), false).getResult(0);
  };
  auto item = [&](size_t table, Value ticket) {
    return add(add(plan, wide(header[table / 4])), wide(mul(ticket, itemBytes)));
  };
  auto below = [&](Value x, Value y) { return cmp(arith::CmpIPredicate::ult, x, y); };
  // By lane 0, for all.
  auto byOne = [&](llvm::function_ref<Value()> body) {
    forgetLane();
    auto one = scf::IfOp::create(b, loc, TypeRange{word}, isLane0(), true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(one.thenBlock());
    scf::YieldOp::create(b, loc, body());
    b.setInsertionPointToStart(one.elseBlock());
    scf::YieldOp::create(b, loc, i32(0));
    b.setInsertionPointAfter(one);
    return uniform(one.getResult(0));
  };
  // Carried: the item's address, 0 where none was left, -1 while the warp has none, -2 before it asks for its first.
  auto loop = scf::WhileOp::create(b, loc, TypeRange{b.getI64Type()},
                                   ValueRange{Value(select(eq(number, 0), i64(-2), i64(-1)))});
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, TypeRange{b.getI64Type()}, {loc});
  scf::ConditionOp::create(b, loc, cmp(arith::CmpIPredicate::slt, before->getArgument(0), i64(0)),
                           before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, TypeRange{b.getI64Type()}, {loc});
  Value early = header[offsetof(Header, early) / 4], late = header[offsetof(Header, late) / 4];
  Value looks = eq(after->getArgument(0), -1);
  Value nextLate = uniform(::sm::FlagLoadOp::create(b, loc, at(offsetof(Header, lateNext)), looks));
  Value nextEarly = uniform(::sm::FlagLoadOp::create(b, loc, at(offsetof(Header, earlyNext)), looks));
  Value earlyLeft = below(nextEarly, early);
  auto some = scf::IfOp::create(b, loc, TypeRange{b.getI1Type()},
                                Value(arith::AndIOp::create(b, loc, looks, below(nextLate, late))), true);
  b.setInsertionPointToStart(some.thenBlock());
  Value candidate = item(offsetof(Header, lateItems), nextLate);
  Value other = item(offsetof(Header, earlyItems), select(earlyLeft, nextEarly, i32(0)));
  Value first = cmp(arith::CmpIPredicate::sge, load(add(candidate, int64_t(offsetof(Item, tail)))),
                    load(add(other, int64_t(offsetof(Item, tail)))));
  Value flags = add(plan, wide(header[offsetof(Header, flags) / 4]));
  Value take = arith::AndIOp::create(b, loc, ready(flags, candidate), first);
  scf::YieldOp::create(b, loc, Value(select(earlyLeft, take, yes())));
  b.setInsertionPointToStart(some.elseBlock());
  scf::YieldOp::create(b, loc, Value(arith::ConstantIntOp::create(b, loc, 0, 1)));
  b.setInsertionPointAfter(some);
  forgetLane();

  auto which = scf::IfOp::create(b, loc, TypeRange{b.getI64Type()}, some.getResult(0), true);
  b.setInsertionPointToStart(which.thenBlock());
  // Where no early item is left, nothing is to be weighed: a ticket, for which blocks need not race.
  Value held = byOne([&]() -> Value {
    Value next = at(offsetof(Header, lateNext));
    auto weighed = scf::IfOp::create(b, loc, TypeRange{word}, earlyLeft, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(weighed.thenBlock());
    scf::YieldOp::create(b, loc, Value(::sm::AtomicCasOp::create(b, loc, next, nextLate, add(nextLate, 1))));
    b.setInsertionPointToStart(weighed.elseBlock());
    scf::YieldOp::create(b, loc, Value(::sm::AtomicAddOp::create(b, loc, next, i32(1))));
    return weighed.getResult(0);
  });
  Value lostRace = arith::AndIOp::create(b, loc, earlyLeft, cmp(arith::CmpIPredicate::ne, held, nextLate));
  Value found = select(below(held, late), item(offsetof(Header, lateItems), held), i64(0));
  scf::YieldOp::create(b, loc, Value(select(lostRace, i64(-1), found)));
  b.setInsertionPointToStart(which.elseBlock());
  Value ticket = byOne([&]() -> Value {
    auto draw = scf::IfOp::create(b, loc, TypeRange{word}, earlyLeft, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(draw.thenBlock());
    scf::YieldOp::create(b, loc, Value(::sm::AtomicAddOp::create(b, loc, at(offsetof(Header, earlyNext)), i32(1))));
    b.setInsertionPointToStart(draw.elseBlock());
    scf::YieldOp::create(b, loc, early);
    return draw.getResult(0);
  });
  // Where other blocks were faster, late items may be left.
  Value lost = arith::AndIOp::create(b, loc, earlyLeft, cmp(arith::CmpIPredicate::uge, ticket, early));
  Value drawn = select(earlyLeft, item(offsetof(Header, earlyItems), ticket), i64(0));
  scf::YieldOp::create(b, loc, Value(select(lost, i64(-1), drawn)));
  b.setInsertionPointAfter(which);
  scf::YieldOp::create(b, loc, which.getResults());
  b.setInsertionPointAfter(loop);
  forgetLane();

  // A lane copies sixteen bytes; the one behind them writes the sequence for the rows of states.
  Value address = loop.getResult(0), any = cmp(arith::CmpIPredicate::ne, address, i64(0));
  auto writer = scf::IfOp::create(b, loc, below(lane(), i32(itemBytes / 16 + 1)), false);
  b.setInsertionPoint(writer.thenBlock()->getTerminator());
  Value part = shl(lane(), 4), ofRows = eq(part, int64_t(offsetof(Drawn, source)));
  Value from = add(address, wide(select(ofRows, i32(0), part)));
  auto words = ::sm::LoadGlobalOp::create(b, loc, SmallVector<Type>(4, word), from, any, false);
  SmallVector<Value> values = llvm::to_vector_of<Value>(words.getValues());
  Value none = arith::AndIOp::create(b, loc, eq(part, int64_t(offsetof(Item, tail))), eq(address, 0));
  Value sequence = values[offsetof(Item, sequence) / 4];
  values[0] = select(ofRows, sequence, values[0]);
  values[1] = select(ofRows, sequence, select(none, i32(-1), values[1]));
  ::sm::StoreSharedOp::create(b, loc, values, add(slot, part), false);
}
static_assert(offsetof(Item, last) == offsetof(Item, tail) + 4 && offsetof(Item, tail) % 16 == 0);
static_assert(offsetof(Drawn, source) == itemBytes && offsetof(Drawn, sink) == itemBytes + 4);

// Rows of the caller's states by indices. One outside of what there is reads zeros and writes nothing, as does a
// sequence without tokens, which then keeps what it would write.
void Lowering::lookUpRows(ValueRange w, Value slot) {
  Value sources = w[8], sinks = w[9], isWide = w[10];
  auto given = scf::IfOp::create(
      b, loc, Value(arith::AndIOp::create(b, loc, isLane0(), cmp(arith::CmpIPredicate::ne, sinks, i64(0)))), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(given.thenBlock()->getTerminator());
  auto word = [&](size_t offset) { return slotWords(slot, offset, 1)[0]; };
  auto put = [&](size_t offset, Value value) {
    ::sm::StoreSharedOp::create(b, loc, ValueRange{value}, add(slot, int64_t(offset)), false);
  };
  Value sequence = word(offsetof(Item, sequence)), rows = wide(w[11]);
  auto place = [&](Value indices, size_t rowAt, size_t placeAt, int64_t otherwise, Value keeps) {
    Value row = wideOrNot(indices, sequence, isWide), before = word(placeAt);
    Value lost = arith::OrIOp::create(b, loc, cmp(arith::CmpIPredicate::uge, row, rows), keeps);
    lost = arith::AndIOp::create(b, loc, lost, eq(before, gdn::work::Caller));
    put(rowAt, arith::TruncIOp::create(b, loc, b.getI32Type(), row));
    put(placeAt, select(lost, i32(otherwise), before));
  };
  Value empty = cmp(arith::CmpIPredicate::eq, word(offsetof(Item, begin)), word(offsetof(Item, end)));
  place(sinks, offsetof(Drawn, sink), offsetof(Item, to), gdn::work::Nowhere, empty);
  auto read = scf::IfOp::create(b, loc, cmp(arith::CmpIPredicate::ne, sources, i64(0)), false);
  b.setInsertionPoint(read.thenBlock()->getTerminator());
  place(sources, offsetof(Drawn, source), offsetof(Item, from), gdn::work::Zeros,
        arith::ConstantIntOp::create(b, loc, 0, 1));
}

bool Lowering::hasCheckpoints(Value items) {
  return llvm::any_of(items.getUsers(), [](Operation *user) {
    auto op = dyn_cast<ForeachOp>(user);
    return op && op.hasPieces() &&
           llvm::any_of(op.getBody().getArguments().take_back(ForeachOp::checkpointFields),
                        [](BlockArgument arg) { return !arg.use_empty(); });
  });
}

// Where the checkpoints of the item's sequence go, one after the other from a row on; the rest of what does not fit
// there is not written.
void Lowering::lookUpCheckpoints(ValueRange w, Value slot) {
  Value starts = w[12], isWide = w[13], every = w[14], rows = wide(w[15]), skips = w[16];
  auto one = scf::IfOp::create(b, loc, isLane0(), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(one.thenBlock()->getTerminator());
  auto word = [&](size_t offset) { return slotWords(slot, offset, 1)[0]; };
  Value sequence = word(offsetof(Item, sequence)), begin = sequenceOffset(w, sequence);
  Value tokens = arith::MaxSIOp::create(b, loc, sub(sequenceOffset(w, add(sequence, 1)), begin), i32(0));
  // Those of sequences as long: in front of the first token too, or only behind the last ones.
  auto count = [&](Value tokens) -> Value {
    Value whole = mul(every, chunk), more = select(eq(skips, 0), sub(whole, i32(1)), i32(0));
    return arith::DivUIOp::create(b, loc, add(tokens, more), whole);
  };
  Value own = count(tokens), dense = mul(wide(sequence), wide(count(w[3])));
  Value row = select(eq(starts, 0), dense, wideOrNot(starts, sequence, isWide));
  Value inside = cmp(arith::CmpIPredicate::ult, row, rows);
  Value left = arith::MinSIOp::create(b, loc, wide(own), sub(rows, row));
  auto narrow = [&](Value x) -> Value { return arith::TruncIOp::create(b, loc, b.getI32Type(), x); };
  Value before = arith::DivUIOp::create(b, loc, sub(word(offsetof(Item, begin)), begin), i32(chunk));
  const std::pair<size_t, Value> words[] = {{offsetof(Drawn, before), before},
                                            {offsetof(Drawn, every), every},
                                            {offsetof(Drawn, skips), skips},
                                            {offsetof(Drawn, row), narrow(row)},
                                            {offsetof(Drawn, rows), select(inside, narrow(left), i32(0))}};
  for (auto [offset, value] : words)
    ::sm::StoreSharedOp::create(b, loc, ValueRange{value}, add(slot, int64_t(offset)), false);
}

// By all lanes of the warp that draws.
void Lowering::drawItem(ForeachOp op, Value number) {
  // The slot was last used two items ago.
  ::sm::MbarrierWaitOp::create(b, loc, itemBarrier(number, false), xori(andi(shr(number, 1), 1), 1));
  SmallVector<Value> w = parameters(op.getItems());
  if (op.hasPieces()) {
    Value plan = w[7];
    SmallVector<Value> header;
    for (int64_t half : {0, 16}) {
      auto words = ::sm::LoadGlobalOp::create(b, loc, SmallVector<Type>(4, b.getI32Type()), add(plan, half),
                                              cmp(arith::CmpIPredicate::ne, plan, i64(0)), false);
      llvm::append_range(header, words.getValues());
    }
    static_assert(offsetof(Header, columns) < 32);
    auto word = [&](size_t offset) -> Value & { return header[offset / 4]; };
    // A plan for tiles of other columns is another kernel's: none of its items is left.
    int64_t columns = intOf(cast<ItemsType>(op.getItems().getType()).getColumns());
    Value others = arith::AndIOp::create(b, loc, cmp(arith::CmpIPredicate::ne, plan, i64(0)),
                                         cmp(arith::CmpIPredicate::ne, word(offsetof(Header, columns)), i32(columns)));
    for (size_t queue : {offsetof(Header, early), offsetof(Header, late)})
      word(queue) = select(others, i32(0), word(queue));
    Value isPlanned = arith::OrIOp::create(b, loc, eq(word(offsetof(Header, mode)), gdn::work::Planned), others);
    auto planned = scf::IfOp::create(b, loc, isPlanned, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(planned.thenBlock()->getTerminator());
    forgetLane();
    writeDrawn(plan, header, itemSlot(number), number);
    b.setInsertionPoint(planned.elseBlock()->getTerminator());
    forgetLane();
    auto one = scf::IfOp::create(b, loc, isLane0(), false);
    b.setInsertionPoint(one.thenBlock()->getTerminator());
    forgetLane();
    writeTile(op, w, itemSlot(number), number);
    b.setInsertionPointAfter(planned);
    forgetLane();
    ::sm::WarpSyncOp::create(b, loc);
    lookUpRows(parameters(op.getItems()), itemSlot(number));
    if (hasCheckpoints(op.getItems()))
      lookUpCheckpoints(parameters(op.getItems()), itemSlot(number));
  } else {
    auto one = scf::IfOp::create(b, loc, isLane0(), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(one.thenBlock()->getTerminator());
    writeTile(op, w, itemSlot(number), number);
  }
  forgetLane();
  ::sm::WarpSyncOp::create(b, loc);
  writeKeyHead(parameters(op.getItems())[6], itemSlot(number));
  ::sm::WarpSyncOp::create(b, loc);
  ::sm::MbarrierArriveOp::create(b, loc, itemBarrier(number, true), isLane0(), ValueRange{});
}

// Divided once, not by each warp of the block.
void Lowering::writeKeyHead(Value ratio, Value slot) {
  auto one = scf::IfOp::create(b, loc, isLane0(), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(one.thenBlock()->getTerminator());
  Value keyHead = arith::DivUIOp::create(b, loc, slotWords(slot, offsetof(Item, head), 1)[0], ratio);
  ::sm::StoreSharedOp::create(b, loc, ValueRange{keyHead}, add(slot, int64_t(offsetof(Drawn, keyHead))), false);
}

// Waits for the next item. The first warp of the kernel's first role has drawn it. What every warp wants of it, read in
// one go: sequence, heads, V column, warm-up, and where its state comes from; and whether it is an item.
std::pair<Value, SmallVector<Value>> Lowering::takeItem(ForeachOp op) {
  Value number = field(ItemNumber);
  if (role == *kernel.getBody().getOps<RoleOp>().begin()) {
    auto drawer =
        scf::IfOp::create(b, loc, Value(arith::AndIOp::create(b, loc, eq(warpInCopy(), 0), eq(copyIndex(), 0))), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(drawer.thenBlock()->getTerminator());
    forgetLane();
    drawItem(op, field(ItemNumber));
  }
  forgetLane();
  ::sm::MbarrierWaitOp::create(b, loc, itemBarrier(number, true), andi(shr(number, 1), 1));
  Value slot = itemSlot(number);
  Value last = slotWords(slot, offsetof(Item, last), 1)[0], keyHead = slotWords(slot, offsetof(Drawn, keyHead), 1)[0];
  ValueRange front = slotWords(slot, 0, 4), back = slotWords(slot, offsetof(Item, column), 4);
  return {eq(last, 0), {front[0], front[1], front[2], keyHead, front[3], back[0], back[1], back[2]}};
}

// The item lies in a record of the warp's, what is needed once in its slot: a role with few registers reads what it
// needs when it needs it.
LogicalResult Lowering::lowerForeach(ForeachOp op) {
  writeRecord(FirstShared, {copyIndex(), i32(0)});
  clearStamps(op, false);
  SmallVector<Value *> carried = movedIn(op);
  SmallVector<Value> inits = load(carried);
  SmallVector<Location> locations(inits.size(), loc);
  SmallVector<Type> types(ValueRange(inits).getTypes());
  constexpr size_t words = 8;
  types.append(words, b.getI32Type());
  auto loop = scf::WhileOp::create(b, loc, types, inits);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, ValueRange(inits).getTypes(), locations);
  forgetLane();
  auto [some, item] = takeItem(op);
  SmallVector<Value> taken(before->getArguments());
  llvm::append_range(taken, item);
  scf::ConditionOp::create(b, loc, some, taken);

  locations.append(words, loc);
  Block *body = b.createBlock(&loop.getAfter(), {}, types, locations);
  forgetLane();
  store(carried, ValueRange(body->getArguments()).drop_back(words));
  writeRecord(Begin, ValueRange(body->getArguments()).take_back(words));
  auto inSlot = [](size_t offset) { return int64_t(recordBytes + offset) / 4; };
  const int64_t places[] = {Begin,
                            Sequence,
                            HeadK,
                            HeadV,
                            Column,
                            Warm,
                            inSlot(offsetof(Item, hops)),
                            inSlot(offsetof(Item, segment)),
                            From,
                            inSlot(offsetof(Item, fromCount)),
                            inSlot(offsetof(Item, to)),
                            inSlot(offsetof(Item, guard)),
                            inSlot(offsetof(Drawn, source)),
                            inSlot(offsetof(Drawn, sink)),
                            inSlot(offsetof(Drawn, before)),
                            inSlot(offsetof(Drawn, every)),
                            inSlot(offsetof(Drawn, skips)),
                            inSlot(offsetof(Drawn, row)),
                            inSlot(offsetof(Drawn, rows))};
  static_assert(std::size(places) == ForeachOp::pieceFields);
  for (BlockArgument arg : op.getBody().getArguments().drop_front())
    fields[arg] = places[arg.getArgNumber()];
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  clearStamps(op, true);

  Value next = field(FirstShared);
  for (auto share : op.getBody().getOps<ShareOp>()) {
    next = sub(next, Value(arith::RemUIOp::create(b, loc, scalar(share.getCount()), i32(copies))));
    next = select(cmp(arith::CmpIPredicate::slt, next, i32(0)), add(next, copies), next);
  }
  Value number = field(ItemNumber);
  writeRecord(FirstShared, {next, add(number, 1)});
  ::sm::MbarrierArriveOp::create(b, loc, itemBarrier(number, false), isLane0(), ValueRange{});
  scf::YieldOp::create(b, loc, load(carried));
  store(carried, loop.getResults().drop_back(words));
  forgetLane();
  return success();
}
