// convert-tile-to-sm: shared memory to registers and back. The addresses follow compiler/tile/Layout.h.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

// Row `lane mod 16` and half `lane / 16` of a 16x16 block of a swizzled tile: what ldmatrix and stmatrix of four 8x8
// matrices want.
Value Lowering::blockAddress(Value buf, Value rowBlock, int64_t columnBlock) {
  auto type = cast<BufType>(buf.getType());
  Value l = lane();
  Value row = shl(andi(l, 15), 7), half = shl(xori(shr(l, 4), andi(l, 7)), 4);
  Value at = add(add(add(addressOf(buf), columnBlock / 4 * boxBytes(type)), shl(rowBlock, 11)), ori(row, half));
  return xori(at, (columnBlock % 4) << 5);
}

// The same for a block that is transposed on its way: rows are tokens, and this warp's 16 columns of the buffer are its
// rows.
Value Lowering::transposedAddress(Value buf, int64_t tokenBlock) {
  Value l = lane(), w = warpInCopy();
  Value row = ori(shl(andi(l, 7), 7), shl(andi(l, 16), 6));
  Value column = xori(add(shl(w, 1), andi(shr(l, 3), 1)), andi(l, 7));
  return add(add(addressOf(buf), add(row, shl(column, 4))), tokenBlock * 16 * rowBytes);
}

// A warp's rows of the role's scratch.
Value Lowering::scratchAddress(Value rowBlock, int64_t offset) {
  int64_t rows = role->getAttrOfType<IntegerAttr>("scratch_row").getInt();
  Value at = add(sharedBase(), role->getAttrOfType<IntegerAttr>("scratch").getInt() + offset);
  if (copies > 1)
    at = add(at, mul(copyIndex(), rows * warps));
  return add(at, mul(rowBlock, rows));
}
// Row `lane mod 16`, half `lane / 16` of a 16x16 block of a block diagonal.
Value Lowering::blockOffset() {
  Value l = lane();
  Value swap = andi(shr(l, 2), 1);
  return add(shl(andi(l, 15), 5), shl(xori(shr(l, 4), swap), 4));
}

static int64_t offsetOf(Value scratch) {
  return scratch.getDefiningOp()->getAttrOfType<IntegerAttr>("offset").getInt();
}

// Where a row of values keeps this thread's two: eight bytes apart.
Value Lowering::columnAddress(Value rowBuf) {
  int64_t strip = stripBytes(cast<BufType>(rowBuf.getType()).dim(1));
  Value l = lane(), w = warpInCopy();
  Value at = add(add(mul(andi(shr(l, 3), 3), strip), shl(w, 4)), shl(andi(shr(l, 2), 1), 2));
  return add(addressOf(rowBuf), at);
}

// Whether all that is computed of a value goes back to shared memory.
static bool isStored(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<WriteOp>(user) || (isa<AddOp, SubFOp, MulOp, NegOp, ScaleOp>(user) && isStored(user->getResult(0)));
  });
}

void Lowering::lowerRead(ReadOp op) {
  Value buf = op.getBuf();
  auto type = cast<BufType>(buf.getType());
  SmallVector<Value> &out = regs[op.getFrag()];
  out.clear();
  Held &h = held[buffers.lookup(buf).ring];
  h.generic = true;
  forgetLane();
  if (isRowBuffer(type) && op.getTrans()) { // [n, 1]: this thread's two rows
    Value at = columnAddress(buf);
    for (int64_t half : {0, 8}) {
      out.push_back(::sm::LoadSharedOp::create(b, loc, TypeRange{b.getF32Type()}, add(at, half)).getResult(0));
      if (!isStored(op.getFrag())) // else no arrival overtakes it: none overtakes a store
        h.loaded.push_back(asInt(out.back()));
    }
  } else if (isRowBuffer(type)) {
    Value at = add(addressOf(buf), mul(andi(lane(), 3), stripBytes(type.dim(1))));
    for (int64_t i = 0; i < type.dim(1) / 16; ++i) {
      auto load = ::sm::LoadSharedOp::create(b, loc, SmallVector<Type>(4, b.getF32Type()), add(at, 16 * i));
      llvm::append_range(out, load.getValues());
    }
    h.loaded.push_back(asInt(out.back()));
  } else { // transposed tile
    for (int64_t t = 0; t < type.dim(0) / 16; ++t) {
      auto load =
          ::sm::LdmatrixOp::create(b, loc, SmallVector<Type>(4, b.getI32Type()), transposedAddress(buf, t), true);
      llvm::append_range(out, load.getValues());
      h.loaded.push_back(out.back());
    }
  }
}

// Of a packed fragment: where this thread's first four registers lie, and how far it is to the next four.
Value Lowering::quadOffset() { return shl(add(shl(warpInCopy(), 5), lane()), 4); }
int64_t Lowering::quadBytes() { return warps * 32 * 16; }

void Lowering::lowerUnpack(UnpackOp op) {
  SmallVector<Value> &out = regs[op.getFrag()];
  out.clear();
  int64_t registers = registersOf(op.getFrag().getType()) / op.getBufs().size();
  forgetLane();
  for (Value buf : op.getBufs()) {
    Held &h = held[buffers.lookup(buf).ring];
    Value at = add(addressOf(buf), quadOffset());
    for (int64_t r = 0; r < registers; r += 4) {
      auto load =
          ::sm::LoadSharedOp::create(b, loc, SmallVector<Type>(4, b.getF32Type()), add(at, r / 4 * quadBytes()));
      llvm::append_range(out, load.getValues());
    }
    h.generic = true;
    h.loaded.push_back(asInt(out.back()));
  }
}

void Lowering::lowerWrite(WriteOp op) {
  Value buf = op.getBuf();
  auto type = cast<BufType>(buf.getType());
  auto frag = cast<FragType>(op.getFrag().getType());
  SmallVector<Value> v = regs.at(op.getFrag());
  if (isRowBuffer(type) && op.getTrans()) { // one thread of a quad for all
    forgetLane();
    auto writer = scf::IfOp::create(b, loc, eq(andi(lane(), 3), 0), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(writer.thenBlock()->getTerminator());
    Value at = columnAddress(buf);
    for (int64_t h = 0; h < 2; ++h)
      ::sm::StoreSharedOp::create(b, loc, ValueRange{v[h]}, add(at, 8 * h), false);
    forgetLane();
    return;
  }
  if (isRowBuffer(type)) { // two tokens a lane
    Value l = lane();
    Value at = add(addressOf(buf), add(mul(andi(l, 3), stripBytes(type.dim(1))), shl(shr(l, 2), 3)));
    ::sm::StoreSharedOp::create(b, loc, v, at, false);
    return;
  }
  forgetLane();
  if (!frag.getElement().isF32()) { // a block diagonal of scratch
    ::sm::StmatrixOp::create(b, loc, v, add(scratchAddress(warpInCopy(), offsetOf(buf)), blockOffset()), false);
    return;
  }
  int64_t blocks = (op.getTrans() ? type.dim(0) : type.dim(1)) / 16;
  for (int64_t c = 0; c < blocks; ++c) {
    if (op.getLower() && staticWarp && c > *staticWarp)
      break;
    SmallVector<Value> packed;
    for (int64_t i = 0; i < 4; ++i)
      packed.push_back(pack(type.getElement(), v[8 * c + 2 * i], v[8 * c + 2 * i + 1]));
    Value at = op.getTrans() ? transposedAddress(buf, c) : blockAddress(buf, warpInCopy(), c);
    ::sm::StmatrixOp::create(b, loc, packed, at, op.getTrans());
  }
}

void Lowering::lowerWriteBlocks(WriteBlocksOp op) {
  int64_t column = *staticWarp - op.getI();
  if (column < 0)
    return;
  auto type = cast<BufType>(op.getBuf().getType());
  SmallVector<Value> &v = regs.at(op.getFrag());
  SmallVector<Value> packed;
  for (int64_t i = 0; i < 4; ++i)
    packed.push_back(packOperand(type.getElement(), v[2 * i], v[2 * i + 1]));
  forgetLane();
  ::sm::StmatrixOp::create(b, loc, packed, blockAddress(op.getBuf(), warpInCopy(), column), false);
}

void Lowering::lowerAny(AnyOp op) {
  auto type = cast<BufType>(op.getValue().getType());
  forgetLane();
  Value l = lane();
  Value at = add(addressOf(op.getValue()), add(mul(andi(l, 3), stripBytes(type.dim(1))), shl(shr(l, 2), 3)));
  auto load = ::sm::LoadSharedOp::create(b, loc, SmallVector<Type>(2, b.getF32Type()), at);
  Value zero = f32(0);
  Value some =
      arith::OrIOp::create(b, loc, arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, load.getResult(0), zero),
                           arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, load.getResult(1), zero));
  regs[op.getResult()] = {Value(::sm::AnyOp::create(b, loc, some))};
  held[buffers.lookup(op.getValue()).ring].generic = true;
}

void Lowering::lowerSub(SubOp op) {
  auto whole = cast<BufType>(op.getBuf().getType());
  BufferRef ref = buffers.at(op.getBuf());
  ref.column = op.getOffsets()[1]; // a multiple of 64: whole boxes
  ref.perColumn = boxBytes(whole) / boxColumns;
  buffers[op.getBox()] = ref;
}
