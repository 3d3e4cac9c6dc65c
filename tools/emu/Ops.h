// What the families of instructions share.
#pragma once
#include "Exec.h"

namespace gdn::emu {

// Instructions that exist for integers and for floating point: add, sub, mul, mad, fma, div, min, max, abs, neg.
void decodeInteger(Decoder &d, const std::string &name);
void decodeFloat(Decoder &d, const std::string &name);
void decodeHalf(Decoder &d, const std::string &name);

// Rounding of floating-point arithmetic: the order of the modifiers.
enum class Rounding : uint8_t { Nearest, Zero, Down, Up };
Rounding takeRounding(Decoder &d); // rn, rz, rm, rp; nearest where there is none
// add, sub, mul, fma, div, sqrt, rcp under a rounding other than to nearest.
Run roundedRun(Type t, const std::string &name);

float exp2Approx(float x); // ex2.approx

// D (16 x 8n, fp32) += A (16 x k) B (k x 8n), k = 8 or 16, on fragments as mma and wgmma lay them out. `a` holds, for
// each k, the 16 rows each four times; `b` for each k and group of eight columns the even, then the odd columns; `d`
// has four vectors of 32 lanes a group of eight columns.
//
// A sum is that of the old value and k products, all at once: each term is cut to 25 binary places below the largest
// exponent among them (a product's is the sum of its operands', a subnormal's the least of its type), the cut terms are
// added without error, and the sum is cut to fp32. An H200 gives the same bits; see gdn-calibrate.
void multiplyFragments(float *const *d, const float *a, const float *b, unsigned groups, unsigned k, bool bf16);
// Lanes' A registers (two 16-bit values each) into that form: k = 8 has two registers, k = 16 four.
void expandA(const uint32_t *const *registers, unsigned k, bool bf16, float *a);

} // namespace gdn::emu
