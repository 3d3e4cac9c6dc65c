// Divergence, waits between warps and blocks, and that results do not depend on host threads.
#include "harness.h"
#include <algorithm>

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

// A loop of as many rounds as the lane's number: lanes leave one by one and meet again.
TEST(Divergence, LanesMeetAgain) {
  auto out =
      outcome("mov.u32 %r1, 0;\nLOOP: setp.ge.u32 %p, %r1, %lane;\n@%p bra DONE;\nadd.u32 %r1, %r1, 1;\nbra LOOP;\n"
              "DONE: activemask.b32 %r2;\nmad.wide.u32 %d1, %tid, 8, %out;\nst.global.v2.u32 [%d1], {%r1, %r2};\n",
              1, 64);
  for (unsigned t = 0; t < 64; t++) {
    EXPECT_EQ(out[2 * t], t % 32);
    EXPECT_EQ(out[2 * t + 1], ~0u);
  }
}

TEST(Divergence, TablesOfTargets) {
  auto out = outcome("and.b32 %r1, %lane, 3;\nT: .branchtargets A, B, C, B;\nbrx.idx %r1, T;\nA: mov.u32 %r2, 10;\nbra "
                     "E;\nB: mov.u32 %r2, 20;\nbra E;\n"
                     "C: mov.u32 %r2, 30;\nE: mad.wide.u32 %d1, %tid, 4, %out;\nst.global.u32 [%d1], %r2;\n",
                     1, 32);
  const uint32_t expected[] = {10, 20, 30, 20};
  for (unsigned t = 0; t < 32; t++)
    EXPECT_EQ(out[t], expected[t % 4]);
}

// Half of the lanes spin for what the other half of the same warp writes.
TEST(Divergence, SpinningLanesLetOthersRun) {
  auto out = outcome(
      "st.shared.u32 [%base], 0;\nbar.warp.sync -1;\nsetp.ge.u32 %p, %lane, 16;\n@%p bra WRITE;\nSPIN: "
      "ld.volatile.shared.u32 %r1, [%base];\n"
      "setp.eq.u32 %q, %r1, 0;\n@%q bra SPIN;\nbra END;\nWRITE: mov.u32 %r1, 7;\nst.volatile.shared.u32 [%base], %r1;\n"
      "END: mad.wide.u32 %d1, %tid, 4, %out;\nst.global.u32 [%d1], %r1;\n",
      1, 32);
  EXPECT_EQ(std::count(out.begin(), out.begin() + 32, 7u), 32);
}

// Blocks that wait for each other by flags in global memory.
TEST(Blocks, WaitForEachOther) {
  std::string body = "mad.wide.u32 %d1, %id, 4, %out;\nsetp.eq.u32 %p, %id, 7;\n@%p bra LAST;\nSPIN: "
                     "ld.acquire.gpu.global.u32 %r1, [%d1+4];\n"
                     "setp.eq.u32 %q, %r1, 0;\n@%q bra SPIN;\nLAST: @%first st.release.gpu.global.u32 [%d1], 1;\n";
  for (unsigned threads : {1u, 3u}) {
    Options options;
    options.threads = threads;
    auto out = outcome(body, 8, 32, options);
    EXPECT_EQ(std::count(out.begin(), out.begin() + 8, 1u), 8);
  }
}

// With fewer blocks under way than there are, one does not begin before another has ended.
TEST(Blocks, AreResidentAsTold) {
  std::string body = "@!%first bra END;\natom.global.add.u32 %r1, [%out], 1;\nmad.wide.u32 %d1, %id, 4, %out;\n"
                     "st.global.u32 [%d1+4], %r1;\natom.global.add.u32 %r1, [%out], 1;\nEND:\n";
  Options options;
  auto together = outcome(body, 8, 32, options);
  options.resident = 1;
  auto alone = outcome(body, 8, 32, options);
  for (uint32_t n = 0; n < 8; n++)
    EXPECT_EQ(alone[n + 1], 2 * n);
  EXPECT_NE(together, alone);
}

// Tickets are drawn in an order that the seed gives and the number of host threads does not change.
TEST(Blocks, SameSeedSameRun) {
  std::string body = "@!%first bra END;\natom.global.add.u32 %r1, [%out], 1;\natom.global.add.u32 %r2, [%out], "
                     "1;\nmad.wide.u32 %d1, %id, 8, %out;\nst.global.v2.u32 [%d1+8], {%r1, %r2};\nEND:\n";
  auto with = [&](uint64_t seed, unsigned threads) {
    Options options;
    options.schedule = Schedule::Random;
    options.seed = seed;
    options.threads = threads;
    return outcome(body, 200, 64, options);
  };
  auto once = with(3, 1);
  EXPECT_EQ(once[0], 400u);
  EXPECT_EQ(once, with(3, 2));
  EXPECT_EQ(once, with(3, 5));
  EXPECT_NE(once, with(4, 1));
}

// The second block of a pair writes into the first one's shared memory and arrives at its mbarrier.
TEST(Clusters, ShareMemory) {
  std::string body = "mov.u32 %r1, %cluster_ctarank;\nadd.u32 %r9, %base, 64;\n@%first mbarrier.init.shared::cta.b64 "
                     "[%r9], 1;\nst.shared.u32 [%base], 1;\n"
                     "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nsetp.eq.u32 %p, %r1, 0;\n@%p bra "
                     "WAIT;\nmapa.shared::cluster.u32 %r2, %base, 0;\n"
                     "mapa.shared::cluster.u32 %r3, %r9, 0;\n@%first st.shared::cluster.u32 [%r2], 42;\n@%first "
                     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\nbra END;\n"
                     "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%r9], 0;\n@!%done bra "
                     "WAIT;\nld.shared.u32 %r4, [%base];\nmad.wide.u32 %d1, %id, 4, %out;\nst.global.u32 [%d1], %r4;\n"
                     "END: barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  auto out = outcome(body, 4, 32, {}, {2, 1, 1});
  EXPECT_EQ(out[0], 42u);
  EXPECT_EQ(out[2], 42u);
}

TEST(Schedules, AnEndlessLoopIsGivenUp) {
  Machine machine;
  Launch what;
  what.entry = "k";
  what.params = {param(uint64_t(0))};
  Options options;
  options.maxInstructions = 10000;
  EXPECT_NE(run(machine, kernelOf("L: bra L;\n"), what, options).error.find("gave up after"), std::string::npos);
}

} // namespace
