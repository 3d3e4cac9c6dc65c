// Instructions that lanes take part in together, or that touch memory: against what each thread should get.
#include "harness.h"
#include <algorithm>
#include <bit>
#include <functional>

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

// `code` leaves its result in %r2; `expected` is that of a thread out of 64.
struct Case {
  const char *name, *code;
  std::function<uint32_t(uint32_t tid)> expected;
};
void PrintTo(const Case &c, std::ostream *out) { *out << c.code; }

class Lanes : public testing::TestWithParam<Case> {};
TEST_P(Lanes, Compute) {
  auto out =
      outcome(std::string(GetParam().code) + "\nmad.wide.u32 %d8, %tid, 4, %out;\nst.global.u32 [%d8], %r2;\n", 1, 64);
  for (uint32_t t = 0; t < 64; t++)
    EXPECT_EQ(out[t], GetParam().expected(t)) << "thread " << t;
}
std::string nameOf(const testing::TestParamInfo<Case> &info) { return info.param.name; }
#define CASE(NAME, CODE, EXPRESSION)                                                                                   \
  Case {                                                                                                               \
    NAME, CODE, [](uint32_t t) -> uint32_t {                                                                           \
      [[maybe_unused]] uint32_t lane = t % 32, warp = t / 32;                                                          \
      return uint32_t(EXPRESSION);                                                                                     \
    }                                                                                                                  \
  }

INSTANTIATE_TEST_SUITE_P(
    Exchange, Lanes,
    testing::Values(
        CASE("shfl_up", "shfl.sync.up.b32 %r2|%p, %tid, 3, 0, -1;\n@!%p mov.b32 %r2, 99;", lane < 3 ? 99 : t - 3),
        CASE("shfl_down", "shfl.sync.down.b32 %r2, %tid, 30, 31, -1;", lane + 30 < 32 ? t + 30 : t),
        CASE("shfl_bfly", "shfl.sync.bfly.b32 %r2, %tid, 5, 31, -1;", t ^ 5),
        CASE("shfl_idx", "add.u32 %r1, %lane, 7;\nshfl.sync.idx.b32 %r2, %tid, %r1, 31, -1;",
             warp * 32 + (lane + 7) % 32),
        CASE("shfl_segments", "shfl.sync.idx.b32 %r2, %tid, 1, 0x181f, -1;", t / 8 * 8 + 1),
        CASE("vote_any", "setp.eq.u32 %p, %tid, 40;\nvote.sync.any.pred %q, %p, -1;\nselp.u32 %r2, 1, 0, %q;",
             warp == 1),
        CASE("vote_all", "setp.lt.u32 %p, %tid, 32;\nvote.sync.all.pred %q, %p, -1;\nselp.u32 %r2, 1, 0, %q;",
             warp == 0),
        CASE("vote_uni", "setp.ne.u32 %p, %tid, 40;\nvote.sync.uni.pred %q, %p, -1;\nselp.u32 %r2, 1, 0, %q;",
             warp == 0),
        CASE("vote_ballot", "and.b32 %r1, %lane, 2;\nsetp.ne.u32 %p, %r1, 0;\nvote.sync.ballot.b32 %r2, %p, -1;",
             0xcccccccc),
        CASE("match_any", "shr.u32 %r1, %lane, 3;\nmatch.any.sync.b32 %r2, %r1, -1;", 0xffu << lane / 8 * 8),
        CASE("match_all", "shr.u32 %r1, %tid, 5;\nmatch.all.sync.b32 %r2|%p, %r1, -1;", ~0u),
        CASE("redux_add", "redux.sync.add.s32 %r2, %tid, -1;", 32 * 31 / 2 + 32 * 32 * warp),
        CASE("redux_max", "redux.sync.max.u32 %r2, %tid, -1;", 31 + 32 * warp),
        CASE("redux_min", "neg.s32 %r1, %tid;\nredux.sync.min.s32 %r2, %r1, -1;", -(31 + 32 * warp)),
        CASE("redux_or", "redux.sync.or.b32 %r2, %tid, -1;", 31 | warp * 32),
        CASE("elect", "elect.sync %r1|%p, -1;\nselp.u32 %r2, 1, 0, %p;", lane == 0),
        CASE("activemask", "setp.lt.u32 %p, %lane, 5;\nmov.u32 %r2, 7;\n@%p bra A;\nbra B;\nA: activemask.b32 %r2;\nB:",
             lane < 5 ? 31 : 7),
        CASE("movmatrix",
             "shl.b32 %r1, %lane, 16;\nor.b32 %r1, %r1, %lane;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;",
             ((2 * (lane % 4) + 1) * 4 + lane / 8) << 16 | (8 * (lane % 4) + lane / 8))),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Memory, Lanes,
    testing::Values(
        CASE("matrices_move",
             "shl.b32 %r3, %lane, 4;\nadd.u32 %r3, %r3, %base;\nshr.u32 %r4, %tid, 5;\nshl.b32 %r4, %r4, 9;\n"
             "add.u32 %r3, %r3, %r4;\nmov.b32 %r5, %tid;\nadd.u32 %r6, %tid, 100;\nadd.u32 %r7, %tid, 200;\nadd.u32 "
             "%r8, %tid, 300;\n"
             "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], {%r5, %r6, %r7, %r8};\nbar.warp.sync -1;\n"
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r2}, [%r3];",
             t + 300),
        CASE("matrices_turn",
             "mad.lo.u32 %r3, %lane, 16, %base;\nshr.u32 %r4, %tid, 5;\nmad.lo.u32 %r3, %r4, 512, %r3;\n"
             "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r3], {%tid, %lane};\nbar.warp.sync -1;\n"
             "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5, %r2}, [%r3];",
             lane),
        CASE("shared_atomics",
             "mov.u32 %r3, %base;\nst.shared.u32 [%r3], 0;\nst.shared.u32 [%r3+4], 5;\nbar.sync 0;\n"
             "atom.shared.add.u32 %r4, [%r3], 1;\nred.shared.max.u32 [%r3+4], %tid;\nbar.sync 0;\n"
             "ld.shared.u32 %r2, [%r3];\nld.shared.u32 %r5, [%r3+4];\nmad.lo.u32 %r2, %r2, 1000, %r5;",
             64 * 1000 + 63),
        CASE("exchange_and_compare",
             "atom.global.exch.b32 %r3, [%out+1024], 5;\nbar.sync 0;\nadd.u32 %r4, %tid, 5;\n"
             "atom.global.cas.b32 %r3, [%out+1024], %r4, 70;\nbar.sync 0;\nld.global.u32 %r2, [%out+1024];",
             70),
        CASE("increment_wraps",
             "@%first st.global.u32 [%out+1028], 0;\nbar.sync 0;\natom.global.inc.u32 %r3, [%out+1028], 9;\n"
             "bar.sync 0;\nld.global.u32 %r2, [%out+1028];",
             64 % 10),
        CASE("float_atomics",
             "@%first st.global.u32 [%out+1032], 0;\nbar.sync 0;\nred.relaxed.gpu.global.add.f32 [%out+1032], "
             "0f3F000000;\n"
             "bar.sync 0;\nld.global.u32 %r2, [%out+1032];",
             std::bit_cast<uint32_t>(32.0f)),
        CASE("pairs_of_halves",
             "@%first st.global.u32 [%out+1036], 0;\nbar.sync 0;\nmov.b32 %r3, 0x3c004000;\n"
             "red.global.add.noftz.f16x2 [%out+1036], %r3;\nbar.sync 0;\nld.global.u32 %r2, [%out+1036];",
             0x54005800),
        CASE("copies_of_lanes",
             "mad.wide.u32 %d1, %tid, 16, %out;\nst.global.v4.u32 [%d1+1024], {%tid, 2, 3, 4};\n"
             "mad.lo.u32 %r3, %tid, 16, %base;\nst.shared.u32 [%r3+4], 9;\n"
             "cp.async.ca.shared.global [%r3], [%d1+1024], 16, 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
             "ld.shared.v2.u32 {%r2, %r4}, [%r3];\nmad.lo.u32 %r2, %r4, 1000, %r2;",
             t),
        CASE("generic_addresses",
             "cvt.u64.u32 %d1, %base;\ncvta.shared.u64 %d2, %d1;\nmad.wide.u32 %d2, %tid, 4, %d2;\n"
             "st.u32 [%d2], %tid;\nbar.sync 0;\nxor.b32 %r3, %tid, 63;\nmad.lo.u32 %r3, %r3, 4, %base;\nld.shared.u32 "
             "%r2, [%r3];",
             t ^ 63),
        CASE("what_changes_nothing",
             "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\nsetmaxnreg.inc.sync.aligned.u32 232;\n"
             "setmaxnreg.dec.sync.aligned.u32 40;\nprefetch.global.L2 [%out];\nnanosleep.u32 20;\nmov.u32 %r2, %tid;",
             t)),
    nameOf);

// mma.sync of matrices of ones, added to a half.
TEST(Products, OfOnes) {
  struct {
    const char *type, *a, *b;
    uint32_t ones;
    float sum;
  } cases[] = {{"m16n8k8.row.col.f32.bf16.bf16.f32", "{%r1, %r1}", "{%r1}", 0x3f803f80, 8.5f},
               {"m16n8k16.row.col.f32.bf16.bf16.f32", "{%r1, %r1, %r1, %r1}", "{%r1, %r1}", 0x3f803f80, 16.5f},
               {"m16n8k16.row.col.f32.f16.f16.f32", "{%r1, %r1, %r1, %r1}", "{%r1, %r1}", 0x3c003c00, 16.5f}};
  for (auto &c : cases) {
    auto out = outcome("mov.b32 %r1, " + std::to_string(c.ones) + ";\nmov.b32 %r2, 0x3f000000;\nmma.sync.aligned." +
                           c.type + " {%r3, %r4, %r5, %r6}, " + c.a + ", " + c.b +
                           ", {%r2, %r2, %r2, %r2};\nmad.wide.u32 %d1, %tid, 16, %out;\nst.global.v4.b32 [%d1], {%r3, "
                           "%r4, %r5, %r6};\n",
                       1, 32);
    for (unsigned n = 0; n < 128; n++)
      EXPECT_EQ(std::bit_cast<float>(out[n]), c.sum) << c.type;
  }
}

// One block of a pair loads a tile into both, and each adds it to what lies in global memory.
TEST(Bulk, MulticastAndReduction) {
  std::string body =
      "add.u32 %r9, %base, 2048;\n@%first mbarrier.init.shared::cta.b64 [%r9], "
      "1;\nfence.mbarrier_init.release.cluster;\n"
      "mad.wide.u32 %d1, %tid, 4, %out;\nsetp.eq.u32 %p, %id, 0;\nadd.u32 %r1, %tid, 1;\n@%p st.global.u32 [%d1+4096], "
      "%r1;\n"
      "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 256;\nfence.proxy.async;\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmov.u16 %h, 3;\nand.pred %q, %p, %first;\n"
      "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%base], [%out+4096], "
      "256, [%r9], %h;\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %done, [%r9], 0;\n@!%done bra W;\n"
      "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%base], 256;\n"
      "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group "
      "0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  auto out = outcome(".reg .b16 %h;\n" + body, 2, 64, {}, {2, 1, 1});
  for (uint32_t t = 0; t < 64; t++)
    EXPECT_EQ(out[t], 2 * (t + 1));
}

} // namespace
