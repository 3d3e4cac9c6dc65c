// convert-tile-to-sm: diagonals of what products leave in registers.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

// A warp's 16x16 diagonal block of a square fragment. The warp picks at run time: a code for each of them would not fit
// the instruction cache beside the rest.
SmallVector<Value> Lowering::ownBlock(Value square) {
  Value w = warpInCopy();
  SmallVector<Value> all = regs.at(square), own(all.end() - 8, all.end());
  for (int64_t i = warps - 2; i >= 0; --i)
    for (auto [e, v] : llvm::enumerate(own))
      v = select(eq(w, i), all[8 * i + e], v);
  return own;
}

// Row g of a half has its diagonal element in lane 4 g + g / 2, as element g mod 2 of the pair.
SmallVector<Value> Lowering::blockDiagonal(SmallVector<Value> block) {
  forgetLane();
  Value l = lane(), odd = eq(andi(shr(l, 2), 1), 1), from = ori(andi(l, 28), shr(l, 3));
  SmallVector<Value> diagonal;
  for (int64_t first : {0, 6}) {
    Value mine = select(odd, block[first + 1], block[first]);
    diagonal.push_back(::sm::ShuffleOp::create(b, loc, ::sm::ShuffleMode::Idx, mine, from));
  }
  return diagonal;
}

void Lowering::lowerDiag(DiagOp op) {
  forgetLane();
  regs[op.getDiagonal()] = blockDiagonal(ownBlock(op.getValue()));
}

// The diagonal of X X^T: as left operand a warp's rows, as right one the upper and the lower half of the same
// registers.
void Lowering::lowerRowSquares(RowSquaresOp op) {
  Value buf = op.getBuf();
  auto type = cast<BufType>(buf.getType());
  held[buffers.lookup(buf).ring].generic = true; // the products have used what was read long before the release
  forgetLane();
  SmallVector<Value> upper(4, f32(0)), lower = upper;
  for (int64_t c = 0; c < type.dim(1) / 16; ++c) {
    auto load = ::sm::LdmatrixOp::create(b, loc, SmallVector<Type>(4, b.getI32Type()),
                                         blockAddress(buf, warpInCopy(), c), false);
    SmallVector<Value> x = llvm::to_vector_of<Value>(load.getValues());
    auto step = [&](SmallVector<Value> &sum, ValueRange right) {
      auto mma = ::sm::MmaOp::create(b, loc, x, right, sum, half(type.getElement()));
      sum = llvm::to_vector_of<Value>(mma.getResults());
    };
    step(upper, {x[0], x[2]});
    step(lower, {x[1], x[3]});
  }
  upper.append(lower);
  regs[op.getSums()] = blockDiagonal(upper);
}
