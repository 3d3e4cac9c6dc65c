// convert-tile-to-sm: the 16x16 diagonal blocks of the triangular inverse. The one place where lanes matter.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

// This thread's values of its warp's 16x16 diagonal block of A, and beta of that block.
std::pair<SmallVector<Value>, SmallVector<Value>> Lowering::diagonalBlock(SolveBlocksOp op) {
  SmallVector<Value> a = ownBlock(op.getA());
  Value w = warpInCopy(), l = lane();
  Value at = add(addressOf(op.getBeta()), mul(andi(l, 3), stripBytes(op.getBeta().getType().dim(1))));
  auto beta = ::sm::LoadSharedOp::create(b, loc, SmallVector<Type>(4, b.getF32Type()), add(at, shl(w, 4)));
  Held &h = held[buffers.lookup(op.getBeta()).ring];
  h.generic = true;
  h.loaded.push_back(asInt(beta.getResult(3)));
  SmallVector<Value> values = llvm::to_vector_of<Value>(beta.getValues());
  if (op.getFactor()) // where this thread's pair meets the diagonal, its row is the column
    for (int64_t i = 0; i < 4; ++i)
      values[i] =
          arith::MulFOp::create(b, loc, values[i], regs.at(op.getFactor())[i / 2], arith::FastMathFlags::contract);
  return {a, values};
}

// Column `column` of the inverse of the 8x8 block that lies transposed at `from`, beta on its diagonal.
SmallVector<Value> Lowering::substitute(Value from, Value column) {
  SmallVector<Value> x;
  for (int64_t i = 0; i < 8; ++i)
    x.push_back(select(eq(column, i), f32(1), f32(0)));
  auto contract = arith::FastMathFlags::contract;
  for (int64_t k = 0; k < 8; ++k)
    for (int64_t q = k / 4; q < 2; ++q) {
      auto load =
          ::sm::LoadSharedOp::create(b, loc, SmallVector<Type>(4, b.getF32Type()), add(from, k * solveColumn + 16 * q));
      if (q == k / 4)
        x[k] = arith::MulFOp::create(b, loc, x[k], load.getResult(k % 4), contract);
      for (int64_t i = std::max(k + 1, 4 * q); i < 4 * q + 4; ++i) {
        Value product = arith::MulFOp::create(b, loc, load.getResult(i % 4), x[k], contract);
        x[i] = arith::SubFOp::create(b, loc, x[i], product, contract);
      }
    }
  return x;
}

// M = diag(1/beta) + strictly lower A, this warp's 16x16 block of it as [[M11, 0], [M21, M22]]. D11 and D22, the
// inverses of the 8x8 blocks, by substitution in fp32: a lane owns a column x of the inverse, x_k <- beta_k x_k, then
// x_i <- x_i - A_ik x_k for i > k. Lanes 0-7 take D11, 8-15 D22; the upper half of the warp does the same work again
// and writes the lower half of the rows. D21 = -D22 M21 D11 on the tensor cores in fp16.
void Lowering::lowerSolveBlocks(SolveBlocksOp op) {
  forgetLane();
  Value w = warpInCopy(), l = lane(), scratch = scratchAddress(w, 0);
  auto [a, beta] = diagonalBlock(op);
  Value diagonal = sub(shr(l, 2), shl(andi(l, 3), 1)); // row - first column of this thread's pair
  Value onFirst = eq(diagonal, 0), onSecond = eq(diagonal, 1);
  // Transposed, beta on the diagonal: what a step of the substitution reads is consecutive.
  Value to = add(scratch, add(mul(andi(l, 3), 2 * solveColumn), shl(shr(l, 2), 2)));
  auto put = [&](Value v, int64_t offset) {
    ::sm::StoreSharedOp::create(b, loc, ValueRange{v}, add(to, offset), false);
  };
  put(select(onFirst, beta[0], a[0]), 0);
  put(select(onSecond, beta[1], a[1]), solveColumn);
  put(select(onFirst, beta[2], a[6]), solveSecond);
  put(select(onSecond, beta[3], a[7]), solveSecond + solveColumn);
  Value m21 = ::sm::MovmatrixOp::create(b, loc, packOperand(b.getF16Type(), a[2], a[3]));
  ::sm::WarpSyncOp::create(b, loc);

  forgetLane();
  l = lane();
  Value column = andi(l, 7), second = andi(shr(l, 3), 1), upper = shr(l, 4);
  Value from = add(scratch, mul(second, solveSecond));
  SmallVector<Value> x = substitute(from, column);
  // Rows 8 second + 4 upper + i: a half is swapped on every other four rows.
  Value isUpper = eq(upper, 1);
  Value at = add(add(shl(second, 8), shl(upper, 7)), add(shl(xori(second, upper), 4), shl(column, 1)));
  at = add(scratch, add(at, solveInverse));
  for (int64_t i = 0; i < 4; ++i) {
    Value v = select(isUpper, x[4 + i], x[i]);
    Value narrow = packOperand(b.getF16Type(), v, v);
    ::sm::StoreSharedOp::create(b, loc, ValueRange{narrow}, add(at, 32 * i), true);
  }
  ::sm::WarpSyncOp::create(b, loc);

  forgetLane();
  l = lane();
  Value half = xori(andi(shr(l, 3), 1), andi(shr(l, 2), 1));
  Value row = add(scratch, add(add(shl(andi(l, 15), 5), shl(half, 4)), solveInverse));
  auto blocks = ::sm::LdmatrixOp::create(b, loc, SmallVector<Type>(2, b.getI32Type()), row, false);
  Value d11 = blocks.getResult(0), d22 = blocks.getResult(1), zero = i32(0);
  SmallVector<Value> none(4, f32(0));
  auto t = ::sm::MmaOp::create(b, loc, ValueRange{d22, zero}, ValueRange{m21}, none, ::sm::Half::F16);
  Value minus =
      packOperand(b.getF16Type(), arith::NegFOp::create(b, loc, t.getD0()), arith::NegFOp::create(b, loc, t.getD1()));
  Value d11b = ::sm::MovmatrixOp::create(b, loc, d11);
  auto d21 = ::sm::MmaOp::create(b, loc, ValueRange{minus, zero}, ValueRange{d11b}, none, ::sm::Half::F16);
  auto [x0, x1] = unpack(b.getF16Type(), d11);
  auto [y0, y1] = unpack(b.getF16Type(), d22);
  regs[op.getInverse()] = {x0, x1, d21.getD0(), d21.getD1(), f32(0), f32(0), y0, y1};
}
