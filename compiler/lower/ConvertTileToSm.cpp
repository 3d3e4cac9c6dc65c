// convert-tile-to-sm: parameters, prologue, roles, and which member lowers which op.
#include "compiler/lower/Lower.h"
#include "compiler/lower/Lowering.h"
#include "compiler/lower/Supported.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"
using namespace mlir;
using namespace tile;

//===-- fragments ----------------------------------------------------------===//
int64_t Lowering::registersOf(FragType t) const {
  int64_t n = 0;
  if (t.dim(0) == 1)
    n = t.dim(1) == 1 ? 1 : t.getLanes() ? t.dim(1) / 32 : t.dim(1) / 4;
  else
    n = t.dim(1) == 1 ? 2 : t.dim(1) / 2; // [16 rows a warp, columns] as a product leaves it
  return t.getElement().isBF16() || t.getElement().isF16() ? n / 2 : n;
}
SmallVector<Type> Lowering::typesOf(Type t) const {
  MLIRContext *ctx = t.getContext();
  if (auto p = dyn_cast<PendingType>(t))
    t = p.getValue();
  if (auto f = dyn_cast<FragType>(t))
    return SmallVector<Type>(registersOf(f),
                             f.getElement().isF32() ? Type(Float32Type::get(ctx)) : IntegerType::get(ctx, 32));
  if (isa<ChunkType>(t))
    return {IntegerType::get(ctx, 32)};
  return {t};
}
unsigned Lowering::widthOf(Type t) const { return typesOf(t).size(); }
Value Lowering::canonical(Value pending) {
  for (auto it = alias.find(pending); it != alias.end(); it = alias.find(pending))
    pending = it->second;
  return pending;
}
SmallVector<Value> Lowering::flat(ValueRange values) {
  SmallVector<Value> out;
  for (Value v : values) {
    if (auto chunk = v.getDefiningOp<ChunkOp>())
      out.push_back(sub(scalar(chunk.getIndex()), chunksOfItem()));
    else if (isa<FragType, PendingType, ChunkType>(v.getType()))
      llvm::append_range(out, regs.at(canonical(v)));
    else
      out.push_back(scalar(v));
  }
  return out;
}
void Lowering::bind(ValueRange values, ValueRange all) {
  for (Value v : values) {
    unsigned n = widthOf(v.getType());
    regs[v] = llvm::to_vector_of<Value>(all.take_front(n));
    all = all.drop_front(n);
  }
}
Value Lowering::lane() { return laneNow ? laneNow : laneNow = ::sm::LaneOp::create(b, loc); }
Value Lowering::sharedBase() { return baseNow ? baseNow : baseNow = ::sm::OpaqueOp::create(b, loc, base); }
Value Lowering::warpInBlock() { return warpNow ? warpNow : warpNow = ::sm::OpaqueOp::create(b, loc, warp); }
static int64_t firstWarp(RoleOp role) { return role->getAttrOfType<IntegerAttr>("first_warp").getInt(); }
Value Lowering::warpInCopy() {
  if (staticWarp)
    return i32(*staticWarp);
  Value inRole = add(warpInBlock(), -firstWarp(role));
  return copies == 1 ? inRole : Value(arith::RemUIOp::create(b, loc, inRole, i32(warps)));
}
Value Lowering::copyIndex() {
  return copies == 1 ? i32(0) : Value(arith::DivUIOp::create(b, loc, add(warpInBlock(), -firstWarp(role)), i32(warps)));
}
Value Lowering::isRolesFirstThread() { return eq(add(shl(warpInBlock(), 5), lane()), 32 * firstWarp(role)); }
Value Lowering::field(int64_t i) {
  if (i >= recordBytes / 4) {
    Value at = add(itemSlot(field(ItemNumber)), 4 * i - recordBytes);
    return ::sm::LoadSharedOp::create(b, loc, TypeRange{b.getI32Type()}, at).getResult(0);
  }
  int64_t records = kernel->getAttrOfType<IntegerAttr>("records").getInt();
  Value at = add(add(sharedBase(), records + 4 * i), mul(warpInBlock(), recordBytes));
  return ::sm::LoadSharedOp::create(b, loc, TypeRange{b.getI32Type()}, at).getResult(0);
}
Value Lowering::scalar(Value v) {
  if (auto it = scalarNow.find(v); it != scalarNow.end())
    return it->second;
  Value now = computeScalar(v);
  scalarNow[v] = now;
  return now;
}
Value Lowering::computeScalar(Value v) {
  if (auto it = regs.find(v); it != regs.end()) {
    // A loop's variable is opaque: LLVM would keep what is computed from it in variables of their own.
    // So is an option of the launch: what it decides would stay in a predicate.
    Value now = it->second[0];
    Operation *owner = isa<BlockArgument>(v) ? v.getParentBlock()->getParentOp() : nullptr;
    auto loop = dyn_cast_or_null<scf::ForOp>(owner);
    if (loop || (isa_and_nonnull<KernelOp>(owner) && v.getType().isInteger()))
      now = ::sm::OpaqueOp::create(b, loc, now);
    return loop && loop.getInductionVar() == v ? add(now, scalar(loop.getUpperBound())) : now;
  }
  if (auto it = fields.find(v); it != fields.end())
    return field(it->second);
  Operation *op = v.getDefiningOp();
  if (!op)
    return copyIndex(); // the role's argument
  if (isa<ChunksOp>(op))
    return chunksOfItem();
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(operand, scalar(operand));
  return b.clone(*op, map)->getResult(0);
}
Value Lowering::chunksOfItem() {
  if (!chunksNow)
    chunksNow = arith::DivUIOp::create(b, loc, add(sub(field(End), field(Begin)), chunk - 1), i32(chunk));
  return chunksNow;
}
// A chunk that travels with a loop is counted from the item's end, as the loop counts: so nothing is read to carry it.
std::pair<Value, Value> Lowering::rowsOf(Value v) {
  if (auto it = rowsNow.find(v); it != rowsNow.end())
    return it->second;
  if (auto rows = v.getDefiningOp<RowsOp>())
    return rowsNow[v] = {scalar(rows.getFirst()), i32(chunk)};
  auto op = v.getDefiningOp<ChunkOp>();
  Value index = op ? scalar(op.getIndex()) : add(scalar(v), chunksOfItem());
  Value first = add(field(Begin), mul(index, chunk));
  Value valid = arith::MinSIOp::create(b, loc, sub(field(End), first), i32(chunk));
  return rowsNow[v] = {first, Value(arith::MaxSIOp::create(b, loc, valid, i32(0)))};
}

//===-- parameters -----------------------------------------------------------===//
static const char *elementName(Type t) { return t.isF16() ? "f16" : t.isBF16() ? "bf16" : t.isF32() ? "f32" : "i64"; }

// The entry's parameters and, for the bundle, what each of them is. A view brings what its uses need.
void Lowering::declareArguments(SmallVector<NamedAttribute> &attrs) {
  auto out = cast<::sm::KernelOp>(b.getInsertionBlock()->getParentOp());
  Block &entry = out.getBody().front();
  SmallVector<Attribute> params;
  auto param = [&](Type type, StringRef kind, StringRef name, SmallVector<NamedAttribute> more = {}) {
    more.push_back(b.getNamedAttr("kind", b.getStringAttr(kind)));
    more.push_back(b.getNamedAttr("name", b.getStringAttr(name)));
    params.push_back(b.getDictionaryAttr(more));
    return Value(entry.addArgument(type, loc));
  };
  auto integer = [&](StringRef key, int64_t v) { return b.getNamedAttr(key, b.getI64IntegerAttr(v)); };
  Type word = b.getI32Type(), longWord = b.getI64Type();
  for (auto [arg, nameAttr] : llvm::zip(kernel.getBody().getArguments(), kernel.getNames())) {
    StringRef name = cast<StringAttr>(nameAttr).getValue();
    if (isa<ItemsType>(arg.getType())) {
      SmallVector<Value> &fields = work[arg];
      fields.push_back(param(longWord, "batch", "cu_seqlens"));
      for (StringRef field : {"cu_wide", "sequences", "length", "tokens", "heads", "ratio"})
        fields.push_back(param(word, "batch", field));
      if (llvm::any_of(arg.getUsers(),
                       [](Operation *op) { return isa<ForeachOp>(op) && cast<ForeachOp>(op).hasPieces(); }))
        for (StringRef field : {"work", "source_rows", "sink_rows", "wide_rows", "rows"})
          fields.push_back(param(field == "wide_rows" || field == "rows" ? word : longWord, "batch", field));
      if (hasCheckpoints(arg))
        for (StringRef field : {"starts", "wide_starts", "every", "checkpoints", "skips"})
          fields.push_back(param(field == "starts" ? longWord : word, "batch", field));
    } else if (auto type = dyn_cast<ViewType>(arg.getType())) {
      if (arg.use_empty())
        continue;
      ViewRef &view = views[arg];
      int64_t rank = type.getDims().size();
      bool bulk = false, direct = false;
      int64_t rows = 0;
      for (Operation *user : arg.getUsers()) {
        Value buf = isa<CopyInOp>(user)    ? cast<CopyInOp>(user).getBuf()
                    : isa<CopyOutOp>(user) ? cast<CopyOutOp>(user).getBuf()
                                           : Value();
        bool tensor = buf && !type.getPacked();
        (tensor ? bulk : direct) = true;
        if (tensor)
          rows = cast<BufType>(buf.getType()).dim(0);
      }
      if (bulk)
        view.map = param(::sm::MapType::get(b.getContext()), "map", name,
                         {b.getNamedAttr("element", b.getStringAttr(elementName(type.getElement()))),
                          integer("columns", intOf(type.getDims()[rank - 1])), integer("box_columns", boxColumns),
                          integer("box_rows", rows)});
      view.strides.resize(rank);
      if (!direct)
        continue;
      view.pointer = param(longWord, "pointer", name);
      int64_t unit = intOf(type.getUnit()), inner = type.known();
      for (int64_t axis = 0; axis < rank; ++axis) {
        if (axis == unit)
          continue;
        if (unit < inner || (axis < inner && inner > 1)) {
          view.strides[axis] = param(longWord, "stride", name, {integer("axis", axis)});
          continue;
        }
        int64_t stride = axis > unit ? type.dim(unit) : 1;
        for (int64_t i = std::max(axis + 1, inner); i < rank; ++i)
          stride *= type.dim(i);
        view.strides[axis] = i64(stride);
      }
      if (isa<AnyFloatType>(type.getElement()))
        view.element = param(word, "element", name);
    } else {
      regs[arg] = {param(arg.getType(), "scalar", name)};
    }
  }
  attrs.push_back(b.getNamedAttr("params", b.getArrayAttr(params)));
}

//===-- structure --------------------------------------------------------------===//
LogicalResult Lowering::run() {
  auto integer = [&](StringRef name) { return kernel->getAttrOfType<IntegerAttr>(name); };
  if (!integer("threads") || !integer("shared_bytes"))
    return kernel.emitError("expected a kernel after tile-place-roles and tile-plan-memory");
  auto parameters = kernel->getAttrOfType<DictionaryAttr>("parameters");
  auto tokens = parameters ? parameters.getAs<IntegerAttr>("chunk") : IntegerAttr();
  if (!tokens)
    return kernel.emitError("expected a template with a parameter 'chunk', the tokens of one chunk");
  chunk = tokens.getInt();
  b.setInsertionPoint(kernel);
  std::string name = kernel.getSymName().str();
  std::replace(name.begin(), name.end(), '.', '_');
  auto out = ::sm::KernelOp::create(b, loc, name, integer("threads").getInt(), integer("shared_bytes").getInt(),
                                    b.getArrayAttr({}));
  out.getBody().emplaceBlock();
  b.setInsertionPointToStart(&out.getBody().front());
  SmallVector<NamedAttribute> attrs;
  declareArguments(attrs);
  for (NamedAttribute a : attrs)
    out->setAttr(a.getName(), a.getValue());
  prologue();
  if (failed(lowerRoles()))
    return failure();
  kernel.erase();
  return success();
}

// Barriers, and zeros where a product reads blocks that nobody writes.
void Lowering::prologue() {
  base = ::sm::SharedBaseOp::create(b, loc);
  warp = ::sm::WarpOp::create(b, loc);
  Value thread = ::sm::ThreadOp::create(b, loc, b.getI32Type());
  auto first = scf::IfOp::create(b, loc, eq(thread, 0), false);
  int64_t threads = kernel->getAttrOfType<IntegerAttr>("threads").getInt();
  SmallVector<RingOp> rings;
  kernel.walk([&](RingOp r) { rings.push_back(r); });
  auto get = [](Operation *op, StringRef name) { return op->getAttrOfType<IntegerAttr>(name).getInt(); };
  bool zeroed = false;
  if (kernel->hasAttr("item_barriers")) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(first.thenBlock()->getTerminator());
    for (int64_t i = 0; i < itemSlots; ++i) {
      ::sm::MbarrierInitOp::create(b, loc, itemBarrier(i32(i), true), 1);
      ::sm::MbarrierInitOp::create(b, loc, itemBarrier(i32(i), false), threads / 32);
    }
  }
  for (RingOp r : rings) {
    int64_t depth = intOf(r.getDepth());
    if (r->hasAttr("full")) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(first.thenBlock()->getTerminator());
      for (int64_t i = 0; i < depth; ++i) {
        ::sm::MbarrierInitOp::create(b, loc, add(base, get(r, "full") + 8 * i), get(r, "full_count"));
        ::sm::MbarrierInitOp::create(b, loc, add(base, get(r, "empty") + 8 * i), get(r, "empty_count"));
      }
    }
    if (!r->hasAttr("zeroed"))
      continue;
    zeroed = true;
    Value zero = i32(0);
    auto loop = scf::ForOp::create(b, loc, shl(thread, 4), i32(depth * get(r, "slot")), i32(threads * 16));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ::sm::StoreSharedOp::create(b, loc, ValueRange{zero, zero, zero, zero},
                                add(add(base, get(r, "offset")), loop.getInductionVar()), false);
  }
  if (auto zeros = kernel->getAttrOfType<IntegerAttr>("zeros")) {
    zeroed = true;
    auto some = scf::IfOp::create(b, loc, cmp(arith::CmpIPredicate::ult, thread, i32(zeroBytes / 4)), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(some.thenBlock()->getTerminator());
    ::sm::StoreSharedOp::create(b, loc, ValueRange{i32(0)}, add(add(base, zeros.getInt()), shl(thread, 2)), false);
  }
  if (zeroed)
    ::sm::FenceAsyncOp::create(b, loc);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(first.thenBlock()->getTerminator());
    ::sm::FenceMbarrierInitOp::create(b, loc);
  }
  if (kernel->hasAttr("item_barriers")) // the launch may overlap the one that plans the items
    ::sm::GridWaitOp::create(b, loc);
  ::sm::BarSyncOp::create(b, loc, 0, threads);
}

// One branch a role, on the index of the warp, which is the same in all its lanes.
LogicalResult Lowering::lowerRoles() {
  for (Operation &op : kernel.getBody().front())
    if (!isa<RoleOp>(op) && failed(lowerOp(op)))
      return failure();
  auto roles = llvm::to_vector(kernel.getBody().getOps<RoleOp>());
  for (auto [i, r] : llvm::enumerate(roles)) {
    int64_t behind = firstWarp(r) + intOf(r.getWarps()) * intOf(r.getCopies());
    if (i + 1 == roles.size())
      return lowerRole(r);
    auto branch = scf::IfOp::create(b, loc, cmp(arith::CmpIPredicate::slt, warp, i32(behind)), true);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    if (failed(lowerRole(r)))
      return failure();
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
  }
  return success();
}

LogicalResult Lowering::lowerRole(RoleOp r) {
  role = r;
  loc = r.getLoc();
  warps = intOf(r.getWarps());
  copies = intOf(r.getCopies());
  int64_t threads = kernel->getAttrOfType<IntegerAttr>("threads").getInt();
  int64_t atLaunch = 65536 / threads / 8 * 8, budget = intOf(r.getRegisters());
  if (budget != atLaunch)
    ::sm::MaxRegistersOp::create(b, loc, budget, budget > atLaunch);
  forgetLane();
  inFlight.clear();
  findTracks(r);
  startTracks();
  auto turns = r->getAttrOfType<IntegerAttr>("turn_barrier");
  auto turnThreads = 2 * warps * 32;
  if (turns) { // the last copy lets the first one begin
    auto last = scf::IfOp::create(b, loc, eq(copyIndex(), copies - 1), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(last.thenBlock()->getTerminator());
    ::sm::BarArriveOp::create(b, loc, turns.getInt(), turnThreads);
  }
  if (failed(lowerBlock(r.getBody().front())))
    return failure();
  if (turns) { // and the first one takes the last arrival
    auto head = scf::IfOp::create(b, loc, eq(copyIndex(), 0), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(head.thenBlock()->getTerminator());
    ::sm::BarSyncOp::create(b, loc, turns.getInt(), turnThreads);
  }
  if (!r.getBody().getOps<RingOp>().empty()) { // shared memory outlives the bulk stores that read it
    auto issuer = scf::IfOp::create(b, loc, isFirstThread(), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(issuer.thenBlock()->getTerminator());
    ::sm::BulkWaitOp::create(b, loc, 0, false);
  }
  forgetLane();
  return success();
}

LogicalResult Lowering::lowerBlock(Block &block) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    loc = op.getLoc();
    if (failed(lowerOp(op)))
      return failure();
    advance(&op);
  }
  return success();
}

LogicalResult Lowering::lowerOp(Operation &op) {
  if (failed(checkSupported(op, warps, staticWarp.has_value())))
    return failure();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<RingOp, ScratchOp>([](auto) { return success(); })
      .Case([&](ForeachOp o) { return lowerForeach(o); })
      .Case([&](scf::ForOp o) { return lowerFor(o); })
      .Case([&](scf::IfOp o) { return lowerIf(o); })
      .Case([&](PerWarpOp o) { return lowerPerWarp(o); })
      .Case([&](OneWarpOp o) { return lowerOneWarp(o); })
      .Case([&](TurnOp o) { return lowerTurn(o); })
      .Case([&](ShareOp o) { return lowerShare(o); })
      .Case([&](ClearOp o) { return lowerClear(o), success(); })
      .Case([&](StampOp o) { return lowerStamp(o), success(); })
      .Case([&](RecordOp o) { return lowerRecord(o), success(); })
      .Case([&](PutOp o) { return lowerPut(o); })
      .Case([&](GetOp o) { return lowerGet(o), success(); })
      .Case([&](ReleaseOp o) { return lowerRelease(o), success(); })
      .Case([&](SyncOp) { return roleSync(), success(); })
      .Case([&](FenceOp) { return ::sm::FenceAsyncOp::create(b, loc), success(); })
      .Case([&](ReadOp o) { return lowerRead(o), success(); })
      .Case([&](UnpackOp o) { return lowerUnpack(o), success(); })
      .Case([&](WriteOp o) { return lowerWrite(o), success(); })
      .Case([&](WriteBlocksOp o) { return lowerWriteBlocks(o), success(); })
      .Case([&](AnyOp o) { return lowerAny(o), success(); })
      .Case([&](SubOp o) { return lowerSub(o), success(); })
      .Case([&](CopyInOp o) { return lowerCopyIn(o), success(); })
      .Case([&](CopyOutOp o) { return lowerCopyOut(o), success(); })
      .Case([&](PrefetchOp o) { return lowerPrefetch(o), success(); })
      .Case([&](AwaitOp o) { return lowerAwait(o), success(); })
      .Case([&](SignalOp o) { return lowerSignal(o), success(); })
      .Case([&](LoadOp o) { return lowerLoad(o), success(); })
      .Case([&](StoreOp o) { return lowerStore(o), success(); })
      .Case([&](MmaOp o) { return lowerMma(o); })
      .Case([&](WaitOp o) { return lowerWait(o); })
      .Case([&](ReadyOp o) {
        give(o.getPending(), o.getValue());
        return success();
      })
      .Case([&](PrimeOp o) { return lowerPrime(o), success(); })
      .Case([&](BlockMmaOp o) { return lowerBlockMma(o), success(); })
      .Case([&](SolveBlocksOp o) { return lowerSolveBlocks(o), success(); })
      .Case([&](DiagOp o) { return lowerDiag(o), success(); })
      .Case([&](RowSquaresOp o) { return lowerRowSquares(o), success(); })
      .Case([&](LowerOp o) { return lowerLower(o), success(); })
      .Case([&](PadOp o) { return lowerPad(o), success(); })
      .Case([&](CumsumOp o) { return lowerCumsum(o), success(); })
      .Case([&](LastOp o) { return lowerLast(o), success(); })
      .Case([&](ConvertOp o) { return lowerConvert(o), success(); })
      .Case([&](WidenOp o) { return lowerWiden(o), success(); })
      .Case([&](ColumnsOp o) { return lowerColumns(o), success(); })
      .Case([&](DiagonalOp o) { return lowerDiagonal(o), success(); })
      .Case<AddOp, SubFOp, MulOp, NegOp, Exp2Op, SigmoidOp, SoftplusOp, Log2Op, RsqrtOp, ScaleOp, AtLeastOp, FillOp,
            UndefOp>([&](auto o) { return lowerElementwise(*o); })
      .Case<ChunksOp, ChunkOp, RowsOp>([](auto) { return success(); }) // computed where they are used
      .Default([&](Operation *o) -> LogicalResult {
        if (o->getDialect() && o->getDialect()->getNamespace() == "arith" && o->getNumRegions() == 0)
          return success();
        return o->emitOpError("has no lowering to sm_90a");
      });
}

namespace {
struct ConvertTileToSm : PassWrapper<ConvertTileToSm, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertTileToSm)
  StringRef getArgument() const override { return "convert-tile-to-sm"; }
  StringRef getDescription() const override { return "kernels after the tile pipeline to the instructions of sm_90a"; }
  void getDependentDialects(DialectRegistry &r) const override {
    r.insert<::sm::SmDialect, arith::ArithDialect, scf::SCFDialect>();
  }
  void runOnOperation() override {
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(Lowering(kernel).run()))
        return signalPassFailure();
  }
};
} // namespace
std::unique_ptr<Pass> tile::createConvertTileToSmPass() { return std::make_unique<ConvertTileToSm>(); }
void tile::registerLowerPasses() { PassRegistration<ConvertTileToSm>(); }
