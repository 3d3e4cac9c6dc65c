// Each instruction against a function of its operands, over values that include the corners.
#include "harness.h"
#include <bit>
#include <cmath>
#include <functional>
#include <random>

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

// `code` computes %o of type `to` from %x, %y, %z of type `from`.
struct Case {
  const char *to, *from, *code;
  std::function<uint64_t(uint64_t, uint64_t, uint64_t)> expected;
};

void PrintTo(const Case &c, std::ostream *out) { *out << c.code; }

unsigned bytesOf(const std::string &type) { return unsigned(std::stoi(type.substr(type.find_first_of("123468"))) / 8); }

std::string kernel(const Case &c) {
  std::string from = c.from, to = c.to;
  auto at = [](const std::string &p, unsigned bytes) {
    return "mad.wide.u32 %a, %t, " + std::to_string(bytes) + ", " + p + ";\n";
  };
  std::string text =
      ".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z, .param .u64 o) {\n.reg .b64 %a, %px, %py, %pz, "
      "%po;\n.reg .b32 %t, %u;\n.reg .pred %p, %q;\n.reg ." +
      from + " %x, %y, %z;\n.reg ." + to + " %o;\n";
  for (const char *p : {"x", "y", "z", "o"})
    text += std::string("ld.param.u64 %p") + p + ", [" + p + "];\n";
  text += "mov.u32 %t, %tid.x;\nmov.u32 %u, %ctaid.x;\nmad.lo.u32 %t, %u, 64, %t;\n";
  for (const char *p : {"x", "y", "z"})
    text += at(std::string("%p") + p, bytesOf(from)) + "ld.global." + from + " %" + p + ", [%a];\n";
  text += std::string(c.code) + "\n" + at("%po", bytesOf(to)) + "st.global." + to + " [%a], %o;\nret;\n}\n";
  return module(text);
}

std::vector<uint64_t> values(const std::string &type, unsigned seed) {
  std::vector<uint64_t> list;
  std::mt19937_64 random(seed);
  bool isFloat = type[0] == 'f';
  unsigned bytes = bytesOf(type);
  const double corners[] = {0.0,   -0.0,  1.0,    -1.0,  0.5,  1.5,      2.5,       -2.5, 3e38,
                            -3e38, 1e-40, -1e-40, 65504, 1e10, INFINITY, -INFINITY, NAN};
  const uint64_t integers[] = {0,      1,          2,          31,         32,           33,
                               63,     0x7f,       0x80,       0xff,       0x7fff,       0x8000,
                               0xffff, 0x7fffffff, 0x80000000, 0xffffffff, ~uint64_t(0), uint64_t(1) << 63};
  for (unsigned n = 0; n < 512; n++) {
    uint64_t v = random();
    if (isFloat) {
      double d = random() % 3 ? corners[random() % std::size(corners)]
                              : std::ldexp(double(int64_t(v)), int(random() % 40) - 80);
      v = bytes == 4 ? std::bit_cast<uint32_t>(float(d)) : std::bit_cast<uint64_t>(d);
    } else if (random() % 2) {
      v = integers[random() % std::size(integers)];
    }
    list.push_back(bytes == 8 ? v : v & ((uint64_t(1) << 8 * bytes) - 1));
  }
  return list;
}

uint64_t f(float x) { return std::bit_cast<uint32_t>(x); }
float f(uint64_t x) { return std::bit_cast<float>(uint32_t(x)); }
double d(uint64_t x) { return std::bit_cast<double>(x); }
uint64_t d(double x) { return std::bit_cast<uint64_t>(x); }
float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
using U = uint64_t;

class Instruction : public testing::TestWithParam<Case> {};
TEST_P(Instruction, Computes) {
  const Case &c = GetParam();
  Machine machine;
  auto x = values(c.from, 1), y = values(c.from, 2), z = values(c.from, 3);
  unsigned in = bytesOf(c.from), out = bytesOf(c.to);
  Buffer<uint8_t> bx(machine, 512 * in), by(machine, 512 * in), bz(machine, 512 * in), bo(machine, 512 * out);
  for (unsigned n = 0; n < 512; n++) {
    std::memcpy(bx.data() + n * in, &x[n], in);
    std::memcpy(by.data() + n * in, &y[n], in);
    std::memcpy(bz.data() + n * in, &z[n], in);
  }
  Launch what;
  what.entry = "k";
  what.grid = {8, 1, 1}, what.block = {64, 1, 1};
  what.params = {param(bx.data()), param(by.data()), param(bz.data()), param(bo.data())};
  ASSERT_EQ(run(machine, kernel(c), what).error, "");
  for (unsigned n = 0; n < 512; n++) {
    uint64_t got = 0, mask = out == 8 ? ~U(0) : (U(1) << 8 * out) - 1, want = c.expected(x[n], y[n], z[n]) & mask;
    std::memcpy(&got, bo.data() + n * out, out);
    bool isFloat = c.to[0] == 'f';
    bool bothNan =
        isFloat && (out == 4 ? std::isnan(f(got)) && std::isnan(f(want)) : std::isnan(d(got)) && std::isnan(d(want)));
    ASSERT_TRUE(got == want || bothNan) << c.code << std::hex << " of " << x[n] << ", " << y[n] << ", " << z[n]
                                        << ": expected " << want << ", got " << got;
  }
}

#define CASE(TO, FROM, CODE, EXPRESSION)                                                                               \
  Case {                                                                                                               \
    TO, FROM, CODE,                                                                                                    \
        []([[maybe_unused]] U x, [[maybe_unused]] U y, [[maybe_unused]] U z) -> U { return U(EXPRESSION); }            \
  }
using I = int32_t;
using W = uint32_t;
using L = int64_t;

INSTANTIATE_TEST_SUITE_P(
    Integer, Instruction,
    testing::Values(
        CASE("u32", "u32", "add.u32 %o, %x, %y;", x + y), CASE("u32", "u32", "sub.s32 %o, %x, %y;", x - y),
        CASE("u64", "u64", "add.s64 %o, %x, %y;", x + y), CASE("u16", "u16", "add.u16 %o, %x, %y;", x + y),
        CASE("u32", "u32", "mul.lo.s32 %o, %x, %y;", x *y), CASE("u32", "u32", "mul.hi.u32 %o, %x, %y;", x *y >> 32),
        CASE("u32", "u32", "mul.hi.s32 %o, %x, %y;", L(I(x)) * L(I(y)) >> 32),
        CASE("u64", "u64", "mul.hi.u64 %o, %x, %y;", (unsigned __int128)x *y >> 64),
        CASE("u64", "u32", "mul.wide.s32 %o, %x, %y;", L(I(x)) * L(I(y))),
        CASE("u64", "u32", "mul.wide.u32 %o, %x, %y;", x *y),
        CASE("u32", "u32", "mad.lo.s32 %o, %x, %y, %z;", x *y + z),
        CASE("u32", "u32", "div.u32 %o, %x, %y;", y ? x / y : ~U(0)),
        CASE("u32", "u32", "rem.u32 %o, %x, %y;", y ? x % y : x),
        CASE("u32", "s32", "min.s32 %o, %x, %y;", std::min(I(x), I(y))),
        CASE("u32", "u32", "max.u32 %o, %x, %y;", std::max(x, y)),
        CASE("u32", "s32", "abs.s32 %o, %x;", I(x) < 0 ? -x : x), CASE("u32", "s32", "neg.s32 %o, %x;", -x),
        CASE("u32", "b32", "and.b32 %o, %x, %y;", x &y), CASE("b64", "b64", "xor.b64 %o, %x, %y;", x ^ y),
        CASE("u32", "b32", "not.b32 %o, %x;", ~x), CASE("u32", "b32", "shl.b32 %o, %x, %y;", y < 32 ? x << y : 0),
        CASE("u32", "u32", "shr.u32 %o, %x, %y;", y < 32 ? x >> y : 0),
        CASE("u32", "s32", "shr.s32 %o, %x, %y;", I(x) >> std::min<U>(y, 31)),
        CASE("u32", "b32", "shf.l.wrap.b32 %o, %x, %y, %z;", (y << 32 | x) << (z & 31) >> 32),
        CASE("u32", "b32", "shf.r.clamp.b32 %o, %x, %y, %z;", (y << 32 | x) >> std::min<U>(z, 32)),
        CASE("u32", "u32", "popc.b32 %o, %x;", std::popcount(W(x))),
        CASE("u32", "u32", "clz.b32 %o, %x;", std::countl_zero(W(x))),
        CASE("u32", "u32", "bfind.u32 %o, %x;", x ? 31 - std::countl_zero(W(x)) : ~U(0)),
        CASE("u32", "u32", "bfe.u32 %o, %x, 5, 9;", x >> 5 & 511),
        CASE("u32", "s32", "bfe.s32 %o, %x, 5, 9;", I(W(x) << 18) >> 23),
        CASE("u32", "b32", "bfi.b32 %o, %x, %y, 4, 8;", (y & ~U(0xff0)) | (x & 255) << 4),
        CASE("u32", "b32", "prmt.b32 %o, %x, %y, 0x5410;", (x & 0xffff) | y << 16),
        CASE("u32", "b32", "lop3.b32 %o, %x, %y, %z, 0xE8;", (x & y) | (x & z) | (y & z)),
        CASE("u32", "u32", "{ .reg .b32 %h; add.cc.u32 %h, %x, %y; addc.u32 %o, %z, 0; }", z + (W(x + y) < W(x))),
        CASE("u32", "u32", "{ .reg .b16 %l, %h; mov.b32 {%l, %h}, %x; mov.b32 %o, {%h, %l}; }", x >> 16 | x << 16),
        CASE("u32", "u32", "setp.lt.and.u32 %p, %x, %y, 1; selp.b32 %o, %x, %y, %p;", std::min(x, y)),
        CASE("u32", "u32", "setp.gt.s32 %p|%q, %x, %y; selp.b32 %o, 1, 2, %q;", I(x) > I(y) ? 2 : 1),
        CASE("u32", "u32", "set.le.u32.u32 %o, %x, %y;", x <= y ? ~U(0) : 0),
        CASE("u64", "s32", "cvt.s64.s32 %o, %x;", L(I(x))), CASE("u32", "u64", "cvt.u32.u64 %o, %x;", x),
        CASE("u32", "s32", "cvt.sat.u8.s32 %o, %x;", std::clamp(I(x), 0, 255)),
        CASE("u32", "u32", "cvt.s32.s8 %o, %x;", int8_t(x))));

INSTANTIATE_TEST_SUITE_P(
    Float, Instruction,
    testing::Values(
        CASE("f32", "f32", "add.rn.f32 %o, %x, %y;", f(f(x) + f(y))),
        CASE("f32", "f32", "sub.ftz.f32 %o, %x, %y;", f(flush(flush(f(x)) - flush(f(y))))),
        CASE("f32", "f32", "mul.rn.f32 %o, %x, %y;", f(f(x) * f(y))),
        CASE("f32", "f32", "fma.rn.f32 %o, %x, %y, %z;", f(std::fma(f(x), f(y), f(z)))),
        CASE("f64", "f64", "fma.rn.f64 %o, %x, %y, %z;", d(std::fma(d(x), d(y), d(z)))),
        CASE("f32", "f32", "div.rn.f32 %o, %x, %y;", f(f(x) / f(y))),
        CASE("f32", "f32", "sqrt.rn.f32 %o, %x;", f(std::sqrt(f(x)))), CASE("f32", "f32", "neg.f32 %o, %x;", f(-f(x))),
        CASE("f32", "f32", "abs.f32 %o, %x;", f(std::fabs(f(x)))),
        CASE("f32", "f32", "add.sat.f32 %o, %x, %y;", f(f(x) + f(y) > 0 ? std::min(f(x) + f(y), 1.0f) : 0.0f)),
        CASE("f32", "f32", "mul.rz.f32 %o, %x, 0f40400000;",
             [&] { // the product is exact in double: dropped bits are dropped
               double p = double(f(x)) * 3;
               float r = float(p);
               if (std::isfinite(p) && std::fabs(double(r)) > std::fabs(p))
                 r = std::nextafter(r, 0.0f);
               return f(r);
             }()),
        CASE("u32", "f32", "setp.lt.f32 %p, %x, %y; selp.b32 %o, 1, 0, %p;", f(x) < f(y)),
        CASE("u32", "f32", "setp.ltu.f32 %p, %x, %y; selp.b32 %o, 1, 0, %p;", !(f(x) >= f(y))),
        CASE("u32", "f32", "setp.ne.f32 %p, %x, %y; selp.b32 %o, 1, 0, %p;", f(x) < f(y) || f(x) > f(y)),
        CASE("u32", "f32", "setp.geu.f32 %p, %x, %y; selp.b32 %o, 1, 0, %p;", !(f(x) < f(y))),
        CASE("u32", "f32", "setp.nan.f32 %p, %x, %y; selp.b32 %o, 1, 0, %p;", std::isnan(f(x)) || std::isnan(f(y))),
        CASE("f32", "s32", "cvt.rn.f32.s32 %o, %x;", f(float(I(x)))),
        CASE("f32", "u32", "cvt.rn.f32.u32 %o, %x;", f(float(W(x)))),
        CASE("f64", "f32", "cvt.f64.f32 %o, %x;", d(double(f(x)))),
        CASE("f32", "f64", "cvt.rn.f32.f64 %o, %x;", f(float(d(x)))),
        CASE("u32", "f32", "cvt.rzi.s32.f32 %o, %x;",
             std::isnan(f(x))         ? 0
             : f(x) >= 2147483648.0f  ? INT32_MAX
             : f(x) <= -2147483648.0f ? INT32_MIN
                                      : I(f(x))),
        CASE("u32", "f32", "cvt.rni.u32.f32 %o, %x;",
             std::isnan(f(x)) || f(x) <= 0 ? 0
             : f(x) >= 4294967296.0f       ? W(~0u)
                                           : W(std::nearbyint(double(f(x))))),
        CASE("f32", "f32", "cvt.rmi.f32.f32 %o, %x;", f(std::floor(f(x)))),
        CASE("f32", "f32", "{ .reg .b16 %h; cvt.rn.bf16.f32 %h, %x; cvt.f32.bf16 %o, %h; }",
             [&] {
               W b = W(x);
               return std::isnan(f(x)) ? x : U((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u);
             }()),
        CASE("f32", "f32", "max.f32 %o, %x, %y;",
             std::isnan(f(x))   ? y
             : std::isnan(f(y)) ? x
             : f(x) == f(y)     ? (std::signbit(f(x)) ? y : x)
                                : f(std::max(f(x), f(y))))));

// 16-bit floats: the low halves of the words.
uint64_t h(double x) { return x == x ? std::bit_cast<uint16_t>(_Float16(x)) : 0x7fff; }
double h(uint64_t x) { return double(std::bit_cast<_Float16>(uint16_t(x))); }
uint64_t pair(uint64_t high, uint64_t low) { return high << 16 | low; }
double finite(double x) { return std::clamp(x, -65504.0, 65504.0); }
#define HALVES(F)                                                                                                      \
  pair(h([](double x, double y) -> double { return F; }(h(x >> 16), h(y >> 16))),                                      \
       h([](double x, double y) -> double { return F; }(h(x), h(y))))

INSTANTIATE_TEST_SUITE_P(Half, Instruction,
                         testing::Values(CASE("u32", "f32", "cvt.rn.f16x2.f32 %o, %x, %y;", pair(h(f(x)), h(f(y)))),
                                         CASE("u32", "f32", "cvt.rn.satfinite.f16x2.f32 %o, %x, %y;",
                                              pair(h(finite(f(x))), h(finite(f(y))))),
                                         CASE("u32", "f32", "cvt.rn.relu.f16x2.f32 %o, %x, %y;",
                                              pair(h(f(x) <= 0 ? 0.0 : f(x)), h(f(y) <= 0 ? 0.0 : f(y)))),
                                         CASE("u32", "f32",
                                              "{ .reg .b16 %h; cvt.rn.satfinite.f16.f32 %h, %x; cvt.u32.u16 %o, %h; }",
                                              h(finite(f(x)))),
                                         CASE("u32", "b32", "add.f16x2 %o, %x, %y;", HALVES(x + y)),
                                         CASE("u32", "b32", "mul.f16x2 %o, %x, %y;", HALVES(x *y)),
                                         CASE("u32", "b32", "max.NaN.f16x2 %o, %x, %y;",
                                              HALVES(x != x || y != y                       ? NAN
                                                     : x < y || (x == y && std::signbit(x)) ? y
                                                                                            : x))));

// Approximations: within two units in the last place.
TEST(Approximations, AreClose) {
  Machine machine;
  constexpr size_t count = 4096;
  Buffer<float> x(machine, count), o(machine, 4 * count);
  for (size_t n = 0; n < count; n++)
    x[n] = float(n) / 32 - 60;
  Launch what;
  what.entry = "k";
  what.grid = {count / 128, 1, 1}, what.block = {128, 1, 1};
  what.params = {param(x.data()), param(o.data())};
  std::string text =
      ".visible .entry k(.param .u64 x, .param .u64 o) {\n.reg .b64 %a<9>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n"
      "ld.param.u64 %a1, [x];\nld.param.u64 %a2, [o];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mad.lo.u32 %r1, %r2, 128, %r1;\nmad.wide.u32 %a3, %r1, 4, %a1;\nmad.wide.u32 %a4, %r1, 16, %a2;\n"
      "ld.global.f32 %f1, [%a3];\nex2.approx.ftz.f32 %f2, %f1;\nabs.f32 %f6, %f1;\nadd.f32 %f6, %f6, 0f3C23D70A;\n"
      "rcp.approx.f32 %f3, %f6;\nrsqrt.approx.f32 %f4, %f6;\nlg2.approx.f32 %f5, %f6;\n"
      "st.global.v4.f32 [%a4], {%f2, %f3, %f4, %f5};\nret;\n}\n";
  ASSERT_EQ(run(machine, module(text), what).error, "");
  for (size_t n = 0; n < count; n++) {
    float a = std::fabs(x[n]) + 0.01f;
    auto close = [](float got, double want) {
      return std::fabs(got - want) <= std::fabs(want) * 2.4e-7 + 1e-7 * (std::fabs(want) < 1e-3);
    };
    EXPECT_TRUE(close(o[4 * n], std::exp2(double(x[n])))) << x[n];
    EXPECT_TRUE(close(o[4 * n + 1], 1 / double(a)));
    EXPECT_TRUE(close(o[4 * n + 2], 1 / std::sqrt(double(a))));
    EXPECT_TRUE(close(o[4 * n + 3], std::log2(double(a))));
  }
}

} // namespace
