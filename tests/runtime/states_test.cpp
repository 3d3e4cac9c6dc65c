// States in pools and checkpoints: what is refused, and what kernels are given.
#include "fixture.h"

namespace gdn {
namespace {

using Args = gdn_forward_args;

class States : public Runtime {
protected:
  // A kernel that takes the rows of states, which are its last parameters.
  void SetUp() override {
    Runtime::SetUp();
    Kernel kernel = sample::forward(sample::key());
    for (const char *name : {"source_rows", "sink_rows", "wide_rows", "rows"})
      kernel.params.push_back(sample::batch(name));
    open(kernel);
    args.read_indices = address(0xb0000000), args.write_indices = address(0xc0000000);
    args.state_slots = 700'000, args.state_indices_dtype = GDN_INT32;
  }
  using Runtime::open;
  void open(const Kernel &kernel) {
    fakeCuda().paramSizes[kernel.entry].clear();
    for (const KernelParam &param : kernel.params)
      fakeCuda().paramSizes[kernel.entry].push_back(param.size());
    open(*writeBundle({kernel}, ""));
    forget();
  }
  void refuse(const char *message, void (*spoil)(Args &)) {
    SCOPED_TRACE(message);
    Args spoilt = args;
    spoil(spoilt);
    expectFailure(GDN_INVALID_ARGUMENT, message, spoilt);
  }
  template <size_t N> std::array<uint64_t, N> last() {
    expectLaunch(args);
    const std::vector<std::string> &params = fakeCuda().launches.back().params;
    std::array<uint64_t, N> values{};
    for (size_t i = 0; i < N; ++i)
      std::memcpy(&values[i], params[params.size() - N + i].data(), params[params.size() - N + i].size());
    return values;
  }
  std::array<uint64_t, 4> rows() { return last<4>(); }
};

TEST_F(States, RowsByIndices) {
  EXPECT_EQ(rows(), (std::array<uint64_t, 4>{0xb0000000, 0xc0000000, 0, 700'000}));
  args.state_indices_dtype = GDN_INT64;
  EXPECT_EQ(rows()[2], 1u);
  args.write_indices = nullptr; // as read
  EXPECT_EQ(rows()[1], 0xb0000000u);
  args.final_state = {};
  EXPECT_EQ(rows()[1], 0xb0000000u);
  args = sampleArgs();
  args.write_indices = address(0xc0000000), args.state_slots = INT32_MAX, args.state_indices_dtype = GDN_INT32;
  EXPECT_EQ(rows(), (std::array<uint64_t, 4>{0, 0xc0000000, 0, INT32_MAX}));
  args = sampleArgs();
  EXPECT_EQ(rows(), (std::array<uint64_t, 4>{0, 0, 0, 0}));
}

TEST_F(States, SlotsMayLieFarApart) {
  args.initial_state.sequence_stride = (1ll << 38) - 4;
  expectLaunch(args);
  args.final_state = args.initial_state; // in place
  expectLaunch(args);
}

TEST_F(States, Refusals) {
  refuse("read_indices: expected NULL without initial_state, got 0xb0000000", [](Args &a) { a.initial_state = {}; });
  refuse("write_indices: expected NULL without final_state, got 0xc0000000", [](Args &a) { a.final_state = {}; });
  refuse("state_slots: expected 1 to 2147483647, got 0", [](Args &a) { a.state_slots = 0; });
  refuse("state_slots: expected 1 to 2147483647, got -1", [](Args &a) { a.state_slots = -1; });
  refuse("state_slots: expected 1 to 2147483647, got 2147483648", [](Args &a) { a.state_slots = 1ll << 31; });
  refuse("state_slots: expected 0 without read_indices and write_indices, got 700000",
         [](Args &a) { a.read_indices = a.write_indices = nullptr; });
  refuse("state_indices_dtype: expected GDN_INT32 or GDN_INT64, got GDN_F32 (0)",
         [](Args &a) { a.state_indices_dtype = GDN_F32; });
  refuse("read_indices: expected a multiple of 8 bytes, got 0xb0000004", [](Args &a) {
    a.state_indices_dtype = GDN_INT64;
    a.read_indices = address(0xb0000004);
  });
  refuse("write_indices: expected a multiple of 4 bytes, got 0xc0000002",
         [](Args &a) { a.write_indices = address(0xc0000002); });
  refuse("initial_state.sequence_stride: expected a multiple of 4 elements (16 bytes), got 131073",
         [](Args &a) { a.initial_state.sequence_stride += 1; });
  refuse("initial_state.sequence_stride: expected 0 to 274877906943 elements, got -131072",
         [](Args &a) { a.initial_state.sequence_stride = -131072; });
  refuse("final_state.sequence_stride: expected at least 131072 elements, so that nothing is written twice, got 16384",
         [](Args &a) { a.final_state.sequence_stride = 16384; });
}

// With the variant that stores checkpoints.
class Checkpoints : public States {
protected:
  void SetUp() override {
    States::SetUp();
    KernelKey key = sample::key();
    key.features = gdn::Checkpoints;
    Kernel kernel = sample::forward(key);
    kernel.params.insert(kernel.params.end(), {sample::pointer("h_out"), sample::stride("h_out", 0),
                                               sample::stride("h_out", 1), sample::element("h_out")});
    for (const char *name : {"starts", "wide_starts", "every", "checkpoints", "skips"})
      kernel.params.push_back(sample::batch(name));
    open(kernel);
    args = sampleArgs();
    args.flags = GDN_CHECKPOINTS_AFTER;
    args.checkpoints = gdn_contiguous_state(address(0xd0000000), GDN_BF16, 8, 128, 128);
    args.checkpoint_rows = 30, args.checkpoint_every = 128;
  }
};

TEST_F(Checkpoints, Parameters) {
  std::array<uint64_t, 9> expected = {0xd0000000, 131072, 16384, 1, 0, 0, 2, 30, 1};
  EXPECT_EQ(last<9>(), expected);
  args.flags = GDN_CHECKPOINTS_BEFORE;
  args.checkpoint_starts = address(0xe0000000), args.checkpoint_starts_dtype = GDN_INT64;
  args.checkpoint_rows = INT32_MAX, args.checkpoint_every = 64;
  args.checkpoints.sequence_stride = 1ll << 38;
  expected = {0xd0000000, 1ull << 38, 16384, 1, 0xe0000000, 1, 1, INT32_MAX, 0};
  EXPECT_EQ(last<9>(), expected);
  args.checkpoint_every = 1ll << 62; // further apart than any sequence is long
  EXPECT_EQ(last<9>()[6], ((1u << 31) - (1u << 16)) / 64);
  args.checkpoints = {}, args.checkpoint_rows = 0;
  EXPECT_EQ(last<9>()[0], 0u);
  gdn_kernel_info info;
  info.struct_size = sizeof info;
  ASSERT_EQ(gdn_bundle_kernel_info(bundle, 0, &info), GDN_OK);
  EXPECT_EQ(info.features, uint32_t(GDN_CHECKPOINTS_AFTER | GDN_CHECKPOINTS_BEFORE));
}

TEST_F(Checkpoints, Refusals) {
  refuse("flags: expected one of GDN_CHECKPOINTS_AFTER and GDN_CHECKPOINTS_BEFORE, got both",
         [](Args &a) { a.flags |= GDN_CHECKPOINTS_BEFORE; });
  refuse("checkpoints.data: expected the address of 30 rows, got NULL", [](Args &a) { a.checkpoints = {}; });
  refuse("checkpoints.dtype: expected GDN_F32, GDN_BF16 or GDN_F16, got GDN_INT32 (3)",
         [](Args &a) { a.checkpoints.dtype = GDN_INT32; });
  refuse("checkpoints.data: expected a multiple of 16 bytes, got 0xd0000008",
         [](Args &a) { a.checkpoints.data = address(0xd0000008); });
  refuse("checkpoints.sequence_stride: expected a multiple of 8 elements (16 bytes), got 131076",
         [](Args &a) { a.checkpoints.sequence_stride += 4; });
  refuse("checkpoints.head_stride: expected at least 16384 elements, so that nothing is written twice, got 16376",
         [](Args &a) { a.checkpoints.head_stride -= 8; });
  refuse("checkpoint_rows: expected 0 to 2147483647, got -1", [](Args &a) { a.checkpoint_rows = -1; });
  refuse("checkpoint_every: expected a multiple of 64 tokens, got 0", [](Args &a) { a.checkpoint_every = 0; });
  refuse("checkpoint_every: expected a multiple of 64 tokens, got 100", [](Args &a) { a.checkpoint_every = 100; });
  refuse("checkpoint_every: expected a multiple of 64 tokens, got -64", [](Args &a) { a.checkpoint_every = -64; });
  refuse("checkpoint_starts: expected an address with cu_seqlens, got NULL", [](Args &a) {
    a.batch = 1, a.num_sequences = 3, a.cu_seqlens = address(0x90000000), a.cu_seqlens_dtype = GDN_INT32;
  });
  refuse("checkpoint_starts_dtype: expected GDN_INT32 or GDN_INT64, got GDN_F32 (0)",
         [](Args &a) { a.checkpoint_starts = address(0xe0000000); });
  refuse("checkpoint_starts: expected a multiple of 4 bytes, got 0xe0000001",
         [](Args &a) { a.checkpoint_starts = address(0xe0000001), a.checkpoint_starts_dtype = GDN_INT32; });
}

TEST_F(Checkpoints, NeedTheirVariant) {
  args.flags = 0;
  expectFailure(GDN_UNSUPPORTED, "expected a forward kernel for K=128 V=128 bf16 k-first, got a bundle without; ",
                args);
  args.checkpoints = {}, args.checkpoint_rows = 0;
  open(sample::forward(sample::key()));
  expectLaunch(args);
  forget();
  args.checkpoints = gdn_contiguous_state(address(0xd0000000), GDN_BF16, 8, 128, 128);
  expectFailure(GDN_INVALID_ARGUMENT,
                "checkpoints: expected NULL without GDN_CHECKPOINTS_AFTER or GDN_CHECKPOINTS_BEFORE, got 0xd0000000",
                args);
  args.flags = GDN_CHECKPOINTS_AFTER;
  expectFailure(
      GDN_UNSUPPORTED,
      "k-first checkpoints, got a bundle without, which gdnc build --features checkpoints adds; nearest: ", args);
}

TEST_F(States, KernelsWithoutRows) {
  open(sample::forward(sample::key()));
  expectFailure(GDN_UNSUPPORTED,
                "read_indices and write_indices: expected NULL, which the kernel takes alone, got addresses", args);
}

} // namespace
} // namespace gdn
