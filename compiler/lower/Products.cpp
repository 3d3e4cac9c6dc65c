// convert-tile-to-sm: products on the tensor cores and the waits that make them readable.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

// Low word of a shared-memory matrix descriptor (PTX ISA, "Matrix Descriptor Format"): address and, for a transposed
// operand, the distance between boxes of 64 columns; both in units of 16 bytes.
Value Lowering::descriptor(Value buf, bool transposed) {
  int64_t leading = transposed ? boxBytes(cast<BufType>(buf.getType())) / 16 : 1;
  return ori(shr(addressOf(buf), 4), i32(leading << 16));
}

// Descriptor of k-step kk: 16 columns on in a tile stored [n, k]; 16 rows on in one stored [k, n].
static int64_t stepOffset(BufType t, bool transposed, int64_t kk) {
  return transposed ? kk * 16 * rowBytes / 16 : kk / 4 * (boxBytes(t) / 16) + kk % 4 * 2;
}

LogicalResult Lowering::lowerMma(MmaOp op) {
  auto bType = cast<BufType>(op.getB().getType());
  auto dType = dyn_cast<FragType>(op.getD().getType().getValue());
  if (!dType || dType.dim(0) != 16 * warps || warps != 4)
    return op.emitOpError("expected 64 rows, four warps, and registers to accumulate in");
  if (!isTile(bType))
    return op.emitOpError("expected a right operand at least 64 columns wide, got ") << bType;
  bool transB = !op.getTransB(); // stored [k, n]: MN-major
  int64_t n = dType.dim(1), steps = (transB ? bType.dim(0) : bType.dim(1)) / 16;
  bool fromRegisters = isa<FragType>(op.getA().getType());
  if (!fromRegisters && op.getTransA())
    return op.emitOpError("has no lowering for a transposed left operand in a buffer");
  SmallVector<Value> acc = op.getC() ? regs.at(canonical(op.getC())) : SmallVector<Value>();
  bool ownsAcc = op.getC() && isa<FragType>(op.getC().getType());
  // R2: operands enter through the fence, those of a sum through that of its first product. What an older product still
  // reads has entered already.
  SmallVector<Value> operands;
  for (MmaOp term = op; term; term = term.behind())
    if (isa<FragType>(term.getA().getType()) && !llvm::is_contained(operands, term.getA()))
      operands.push_back(term.getA());
  SmallVector<Value> entering;
  for (Value v : operands)
    if (llvm::none_of(inFlight, [&](const InFlight &p) { return llvm::is_contained(p.operands, v); }))
      entering.push_back(v);
  SmallVector<Value> through = op.before() ? SmallVector<Value>() : flat(entering);
  if (ownsAcc)
    llvm::append_range(through, acc);
  Value descA, descB = descriptor(op.getB(), transB);
  if (!fromRegisters) {
    // ptxas does not always see that these are uniform, and then computes each step's in vector registers.
    bool same = op.getA() == op.getB() && !transB;
    descB = uniform(descB);
    descA = same ? descB : uniform(descriptor(op.getA(), false));
  }
  if (!op.before()) {
    ValueRange fenced = ::sm::WgmmaFenceOp::create(b, loc, ValueRange(through).getTypes(), through).getResults();
    for (Value v : entering) {
      SmallVector<Value> &r = regs[v];
      r = llvm::to_vector_of<Value>(fenced.take_front(r.size()));
      fenced = fenced.drop_front(r.size());
    }
    if (ownsAcc)
      acc = llvm::to_vector_of<Value>(fenced);
  }

  // B is zero above the diagonal: the first half of the columns needs the first half of the steps. Two shapes on one
  // accumulator would serialise (C7511), so an accumulator that another product began is not halved.
  bool halves = op.getLower() && !op.getC() && n == 64 && steps == 4 && !transB;
  SmallVector<Value> d(n / 2);
  for (int64_t part = halves ? 1 : 0; part >= 0; --part) {
    int64_t columns = halves ? n / 2 : n, count = halves && part == 0 ? steps / 2 : steps, first = part * columns;
    SmallVector<Value> partial = acc;
    for (int64_t kk = 0; kk < count; ++kk) {
      SmallVector<Value> a;
      if (fromRegisters)
        a = llvm::to_vector_of<Value>(ArrayRef(regs[op.getA()]).slice(4 * kk, 4));
      Value stepA = descA ? add(descA, stepOffset(cast<BufType>(op.getA().getType()), false, kk)) : Value();
      Value stepB = add(descB, stepOffset(bType, transB, kk) + first * rowBytes / 16);
      auto product = ::sm::WgmmaOp::create(b, loc, SmallVector<Type>(columns / 2, b.getF32Type()), partial, a, stepA,
                                           stepB, columns, half(bType.getElement()), false, transB, false);
      partial = llvm::to_vector_of<Value>(product.getD());
    }
    llvm::copy(partial, d.begin() + first / 2);
  }
  regs[op.getD()] = d;
  if (op.behind())
    return success();
  ::sm::WgmmaCommitOp::create(b, loc);
  for (MmaOp term = op.before(); term; term = term.before())
    if (isa<FragType>(term.getA().getType()) && !llvm::is_contained(operands, term.getA()))
      operands.push_back(term.getA());
  inFlight.push_back({op.getD(), operands});
  forgetLane();
  return success();
}

void Lowering::lowerPrime(PrimeOp op) {
  SmallVector<Value> value = regs.at(op.getValue());
  Value zeros = shr(add(sharedBase(), kernel->getAttrOfType<IntegerAttr>("zeros").getInt()), 4);
  size_t n = value.size();
  value.append(4, i32(0));
  ValueRange in = ::sm::WgmmaFenceOp::create(b, loc, ValueRange(value).getTypes(), value).getResults();
  auto product = ::sm::WgmmaOp::create(b, loc, in.take_front(n).getTypes(), in.take_front(n), in.drop_front(n), Value(),
                                       zeros, int64_t(2 * n), ::sm::Half::BF16, false, false, true);
  ::sm::WgmmaCommitOp::create(b, loc);
  SmallVector<Value> out = llvm::to_vector_of<Value>(product.getD());
  llvm::append_range(out, in.drop_front(n));
  auto wait = ::sm::WgmmaWaitOp::create(b, loc, ValueRange(out).getTypes(), 0, out);
  regs[op.getResult()] = llvm::to_vector_of<Value>(wait.getResults().take_front(n));
}

// Fragments that were computed before the wait and are used behind it: they pass through it, so that work meant for the
// product's shadow stays there.
SmallVector<Value> Lowering::liveAcross(WaitOp wait) {
  SmallVector<Value> live;
  Block *block = wait->getBlock();
  for (Operation &op : *block) {
    if (&op == wait.getOperation())
      break;
    if (!isa<MulOp, AddOp, SubFOp>(op))
      continue;
    auto type = cast<FragType>(op.getResult(0).getType());
    if (type.dim(0) == 1 || type.dim(1) == 1)
      continue;
    if (llvm::any_of(op.getUsers(),
                     [&](Operation *user) { return wait->isBeforeInBlock(block->findAncestorOpInBlock(*user)); }))
      live.push_back(op.getResult(0));
  }
  return live;
}

LogicalResult Lowering::lowerWait(WaitOp op) {
  Value product = canonical(op.getPending());
  auto leaves = op->getAttrOfType<IntegerAttr>("leaves");
  if (!leaves) { // retired before
    give(op.getValue(), product);
    return success();
  }
  size_t retired = inFlight.size() - leaves.getInt();
  SmallVector<Value> tied; // template values whose registers pass through
  for (auto [i, p] : llvm::enumerate(inFlight)) {
    if (i >= retired)
      break;
    tied.push_back(p.product);
    for (Value operand : p.operands) {
      bool readOn = llvm::any_of(ArrayRef(inFlight).drop_front(retired),
                                 [&](const InFlight &q) { return llvm::is_contained(q.operands, operand); });
      if (!readOn && !llvm::is_contained(tied, operand))
        tied.push_back(operand);
    }
  }
  llvm::append_range(tied, liveAcross(op));
  SmallVector<Value> values = flat(tied);
  auto wait = ::sm::WgmmaWaitOp::create(b, loc, ValueRange(values).getTypes(), leaves.getInt(), values);
  ValueRange results = wait.getResults();
  for (Value v : tied) {
    SmallVector<Value> &r = regs[v];
    r = llvm::to_vector_of<Value>(results.take_front(r.size()));
    results = results.drop_front(r.size());
  }
  inFlight.erase(inFlight.begin(), inFlight.begin() + retired);
  give(op.getValue(), product);
  forgetLane();
  return success();
}

// One warp, 16x16 times 16x16: two tiles of eight columns. A block outside the matrix is zero.
void Lowering::lowerBlockMma(BlockMmaOp op) {
  int64_t w = *staticWarp, i = op.getI(), j = op.getJ();
  SmallVector<Value> c;
  if (op.getC())
    c = regs.at(op.getC());
  if (c.empty())
    c.assign(8, f32(0));
  if (w - i - j < 0) {
    regs[op.getD()] = c;
    return;
  }
  auto blockOf = [&](Value frag, int64_t diagonal) {
    SmallVector<Value> &r = regs.at(frag);
    int64_t column = cast<FragType>(frag.getType()).dim(1) == 16 ? 0 : w - diagonal;
    return llvm::to_vector_of<Value>(ArrayRef(r).slice(4 * column, 4));
  };
  SmallVector<Value> a = blockOf(op.getA(), i), operand;
  if (isa<FragType>(op.getB().getType())) {
    for (Value v : blockOf(op.getB(), j))
      operand.push_back(::sm::MovmatrixOp::create(b, loc, v));
  } else {
    forgetLane();
    int64_t offset = op.getB().getDefiningOp()->getAttrOfType<IntegerAttr>("offset").getInt();
    Value at = add(scratchAddress(i32(w - i), offset), blockOffset());
    operand = llvm::to_vector_of<Value>(
        ::sm::LdmatrixOp::create(b, loc, SmallVector<Type>(4, b.getI32Type()), at, true).getValues());
  }
  SmallVector<Value> d;
  for (int64_t tile = 0; tile < 2; ++tile) {
    auto mma = ::sm::MmaOp::create(b, loc, a, ValueRange(operand).slice(2 * tile, 2), ValueRange(c).slice(4 * tile, 4),
                                   ::sm::Half::F16);
    llvm::append_range(d, mma->getResults());
  }
  regs[op.getD()] = d;
}
