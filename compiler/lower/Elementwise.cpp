// convert-tile-to-sm: arithmetic on fragments, register by register.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

// Which register of an operand meets register r of a result that is held as a product leaves it: columns 8j + 2q + b,
// rows + 8h are register 4j + 2h + b.
static int64_t meets(FragType operand, FragType result, int64_t r) {
  if (operand.dim(0) == result.dim(0) && operand.dim(1) == result.dim(1))
    return r;
  if (operand.dim(0) == 1 && operand.dim(1) == 1)
    return 0;
  if (result.dim(0) == 1 || result.dim(1) == 1)
    return operand.dim(0) == 1 && operand.dim(1) == 1 ? 0 : r;
  return operand.dim(0) == 1 ? r / 4 * 2 + r % 2 : r / 2 % 2;
}

LogicalResult Lowering::lowerElementwise(Operation &op) {
  SmallVector<Value> out;
  if (isa<UndefOp>(op)) {
    for (Type t : typesOf(op.getResult(0).getType()))
      out.push_back(t.isF32() || t.isInteger(32) ? Value(::sm::UndefOp::create(b, loc, t)) : Value());
    regs[op.getResult(0)] = out;
    return success();
  }
  auto type = cast<FragType>(op.getResult(0).getType());
  int64_t n = registersOf(type);
  auto operand = [&](unsigned i, int64_t r) {
    Value v = op.getOperand(i);
    return regs.at(v)[meets(cast<FragType>(v.getType()), type, r)];
  };
  auto contract = arith::FastMathFlags::contract;
  for (int64_t r = 0; r < n; ++r) {
    if (auto fill = dyn_cast<FillOp>(op))
      out.push_back(f32(fill.getValue().convertToFloat()));
    else if (isa<AddOp>(op))
      out.push_back(arith::AddFOp::create(b, loc, operand(0, r), operand(1, r), contract));
    else if (isa<SubFOp>(op))
      out.push_back(arith::SubFOp::create(b, loc, operand(0, r), operand(1, r), contract));
    else if (isa<MulOp>(op))
      out.push_back(arith::MulFOp::create(b, loc, operand(0, r), operand(1, r), contract));
    else if (isa<Exp2Op>(op))
      out.push_back(::sm::Ex2Op::create(b, loc, operand(0, r)));
    else if (isa<SigmoidOp>(op))
      out.push_back(sigmoid(operand(0, r)));
    else if (isa<SoftplusOp>(op))
      out.push_back(softplus(operand(0, r)));
    else if (isa<Log2Op>(op))
      out.push_back(log2(operand(0, r)));
    else if (auto rsqrt = dyn_cast<RsqrtOp>(op))
      out.push_back(::sm::RsqrtOp::create(
          b, loc, arith::AddFOp::create(b, loc, operand(0, r), f32(rsqrt.getPlus().convertToFloat()))));
    else if (isa<ScaleOp>(op))
      out.push_back(arith::MulFOp::create(b, loc, operand(0, r), scalar(op.getOperand(1)), contract));
    else if (auto bound = dyn_cast<AtLeastOp>(op))
      out.push_back(arith::MaximumFOp::create(b, loc, operand(0, r), f32(intOf(bound.getBound()))));
    else if (type.getElement().isF32()) // neg
      out.push_back(arith::NegFOp::create(b, loc, operand(0, r)));
    else // both halves of a pair
      out.push_back(xori(operand(0, r), int64_t(int32_t(0x80008000))));
  }
  regs[op.getResult(0)] = out;
  return success();
}

void Lowering::lowerLower(LowerOp op) {
  SmallVector<Value> in = regs.at(op.getValue()), out;
  Value fill = f32(op.getFill().convertToFloat());
  forgetLane();
  Value l = lane();
  // column <= row - below  <=>  8j + b - 8h + below - 16w <= lane / 4 - 2 (lane mod 4)
  Value place = sub(shr(l, 2), shl(andi(l, 3), 1));
  if (!staticWarp)
    place = add(place, shl(warpInCopy(), 4));
  for (int64_t r = 0; r < int64_t(in.size()); ++r) {
    int64_t j = r / 4, h = r / 2 % 2, e = r % 2;
    int64_t least = 8 * j + e - 8 * h + int64_t(op.getBelow()) - (staticWarp ? 16 * *staticWarp : 0);
    if (staticWarp && least <= -6) // place lies in -6..7
      out.push_back(in[r]);
    else if (staticWarp && least > 7)
      out.push_back(fill);
    else
      out.push_back(select(cmp(arith::CmpIPredicate::sge, place, i32(least)), in[r], fill));
  }
  regs[op.getResult()] = out;
}

void Lowering::lowerPad(PadOp op) {
  SmallVector<Value> out = regs.at(op.getValue());
  Value rows = rowsOf(op.getChunk()).second, token = shl(lane(), 1);
  for (auto [e, v] : llvm::enumerate(out))
    v = select(cmp(arith::CmpIPredicate::slt, add(token, e), rows), v, f32(0));
  regs[op.getResult()] = out;
}

// Two tokens a lane. What lies before a lane in its group of four, then what the groups before it add up to: shuffles
// that wait for each other are two deep. Always added from the oldest on: the sums fall with the gates, and stay where
// they are over zeros, to the bit.
void Lowering::lowerCumsum(CumsumOp op) {
  SmallVector<Value> &in = regs.at(op.getValue());
  auto plus = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, loc, x, y); };
  Value own = plus(in[0], in[1]);
  forgetLane();
  Value l = lane();
  auto sumBefore = [&](int64_t count, int64_t stride, Value value, Value last, Value available) {
    Value sum;
    for (int64_t k = count; k > 0; --k) {
      Value other = ::sm::ShuffleOp::create(b, loc, ::sm::ShuffleMode::Idx, value, andi(add(last, -stride * k), 31));
      other = select(cmp(arith::CmpIPredicate::sge, available, i32(k)), other, f32(0));
      sum = sum ? plus(sum, other) : other;
    }
    return sum;
  };
  Value inGroup = sumBefore(3, 1, own, l, andi(l, 3)), upTo = plus(inGroup, own);
  Value groups = sumBefore(7, 4, upTo, ori(l, i32(3)), shr(l, 2));
  regs[op.getResult()] = {plus(groups, plus(inGroup, in[0])), plus(groups, upTo)};
}

void Lowering::lowerLast(LastOp op) {
  auto type = cast<FragType>(op.getValue().getType());
  if (auto read = op.getValue().getDefiningOp<ReadOp>();
      read && !read.getTrans()) { // one word instead of a row and a shuffle
    int64_t n = type.dim(1);
    Value at = add(addressOf(read.getBuf()), 3 * stripBytes(n) + (n / 8 - 1) * 8 + 4);
    regs[op.getResult()] = {::sm::LoadSharedOp::create(b, loc, TypeRange{b.getF32Type()}, at).getResult(0)};
    return;
  }
  Value value = regs.at(op.getValue()).back();
  Value from = type.getLanes() ? i32(31) : ori(lane(), i32(3));
  regs[op.getResult()] = {Value(::sm::ShuffleOp::create(b, loc, ::sm::ShuffleMode::Idx, value, from))};
}

void Lowering::lowerConvert(ConvertOp op) {
  SmallVector<Value> in = regs.at(op.getValue()), out;
  Type from = cast<FragType>(op.getValue().getType()).getElement(), to = cast<FragType>(op.getType()).getElement();
  if (from.isF32() && !to.isF32()) {
    for (size_t i = 0; i < in.size(); i += 2)
      out.push_back(packOperand(to, in[i], in[i + 1]));
  } else if (to.isF32() && !from.isF32()) {
    for (Value v : in) {
      auto [lo, hi] = unpack(from, v);
      out.append({lo, hi});
    }
  } else {
    out = in;
  }
  regs[op.getResult()] = out;
}

void Lowering::lowerColumns(ColumnsOp op) {
  auto type = cast<FragType>(op.getType());
  int64_t n = registersOf(type), first = int64_t(op.getFirst()) * n / type.dim(1);
  SmallVector<Value> taken(ArrayRef(regs.at(op.getValue())).slice(first, n));
  regs[op.getResult()] = std::move(taken);
}

void Lowering::lowerDiagonal(DiagonalOp op) {
  forgetLane();
  Value l = lane();
  // column = row + offset  <=>  8j + e - 8h = 16w + lane / 4 + offset - 2 (lane mod 4)
  Value place = add(sub(shr(l, 2), shl(andi(l, 3), 1)), add(shl(warpInCopy(), 4), scalar(op.getOffset())));
  SmallVector<Value> out;
  for (int64_t r = 0; r < registersOf(op.getType()); ++r)
    out.push_back(select(eq(place, r / 4 * 8 + r % 2 - r / 2 % 2 * 8), f32(1), f32(0)));
  regs[op.getResult()] = out;
}
