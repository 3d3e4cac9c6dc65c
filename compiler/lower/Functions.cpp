// convert-tile-to-sm: functions of one value, from products, sums and ex2: the bits of rcp.approx and lg2.approx are
// not specified, and lg2.approx has no relative accuracy around 1.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

static constexpr auto contract = arith::FastMathFlags::contract;

// log2(1 + x) for |x| <= 1/3, within 1.4e-7 of itself.
Value Lowering::log2OnePlus(Value x) {
  static constexpr float coefficients[] = {0.197905898f,  -0.222081542f, 0.202880129f,  -0.236813575f, 0.288636625f,
                                           -0.360788077f, 0.480897635f,  -0.721346557f, 1.44269502f};
  Value sum;
  for (float coefficient : coefficients) {
    Value c = f32(coefficient);
    sum = sum ? Value(arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, sum, x, contract), c, contract)) : c;
  }
  return arith::MulFOp::create(b, loc, sum, x, contract);
}

// x = 2^e m with m in [2/3, 4/3).
Value Lowering::log2(Value x) {
  Value bits = asInt(x), e = arith::ShRSIOp::create(b, loc, add(bits, -0x3f2aaaab), i32(23));
  Value m = asFloat(sub(bits, shl(e, 23)));
  Value fraction = log2OnePlus(arith::SubFOp::create(b, loc, m, f32(1)));
  return arith::AddFOp::create(b, loc, arith::SIToFPOp::create(b, loc, b.getF32Type(), e), fraction);
}

// max(x, 0) + log2(1 + u) with u = 2^-|x|; past 1/3, 1 + u is halved.
Value Lowering::softplus(Value x) {
  Value minus = arith::NegFOp::create(b, loc, x), zero = f32(0);
  Value u = ::sm::Ex2Op::create(b, loc, arith::MinimumFOp::create(b, loc, x, minus));
  Value large = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, u, f32(1.0f / 3));
  Value halved =
      arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, u, f32(0.5f), contract), f32(-0.5f), contract);
  Value sum = arith::AddFOp::create(b, loc, log2OnePlus(select(large, halved, u)), select(large, f32(1), zero));
  return arith::AddFOp::create(b, loc, sum, arith::MaximumFOp::create(b, loc, x, zero));
}

// With u = e^-|x|, 1 / (1 + u) or u / (1 + u): nothing overflows. The quotient by Newton's iteration from a line.
Value Lowering::sigmoid(Value x) {
  Value least = arith::MinimumFOp::create(b, loc, x, arith::NegFOp::create(b, loc, x));
  Value u = ::sm::Ex2Op::create(b, loc, arith::MulFOp::create(b, loc, least, f32(1.44269504f), contract));
  Value d = arith::AddFOp::create(b, loc, u, f32(1));
  auto plusProduct = [&](Value sum, Value y, Value z) -> Value {
    return arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, y, z, contract), sum, contract);
  };
  Value q = plusProduct(f32(24.0f / 17), d, f32(-8.0f / 17));
  for (int i = 0; i < 3; ++i) {
    Value error = plusProduct(f32(1), arith::NegFOp::create(b, loc, d), q);
    q = plusProduct(q, q, error);
  }
  Value positive = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, f32(0));
  return select(positive, q, arith::MulFOp::create(b, loc, q, u, contract));
}
