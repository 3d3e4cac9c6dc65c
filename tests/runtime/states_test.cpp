// States in pools: what is refused, and what kernels are given.
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
  }
  void refuse(const char *message, void (*spoil)(Args &)) {
    SCOPED_TRACE(message);
    Args spoilt = args;
    spoil(spoilt);
    expectFailure(GDN_INVALID_ARGUMENT, message, spoilt);
  }
  std::array<uint64_t, 4> rows() {
    expectLaunch(args);
    const std::vector<std::string> &params = fakeCuda().launches.back().params;
    std::array<uint64_t, 4> values{};
    for (size_t i = 0; i < 4; ++i)
      std::memcpy(&values[i], params[params.size() - 4 + i].data(), params[params.size() - 4 + i].size());
    return values;
  }
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

TEST_F(States, KernelsWithoutRows) {
  open(sample::forward(sample::key()));
  expectFailure(GDN_UNSUPPORTED,
                "read_indices and write_indices: expected NULL, which the kernel takes alone, got addresses", args);
}

} // namespace
} // namespace gdn
