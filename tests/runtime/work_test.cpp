// Calls whose work is cut: the planner's launch, the workspace, and what the forward is given of it.
#include "fixture.h"
#include "format/work.h"

namespace gdn {
namespace {

template <typename T> T valueOf(const std::string &param) {
  T value{};
  EXPECT_EQ(param.size(), sizeof value);
  std::memcpy(&value, param.data(), std::min(param.size(), sizeof value));
  return value;
}

Kernel planner() {
  Kernel kernel;
  kernel.key.operation = "plan", kernel.key.arch = "sm_90a", kernel.key.keyDim = kernel.key.valueDim = 1;
  kernel.entry = "gdn_plan";
  for (const char *name : {"cu_seqlens", "cu_wide", "sequences", "length", "tokens", "heads"})
    kernel.params.push_back(sample::batch(name));
  kernel.params.insert(kernel.params.end(),
                       {sample::pointer("g_in"), sample::stride("g_in", 0), sample::stride("g_in", 1),
                        sample::element("g_in"), sample::pointer("A_log"), sample::element("A_log"),
                        sample::pointer("dt_bias"), sample::element("dt_bias"),
                        KernelParam{KernelParam::Kind::Scalar, "options"}});
  for (const char *name : {"work", "blocks", "key_dim", "value_dim", "columns", "plan_flags"})
    kernel.params.push_back(sample::batch(name));
  kernel.threads = 512;
  kernel.cubin = sample::cubin(90, "code of the planner");
  return kernel;
}

// A forward kernel that follows a plan: what it is given of one are its last parameters.
Kernel planned(uint32_t split) {
  Kernel kernel = sample::forward(sample::key(split));
  kernel.params.insert(kernel.params.end(),
                       {sample::batch("work"), sample::pointer("flags"), sample::stride("flags", 0),
                        sample::pointer("slots"), sample::pointer("m_hi"), sample::pointer("m_lo"),
                        sample::map("m_hi", 128, ElementType::BF16), sample::map("m_lo", 128, ElementType::BF16)});
  return kernel;
}
constexpr size_t ofPlan = 8;

class Work : public Runtime {
protected:
  void SetUp() override {
    Runtime::SetUp();
    openKernels({planned(1), planned(2), planner()});
    // One sequence of 8 v-heads: 512 chunks, for 132 SMs.
    args.batch = 1, args.tokens = 32768;
    args.workspace = address(0xa0000000);
    args.workspace_size = size();
  }
  void openKernels(const std::vector<Kernel> &kernels) {
    fakeCuda().paramSizes.clear();
    for (const Kernel &kernel : kernels)
      for (const KernelParam &param : kernel.params)
        fakeCuda().paramSizes[kernel.entry].push_back(param.size());
    open(*writeBundle(kernels, ""));
  }
  size_t size() {
    size_t bytes = 0;
    EXPECT_EQ(gdn_forward_workspace_size(bundle, &args, &bytes), GDN_OK) << gdn_last_error_message();
    return bytes;
  }
  // Of the forward, once it is launched; the planner's launch, if there is one, goes before it.
  std::vector<std::string> planParams() {
    forget();
    expectLaunch(args);
    const FakeLaunch &launch = fakeCuda().launches.back();
    return {launch.params.end() - ofPlan, launch.params.end()};
  }
  void expectUncut() {
    std::vector<std::string> params = planParams();
    EXPECT_EQ(valueOf<uint64_t>(params[0]), 0u);
    EXPECT_EQ(fakeCuda().launches.size(), 1u);
    size_t maps = args.tokens ? 4 : 1; // q, k, v and o; what is not read repeats the last
    EXPECT_EQ(fakeCuda().maps.size(), maps);
    for (size_t i : {6, 7})
      EXPECT_EQ(static_cast<size_t>(params[i].front()), maps - 1);
  }
  void pack(int64_t tokens, int64_t sequences) {
    args.tokens = tokens, args.num_sequences = sequences;
    args.cu_seqlens = address(0x90000000), args.cu_seqlens_dtype = GDN_INT32;
    args.workspace_size = size();
  }
};

TEST_F(Work, IsPlannedBeforeItIsRun) {
  args.split = 1;
  args.workspace_size = size();
  std::vector<std::string> params = planParams();
  ASSERT_EQ(fakeCuda().launches.size(), 2u);
  const FakeLaunch &plan = fakeCuda().launches[0], &forward = fakeCuda().launches[1];
  EXPECT_FALSE(plan.overlaps);
  EXPECT_TRUE(forward.overlaps); // the plan, for which it waits
  EXPECT_EQ(plan.entry, "gdn_plan");
  EXPECT_EQ(plan.grid, (std::array{1u, 1u, 1u})); // no gate is read
  EXPECT_EQ(plan.block, (std::array{512u, 1u, 1u}));
  EXPECT_EQ(plan.stream, address(0x5));
  EXPECT_EQ(forward.entry, "forward_128_128_split1");
  EXPECT_EQ(forward.grid[0], 132u);
  const int expected[] = {1, 32768, 32768, 8};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(valueOf<int>(plan.params[2 + i]), expected[i]); // sequences, length, tokens, heads
  EXPECT_EQ(valueOf<uint64_t>(plan.params[6]), 0x50000000u);
  EXPECT_EQ(valueOf<int64_t>(plan.params[7]), 8);
  EXPECT_EQ(valueOf<uint64_t>(plan.params[15]), 0xa0000000u);
  const int last[] = {132, 128, 128, 128, 0};
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(valueOf<int>(plan.params[16 + i]), last[i]); // blocks, K, V, columns, flags

  const work::Layout at = work::layout(work::Shape{1, 32768, 8, 128, 128, 128, 132, 0}, 2);
  EXPECT_EQ(args.workspace_size, static_cast<size_t>(at.bytes));
  const std::pair<size_t, long long> offsets[] = {{0, 0}, {1, at.flags}, {3, at.slotValues}, {4, at.high}, {5, at.low}};
  for (auto [param, offset] : offsets)
    EXPECT_EQ(valueOf<uint64_t>(params[param]), 0xa0000000u + offset);
  EXPECT_EQ(valueOf<int64_t>(params[2]), work::flagWords);
  const FakeMap &high = fakeCuda().maps.at(4);
  EXPECT_EQ(high.address, 0xa0000000u + at.high - 64 * 256);
  EXPECT_EQ(high.dims, (std::vector<uint64_t>{128, 1, 64, static_cast<uint64_t>(at.matrices) * 128 + 64}));
  EXPECT_EQ(high.strides, (std::vector<uint64_t>{256, 256, 256}));
}

TEST_F(Work, FlagsReachThePlanner) {
  struct Expected {
    uint32_t given, taken;
    unsigned blocks;
  } cases[] = {{GDN_KEYS_NORMALISED, work::Warm, 64},
               {GDN_KEYS_NORMALISED | GDN_CUT_EXACT, 0, 1},
               {GDN_KEYS_NORMALISED | GDN_CUT_FAST, work::Warm | work::Fast, 64},
               {GDN_CUT_INVARIANT, work::Invariant, 1},
               {GDN_KEYS_NORMALISED | GDN_CUT_INVARIANT, work::Warm | work::Invariant, 64}};
  for (const Expected &each : cases) {
    args.flags = each.given;
    args.workspace_size = size();
    planParams();
    ASSERT_EQ(fakeCuda().launches.size(), 2u);
    EXPECT_EQ(valueOf<uint32_t>(fakeCuda().launches[0].params[20]), each.taken);
    EXPECT_EQ(fakeCuda().launches[0].grid[0], each.blocks);
  }
}

TEST_F(Work, GatesAreReadInSmallerUnitsWhereBlocksAreLeft) {
  args.flags = GDN_KEYS_NORMALISED, args.split = 1;
  struct Expected {
    int64_t tokens, heads;
    unsigned blocks; // for 8 heads and 8, 16 or 32 chunks
  } cases[] = {{1, 8, 1},        {2048, 8, 1},    {2049, 8, 5},     {513, 16, 4},
               {32768, 16, 128}, {32768, 24, 96}, {32768, 64, 128}, {1 << 20, 64, 132}};
  for (const Expected &each : cases) {
    args.heads_v = each.heads;
    args.o = gdn_contiguous(args.o.data, GDN_BF16, each.tokens, each.heads, 128);
    pack(each.tokens, 1);
    planParams();
    ASSERT_EQ(fakeCuda().launches.size(), 2u);
    EXPECT_EQ(fakeCuda().launches[0].grid[0], each.blocks) << each.tokens << " tokens, " << each.heads << " heads";
  }
}

TEST_F(Work, IsNotPlannedWhereNothingWouldBeCut) {
  args.batch = 300, args.tokens = 128; // many short sequences
  for (gdn_tensor *tensor : {&args.q, &args.k, &args.v, &args.o, &args.g, &args.beta})
    tensor->batch_stride = 128 * tensor->token_stride;
  EXPECT_EQ(size(), 0u);
  args.workspace = nullptr, args.workspace_size = 0;
  expectUncut();
  EXPECT_EQ(fakeCuda().launches[0].grid[0], 132u);
}

TEST_F(Work, IsNotPlannedWhereThatIsNotWanted) {
  args.flags = GDN_CUT_OFF;
  EXPECT_EQ(size(), 0u);
  args.workspace = nullptr, args.workspace_size = 0;
  expectUncut();
  EXPECT_EQ(fakeCuda().launches[0].entry, "forward_128_128_split2"); // as where kernels take no plan
  EXPECT_EQ(fakeCuda().launches[0].grid[0], 16u);
}

TEST_F(Work, IsLeftToAnUncutSplitInOneCase) {
  args.batch = 5, args.tokens = 1024; // 40 tiles, for 132 SMs
  for (gdn_tensor *tensor : {&args.q, &args.k, &args.v, &args.o, &args.g, &args.beta})
    tensor->batch_stride = 1024 * tensor->token_stride;
  args.workspace_size = size();
  expectUncut();
  EXPECT_EQ(fakeCuda().launches[0].entry, "forward_128_128_split2");
  args.split = 2; // asked for, it is cut as any other
  EXPECT_NE(valueOf<uint64_t>(planParams()[0]), 0u);
  args.split = 0, args.flags = GDN_CUT_INVARIANT, args.workspace_size = size();
  planParams();
  EXPECT_EQ(fakeCuda().launches.back().entry, "forward_128_128_split1");
}

TEST_F(Work, OfPackedSequencesIsSeenOnTheDeviceAlone) {
  pack(30000, 2);
  planParams();
  EXPECT_EQ(fakeCuda().launches.size(), 2u);
  pack(70000, 70000);
  EXPECT_EQ(args.workspace_size, 0u);
  expectUncut();
}

// Where they are equal, tiles of half the columns fill the blocks: the planner says which kernel has work.
TEST_F(Work, OfPackedSequencesMayBeLeftToHalves) {
  pack(32768, 8);
  planParams();
  const std::vector<FakeLaunch> &launches = fakeCuda().launches;
  ASSERT_EQ(launches.size(), 3u);
  const char *entries[] = {"gdn_plan", "forward_128_128_split2", "forward_128_128_split1"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(launches[i].entry, entries[i]);
    EXPECT_EQ(launches[i].overlaps, i > 0);
  }
  EXPECT_EQ(valueOf<uint32_t>(launches[0].params[20]), work::Halves);
  EXPECT_EQ(valueOf<int>(launches[0].params[19]), 128); // columns
  for (const FakeLaunch &forward : {launches[1], launches[2]}) {
    EXPECT_EQ(forward.grid[0], 132u);
    EXPECT_EQ(valueOf<uint64_t>(forward.params[forward.params.size() - ofPlan]), 0xa0000000u);
  }
  args.split = 1;
  planParams();
  EXPECT_EQ(launches.size(), 2u);
  args.split = 0;
  openKernels({planned(1), planner()});
  planParams();
  EXPECT_EQ(launches.size(), 2u);
  EXPECT_EQ(valueOf<uint32_t>(launches[0].params[20]), 0u);
}

// Little work for each block: pieces of half the columns are through sooner.
TEST_F(Work, OfFewChunksIsPlannedInHalves) {
  args.tokens = 4096;
  args.workspace_size = size();
  planParams();
  ASSERT_EQ(fakeCuda().launches.size(), 2u);
  EXPECT_EQ(fakeCuda().launches[1].entry, "forward_128_128_split2");
  EXPECT_EQ(valueOf<int>(fakeCuda().launches[0].params[19]), 64);
  args.tokens = 1024;
  args.workspace_size = size();
  expectUncut();
  EXPECT_EQ(fakeCuda().launches[0].entry, "forward_128_128_split2");
}

TEST_F(Work, WithoutTokensIsTheStates) {
  args.tokens = 0;
  for (gdn_tensor *tensor : {&args.q, &args.k, &args.v, &args.o, &args.g, &args.beta})
    *tensor = {nullptr, 0, 0, 0, tensor->dtype};
  EXPECT_EQ(size(), 0u);
  expectUncut();
}

TEST_F(Work, NeedsItsWorkspace) {
  size_t needed = args.workspace_size--;
  expectFailure(GDN_WORKSPACE_TOO_SMALL, "expected at least " + std::to_string(needed) + " bytes, got", args);
  args.workspace_size = needed, args.workspace = nullptr;
  expectFailure(GDN_INVALID_ARGUMENT, "workspace: expected the address of", args);
}

TEST_F(Work, WorkspaceIsBounded) {
  pack(1 << 20, 64);
  EXPECT_LT(args.workspace_size, 70'000'000u);
  args.heads_v = 64;
  EXPECT_LT(size(), 70'000'000u);
  args.flags = GDN_CUT_INVARIANT;
  EXPECT_GT(size(), 512u * 64 * 128 * 128 * 8);
  args.tokens = (int64_t(1) << 31) - (1 << 16), args.heads_v = 64;
  size_t bytes;
  EXPECT_EQ(gdn_forward_workspace_size(bundle, &args, &bytes), GDN_INVALID_ARGUMENT);
  EXPECT_STREQ(gdn_last_error_message(),
               "flags: expected at most 1048576 cuts with GDN_CUT_INVARIANT, got 2147418112 tokens of 64 heads");
}

TEST_F(Work, NeedsAPlanner) {
  openKernels({planned(1)});
  expectFailure(GDN_UNSUPPORTED, "expected a planner for sm_90 beside a forward kernel that asks for one, got none",
                args);
}

TEST_F(Work, PlannersAreLoadedWithTheBundle) {
  EXPECT_EQ(gdn_bundle_load(bundle), GDN_OK);
  EXPECT_EQ(fakeCuda().libraries, 3);
  EXPECT_EQ(gdn_bundle_kernel_count(bundle), 3u);
}

TEST_F(Work, OfKernelsWithoutPlansIsAsItWas) {
  openKernels({sample::forward(sample::key(1)), sample::forward(sample::key(2)), planner()});
  EXPECT_EQ(size(), 0u);
  args.flags = GDN_CUT_INVARIANT | GDN_KEYS_NORMALISED;
  forget();
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().launches.size(), 1u);
  EXPECT_EQ(fakeCuda().launches[0].entry, "forward_128_128_split2");
}

} // namespace
} // namespace gdn
