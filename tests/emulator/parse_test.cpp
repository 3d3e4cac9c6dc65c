// Bad PTX and bad launches end with a sentence.
#include "harness.h"

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

std::string errorOf(const std::string &body, Launch what = {}) {
  Machine machine;
  if (what.entry.empty())
    what.entry = "k";
  return run(machine, module(body), what).error;
}

struct Bad {
  const char *body, *message;
};
void PrintTo(const Bad &bad, std::ostream *out) { *out << bad.message; }
class BadPtx : public testing::TestWithParam<Bad> {};
TEST_P(BadPtx, IsRefused) {
  EXPECT_NE(errorOf(GetParam().body).find(GetParam().message), std::string::npos) << errorOf(GetParam().body);
}
INSTANTIATE_TEST_SUITE_P(
    All, BadPtx,
    testing::Values(
        Bad{".visible .entry k() { frobnicate.u32 1; }", "line 4: unknown instruction 'frobnicate'"},
        Bad{".visible .entry k() {\n.reg .b32 %r<2>;\nadd.s32 %r0, %r1, %q1; }", "unknown register '%q1'"},
        Bad{".visible .entry k() {\n.reg .b64 %r<2>;\nadd.s32 %r0, %r1, 1; }",
            "line 6: 'add.s32': expected a 32-bit register, got '%r0' (b64)"},
        Bad{".visible .entry k() {\n.reg .b32 %r<2>;\nadd.s32.fast %r0, %r1, 1; }",
            "modifier '.fast' is not supported here"},
        Bad{".visible .entry k() {\n.reg .b32 %r<2>;\nadd.s32 %r0, %r1; }", "expected 3 operands, got 2"},
        Bad{".visible .entry k() {\nbra nowhere; }", "line 5: unknown label 'nowhere'"},
        Bad{".visible .entry k() {\nA:\nA:\nret; }", "label 'A' is defined twice"},
        Bad{".visible .entry k() { ret;", "expected '}', got the end of the file"},
        Bad{".visible .entry k( { ret; }", "expected '.param'"}, Bad{".bogus", "unknown directive '.bogus'"},
        Bad{".visible .entry k() { mov.b32 %tid.x, 1; }", "expected a register as destination"},
        Bad{".visible .entry k() {\n.reg .f32 %f<2>;\nmov.f32 %f0, 0f3F8; }", "expected 8 hexadecimal digits"},
        Bad{".visible .entry k() {\n.reg .f32 %f<2>;\nadd.f32 %f0, %f1, 1; }", "expected a floating-point literal"},
        Bad{".visible .entry k() {\n/* ret; }", "comment without an end"}));

TEST(Parse, NestingIsBounded) {
  EXPECT_NE(errorOf(".visible .entry k() " + std::string(100000, '{')).find("too deeply"), std::string::npos);
}

// No prefix of a module crashes the parser.
TEST(Parse, TruncatedTexts) {
  std::string text = module(
      ".global .align 4 .b32 table[2] = {1, 0f3F800000};\n.visible .entry k(.param .u64 p)\n.maxntid 32, 1, 1\n{\n"
      ".reg .b64 %rd<3>;\n.reg .pred %p;\nld.param.u64 %rd1, [p+0];\n{ .reg .b32 t; L: mov.b32 t, {1, 2};\n@!%p bra L; "
      "}\n"
      "st.global.v2.u32 [%rd1+-8], {1, 2};\nret;\n}\n.section .debug { .b8 1 }\n");
  for (size_t n = 0; n < text.size(); n++) {
    std::string error;
    auto image = loadPtx(text.substr(0, n), error);
    EXPECT_TRUE(image || !error.empty());
  }
}

const char *const withParam = ".visible .entry k(.param .u32 a, .param .u64 b)\n.maxntid 64, 1, 1\n{ ret; }";
Launch launchOf(std::vector<std::vector<uint8_t>> params) {
  Launch what;
  what.entry = "k";
  what.params = std::move(params);
  return what;
}

TEST(Launches, AreChecked) {
  auto good = launchOf({param(1u), param(uint64_t(1))});
  EXPECT_EQ(errorOf(withParam, good), "");
  auto bad = good;
  bad.entry = "other";
  EXPECT_EQ(errorOf(withParam, bad), "no entry 'other' in the module: it has 'k'");
  EXPECT_EQ(errorOf(withParam, launchOf({param(1u)})), "entry 'k' takes 2 parameters, got 1");
  EXPECT_EQ(errorOf(withParam, launchOf({param(1u), param(1u)})), "parameter 1 of entry 'k' has 8 bytes, got 4");
  bad = good;
  bad.block = {65, 1, 1};
  EXPECT_EQ(errorOf(withParam, bad), "entry 'k' allows 64 threads, got 65");
  bad.block = {0, 1, 1};
  EXPECT_NE(errorOf(withParam, bad).find("expected a block of 1 to 1024 threads"), std::string::npos);
  bad = good;
  bad.grid = {1, 65536, 1};
  EXPECT_NE(errorOf(withParam, bad).find("expected a grid"), std::string::npos);
  bad = good;
  bad.sharedBytes = 228 * 1024;
  EXPECT_NE(errorOf(withParam, bad).find("bytes of shared memory, got 233472"), std::string::npos);
  bad = good;
  bad.grid = {3, 1, 1}, bad.cluster = {2, 1, 1};
  EXPECT_NE(errorOf(withParam, bad).find("not a multiple of the cluster"), std::string::npos);
}

} // namespace
