// Each fault the emulator finds, planted in a kernel, and its repaired twin. Lines marked BAD are only in the faulty
// kernel, lines marked FIX only in its twin; the rest is in both. Every twin runs clean under every schedule, and every
// fault is found under every schedule, whatever the timing happens to be.
#include "harness.h"
#include <sstream>

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

struct Fault {
  const char *name;
  unsigned threads;
  const char *body, *message;
};

void PrintTo(const Fault &fault, std::ostream *out) { *out << fault.name; }

// In: 4096 bytes of floats, zero. s: 16 KB of shared memory. %tid: the thread, %at: its word in shared memory.
std::string kernel(const Fault &fault, bool faulty) {
  std::string text =
      ".extern .shared .align 1024 .b8 s[];\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
      ".reg .b64 %in, %out, %d<9>;\n.reg .b32 %tid, %warp, %base, %at, %bar, %r<32>, %s<9>;\n.reg .f32 %f<64>;\n"
      ".reg .pred %p, %first, %q, %done;\n"
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %tid, %tid.x;\nshr.u32 %warp, %tid, 5;\n"
      "mov.u32 %base, s;\nmad.lo.u32 %at, %tid, 4, %base;\nadd.u32 %bar, %base, 16000;\n"
      "setp.eq.u32 %first, %tid, 0;\nsetp.eq.u32 %p, %warp, 0;\n";
  std::istringstream lines(fault.body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(faulty ? "FIX " : "BAD "))
      continue;
    text += (line.starts_with("FIX ") || line.starts_with("BAD ") ? line.substr(4) : line) + "\n";
  }
  return module(text + "ret;\n}\n");
}

std::string errorOf(const Fault &fault, bool faulty, Schedule schedule, uint64_t seed) {
  Machine machine;
  Buffer<float> in(machine, 1024), out(machine, 1024);
  Launch what;
  what.entry = "k";
  what.block = {fault.threads, 1, 1};
  what.sharedBytes = 16384;
  what.params = {param(in.data()), param(out.data())};
  Options options;
  options.schedule = schedule;
  options.seed = seed;
  options.detect = true;
  return run(machine, kernel(fault, faulty), what, options).error;
}

std::string nameOf(const testing::TestParamInfo<Fault> &info) { return info.param.name; }

class Faults : public testing::TestWithParam<Fault> {};
TEST_P(Faults, AreFoundAndTheTwinIsClean) {
  const Fault &fault = GetParam();
  for (Schedule schedule : {Schedule::Earliest, Schedule::Latest, Schedule::Random})
    for (uint64_t seed = 0; seed < (schedule == Schedule::Random ? 4u : 1u); seed++) {
      std::string found = errorOf(fault, true, schedule, seed);
      EXPECT_NE(found.find(fault.message), std::string::npos) << "schedule " << int(schedule) << ": " << found;
      EXPECT_NE(found.find("kernel 'k'"), std::string::npos) << found;
      EXPECT_EQ(errorOf(fault, false, schedule, seed), "") << "schedule " << int(schedule);
    }
}

#define WAIT "W: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;\n@%done bra D;\nbra W;\nD:\n"
#define INIT(COUNT)                                                                                                    \
  "@%first mbarrier.init.shared::cta.b64 [%bar], " COUNT ";\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
#define LOAD                                                                                                           \
  "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;\n"                                               \
  "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%base], [%in], 1024, [%bar];\n"
#define STORE                                                                                                          \
  "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%base], 256;\n@%first cp.async.bulk.commit_group;\n"
#define FILL_TILES /* 4 KB of zeros for matrix products, 128 threads */                                                \
  "mad.lo.u32 %r9, %tid, 32, %base;\nst.shared.v4.b32 [%r9], {0, 0, 0, 0};\nst.shared.v4.b32 [%r9+16], {0, 0, 0, "     \
  "0};\n"                                                                                                              \
  "mov.b32 %r1, 0;\nmov.b32 %r2, 0;\nmov.b32 %r3, 0;\nmov.b32 %r4, 0;\n"                                               \
  "fence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %r10, %base, 4;\nor.b32 %r10, %r10, 65536;\nmov.b64 %d1, "     \
  "{%r10, 0x40000040};\n"
#define PRODUCT                                                                                                        \
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, %d1, 0, 1, 1, 0;\n" \
  "wgmma.commit_group.sync.aligned;\n"

INSTANTIATE_TEST_SUITE_P(
    Synchronisation, Faults,
    testing::Values(
        Fault{
            "deadlock_on_mbarrier", 64,
            INIT("2") "@%first mbarrier.arrive.shared::cta.b64 _, [%bar];\nFIX @%first "
                      "mbarrier.arrive.shared::cta.b64 _, [%bar];\n" WAIT,
            "waits on mbarrier 16000 bytes into shared memory, phase 0: 1 of 2 arrivals and 0 bytes missing (arrived: "
            "warps 0)"},
        Fault{"deadlock_in_a_later_phase", 64,
              INIT("2") "and.b32 %r1, %tid, 31;\nsetp.eq.u32 %q, %r1, 0;\n@%q mbarrier.arrive.shared::cta.b64 _, "
                        "[%bar];\n" WAIT "BAD @!%p ret;\n@%q mbarrier.arrive.shared::cta.b64 _, [%bar];\nX: "
                        "mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 1;\n@!%done bra X;\n",
              "phase 1: 1 of 2 arrivals and 0 bytes missing (arrived: warps 0; in earlier phases also: warps 1 (which "
              "has "
              "exited))"},
        Fault{"deadlock_on_bytes", 64,
              INIT("1") "BAD @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;\nFIX @%first "
                        "mbarrier.arrive.shared::cta.b64 _, [%bar];\n" WAIT,
              "0 of 1 arrivals and 16 bytes missing"},
        Fault{"deadlock_on_barrier", 64, "BAD @%p bar.sync 1, 64;\nFIX bar.sync 1, 64;\n",
              "waits on barrier 1, where 32 of 64 threads arrived (arrived: warps 0)"},
        Fault{"barrier_counts_differ", 128,
              "setp.lt.u32 %q, %warp, 2;\n@%q bra A;\nBAD bar.sync 1, 96;\nFIX bar.sync 1, 128;\nbra B;\nA:\nbar.sync "
              "1, 128;\nB:\n",
              "barrier 1 is expected to see"},
        Fault{"barrier_arrives_twice", 64,
              "@!%p bra A;\nbar.arrive 1, 64;\nBAD bar.arrive 1, 64;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nbar.sync "
              "1, 64;\nB:\n",
              "the warp arrives at barrier 1 twice in one phase"},
        Fault{"barrier_count_is_no_multiple", 64, "BAD bar.sync 1, 48;\nFIX bar.sync 1, 64;\n", "not a multiple of 32"},
        Fault{"too_many_arrivals", 64,
              INIT("1") "BAD @%first mbarrier.arrive.shared::cta.b64 _, [%bar], 2;\nFIX @%first "
                        "mbarrier.arrive.shared::cta.b64 _, [%bar], 1;\n",
              "more arrivals than the mbarrier expects"},
        Fault{"byte_count_overflows", 64,
              INIT("1") "BAD @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1048576;\n",
              "transaction count of the mbarrier overflows"},
        Fault{"no_mbarrier", 32,
              "FIX @%first mbarrier.init.shared::cta.b64 [%bar], 1;\n@%first mbarrier.arrive.shared::cta.b64 _, "
              "[%bar];\n",
              "no mbarrier was initialised"},
        Fault{"mbarrier_overwritten", 32,
              "@%first mbarrier.init.shared::cta.b64 [%bar], 1;\nBAD st.shared.b32 [%bar], 0;\n",
              "belongs to an mbarrier"},
        Fault{"diverged", 32,
              "and.b32 %r1, %tid, 1;\nsetp.eq.u32 %q, %r1, 0;\n@%q bra A;\nBAD bar.warp.sync -1;\nFIX mov.b32 %r2, "
              "1;\nbra B;\nA:\nBAD shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;\nB:\n",
              "wait for each other"}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Memory, Faults,
    testing::Values(
        Fault{"race_write_read", 64,
              "st.shared.b32 [%at], 0;\nbar.sync 0;\nst.shared.b32 [%at], %tid;\nFIX bar.sync 0;\nxor.b32 %r1, %tid, "
              "32;\nmad.lo.u32 %r1, %r1, 4, %base;\nld.shared.b32 %r2, [%r1];\n",
              "race on shared byte"},
        Fault{"race_write_write", 64,
              "and.b32 %r1, %tid, 31;\nmad.lo.u32 %r1, %r1, 4, %base;\n@%p st.shared.b32 [%r1], 1;\nFIX bar.sync "
              "0;\n@!%p st.shared.b32 [%r1], 2;\n",
              "race on shared byte"},
        Fault{"race_read_write", 64,
              "@%p st.shared.b32 [%at], 1;\nbar.sync 0;\n@%p ld.shared.b32 %r1, [%at];\nFIX bar.sync 0;\nsub.u32 %r2, "
              "%at, 128;\n@!%p st.shared.b32 [%r2], 2;\n",
              "race on shared byte"},
        Fault{"no_proxy_fence", 64,
              "st.shared.b32 [%at], %tid;\nFIX fence.proxy.async.shared::cta;\nbar.sync 0;\n" STORE
              "@%first cp.async.bulk.wait_group 0;\n",
              "without a fence.proxy.async between"},
        Fault{"load_not_awaited", 64,
              INIT("1") LOAD "BAD @%p ld.shared.b32 %r1, [%at];\n" WAIT "@%p ld.shared.b32 %r1, [%at];\n",
              "is not ordered after the write by a bulk load"},
        Fault{"load_overwrites_what_is_read", 64,
              "st.shared.b32 [%at], 0;\nfence.proxy.async;\n" INIT(
                  "1") "@!%p ld.shared.b32 %r1, [%at];\nFIX bar.sync 0;\n" LOAD WAIT,
              "race on shared byte"},
        Fault{"tile_reused_under_store", 64,
              "st.shared.b32 [%at], %tid;\nfence.proxy.async;\nbar.sync 0;\n" STORE
              "FIX @%first cp.async.bulk.wait_group.read 0;\nbar.sync 0;\nst.shared.b32 [%at], 1;\n@%first "
              "cp.async.bulk.wait_group 0;\n",
              "is not ordered after the read by a bulk store of warp 0"},
        Fault{"exit_under_store", 64,
              "st.shared.b32 [%at], %tid;\nfence.proxy.async;\nbar.sync 0;\n" STORE
              "FIX @%first cp.async.bulk.wait_group.read 0;\n",
              "exits while its bulk stores may still read"},
        Fault{"exit_under_load", 64, INIT("1") LOAD "BAD bra END;\n" WAIT "END:\n",
              "block 0, warp 0: the block exits though no one waited for this bulk load"},
        Fault{"unset_shared_memory", 32, "FIX st.shared.b32 [%at], 1;\nld.shared.b32 %r1, [%at];\n",
              "is read before anything was written to it"},
        Fault{"unset_register", 32, "FIX mov.b32 %r7, 1;\nadd.u32 %r1, %r7, 1;\n",
              "register '%r7' is read before it is written"},
        Fault{"unset_on_one_path", 32,
              "@%first bra A;\nmov.b32 %r7, 2;\nA:\nFIX mov.b32 %r7, 1;\nadd.u32 %r1, %r7, 1;\n",
              "register '%r7' is read before it is written"},
        Fault{
            "past_the_end", 32,
            "mad.wide.u32 %d1, %tid, 4, %in;\nBAD ld.global.b32 %r1, [%d1+3976];\nFIX ld.global.b32 %r1, [%d1+3968];\n",
            "global read of 4 bytes"},
        Fault{"misaligned", 32,
              "BAD ld.global.v2.b32 {%r1, %r2}, [%in+4];\nFIX ld.global.v2.b32 {%r1, %r2}, [%in+8];\n",
              "is not aligned to 8 bytes"},
        Fault{"outside_shared_memory", 32, "BAD st.shared.b32 [%base+16384], 1;\nFIX st.shared.b32 [%base+16380], 1;\n",
              "outside the block's"},
        Fault{"null_shared_address", 32, "BAD st.shared.b32 [0], 1;\nst.shared.b32 [%at], 1;\n",
              "outside the block's"}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Products, Faults,
    testing::Values(
        Fault{"sum_read_early", 128,
              FILL_TILES
              "wgmma.fence.sync.aligned;\n" PRODUCT
              "FIX wgmma.wait_group.sync.aligned 0;\nadd.f32 %f9, %f1, %f2;\nwgmma.wait_group.sync.aligned 0;\n",
              "register '%f1' is the sum of a wgmma that no wgmma.wait_group has awaited"},
        Fault{"operand_rewritten", 128,
              FILL_TILES "wgmma.fence.sync.aligned;\n" PRODUCT
                         "FIX wgmma.wait_group.sync.aligned 0;\nmov.b32 %r3, 1;\nwgmma.wait_group.sync.aligned 0;\n",
              "register '%r3' is written while a wgmma"},
        Fault{"no_proxy_fence_before_product", 128,
              FILL_TILES "st.shared.b32 [%r9], 1;\nFIX fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                         "wgmma.fence.sync.aligned;\n" PRODUCT "wgmma.wait_group.sync.aligned 0;\n",
              "without a fence.proxy.async between"},
        Fault{"no_matrix_fence", 128,
              FILL_TILES "FIX wgmma.fence.sync.aligned;\n" PRODUCT "wgmma.wait_group.sync.aligned 0;\n",
              "was written since the last wgmma.fence"},
        Fault{"tile_reused_under_product", 128,
              FILL_TILES "wgmma.fence.sync.aligned;\n" PRODUCT
                         "FIX wgmma.wait_group.sync.aligned 0;\nFIX bar.sync 0;\nst.shared.b32 [%r9], "
                         "1;\nwgmma.wait_group.sync.aligned 0;\n",
              "is not ordered after the read by a wgmma"},
        Fault{"tile_reused_after_one_wait", 128,
              FILL_TILES "wgmma.fence.sync.aligned;\n" PRODUCT
                         "wgmma.wait_group.sync.aligned 0;\nFIX bar.sync 0;\nst.shared.b32 [%at], 1;\n",
              "race on shared byte"}),
    nameOf);

// What a compiler says of its PTX's origin.
TEST(Lines, NameWhereTheyComeFrom) {
  Fault fault{
      "", 64,
      "st.shared.b32 [%at], 0;\n\t// forward.mlir:12\n// a remark: 3\nbar.sync 0;\n@%p st.shared.b32 [%base], 1;\n"
      "// forward.mlir:34\n@!%p ld.shared.b32 %r1, [%base];\n",
      ""};
  std::string error = errorOf(fault, true, Schedule::Earliest, 0);
  EXPECT_NE(error.find("line 25 (forward.mlir:34), block 0, warp 1: race"), std::string::npos) << error;
  EXPECT_NE(error.find("the write by warp 0 at line 23 (forward.mlir:12)"), std::string::npos) << error;
}

} // namespace
