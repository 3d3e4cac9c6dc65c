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

// The diagonal of X X^T, but not as products: the tensor cores are the chain's.
void Lowering::lowerRowSquares(RowSquaresOp op) {
  Value buf = op.getBuf();
  auto type = cast<BufType>(buf.getType());
  held[buffers.lookup(buf).ring].generic = true; // the products have used what was read long before the release
  forgetLane();
  auto contract = arith::FastMathFlags::contract;
  SmallVector<Value> sums(2, f32(0));
  for (int64_t c = 0; c < type.dim(1) / 16; ++c) {
    auto load = ::sm::LdmatrixOp::create(b, loc, SmallVector<Type>(4, b.getI32Type()),
                                         blockAddress(buf, warpInCopy(), c), false);
    for (int64_t i = 0; i < 4; ++i) {
      auto [even, odd] = unpack(type.getElement(), load.getResult(i));
      Value &sum = sums[i % 2]; // of this thread's first or second row
      for (Value v : {even, odd})
        sum = arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, v, v, contract), sum, contract);
    }
  }
  for (Value &sum : sums)
    for (int64_t other : {1, 2}) // the four threads of a row
      sum =
          arith::AddFOp::create(b, loc, sum, ::sm::ShuffleOp::create(b, loc, ::sm::ShuffleMode::Bfly, sum, i32(other)));
  regs[op.getSums()] = sums;
}
