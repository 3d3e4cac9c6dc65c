// What a call makes of its arguments: the kernel it picks and the launch it makes.
#include "fixture.h"
#include <algorithm>
#include <thread>

namespace gdn {
namespace {

template <typename T> std::string bytesOf(T value) { return {reinterpret_cast<const char *>(&value), sizeof value}; }

uint64_t mapNumber(const std::string &param) {
  uint64_t number;
  std::memcpy(&number, param.data(), sizeof number);
  return number;
}

using Launch = Runtime;

TEST_F(Launch, GeometryAndStream) {
  expectLaunch(args);
  const FakeLaunch &launch = fakeCuda().launches.at(0);
  EXPECT_EQ(launch.entry, "forward_128_128_split2"); // 2 sequences x 8 heads x 2 blocks fit 132 SMs
  EXPECT_EQ(launch.grid, (std::array{32u, 1u, 1u}));
  EXPECT_EQ(launch.block, (std::array{384u, 1u, 1u}));
  EXPECT_EQ(launch.shared, 200'002u);
  EXPECT_EQ(launch.stream, address(0x5));
  EXPECT_EQ((fakeCuda().sharedLimit[{launch.entry, 0}]), 200'002);
}

TEST_F(Launch, ParametersOfADenseBatch) {
  args.g.token_stride = 16, args.g.batch_stride = 16'000; // every other column of a wider tensor
  args.g.head_stride = 2;
  args.final_state.sequence_stride = 9 * 128 * 128;
  expectLaunch(args);
  const std::vector<std::string> &params = fakeCuda().launches.at(0).params;
  ASSERT_EQ(params.size(), sample::kernels()[0].params.size());
  std::vector<std::string> expected = {bytesOf(0x50000000ull),
                                       bytesOf(16ll),
                                       bytesOf(2ll),
                                       bytesOf(0), // g: address, token, head, fp32
                                       bytesOf(0x60000000ull),
                                       bytesOf(8ll),
                                       bytesOf(1ll),
                                       bytesOf(1), // beta: bf16
                                       bytesOf(0x70000000ull),
                                       bytesOf(8 * 128 * 128ll),
                                       bytesOf(128 * 128ll),
                                       bytesOf(0),
                                       bytesOf(0x80000000ull),
                                       bytesOf(9 * 128 * 128ll),
                                       bytesOf(128 * 128ll),
                                       bytesOf(2),
                                       bytesOf(0.0883883461f),
                                       bytesOf(0ull),
                                       bytesOf(0),
                                       bytesOf(2),
                                       bytesOf(1000),
                                       bytesOf(2000),
                                       bytesOf(8),
                                       bytesOf(2)};
  EXPECT_EQ(std::vector(params.begin() + 4, params.end()), expected);
}

TEST_F(Launch, TensorMaps) {
  args.v.token_stride = 4096, args.v.head_stride = 256, args.v.batch_stride = 4096 * 1000; // a view
  expectLaunch(args);
  const FakeLaunch &launch = fakeCuda().launches.at(0);
  struct Expected {
    uint64_t address, columns, heads, headBytes, tokenBytes;
  } expected[] = {{0x10000000, 128, 4, 256, 1024},
                  {0x20000000, 128, 4, 256, 1024},
                  {0x30000000, 128, 8, 512, 8192},
                  {0x40000000, 128, 8, 256, 2048}};
  for (size_t i = 0; i < 4; ++i) {
    const FakeMap &map = fakeCuda().maps.at(mapNumber(launch.params[i]));
    EXPECT_EQ(map.type, 9); // bf16
    EXPECT_EQ(map.address, expected[i].address - 64 * expected[i].tokenBytes);
    EXPECT_EQ(map.dims, (std::vector<uint64_t>{expected[i].columns, expected[i].heads, 64, 2064}));
    EXPECT_EQ(map.strides,
              (std::vector<uint64_t>{expected[i].headBytes, expected[i].tokenBytes, expected[i].tokenBytes}));
    EXPECT_EQ(map.box, (std::vector<uint32_t>{64, 1, 64, 1}));
    EXPECT_EQ(map.steps, (std::vector<uint32_t>{1, 1, 1, 1}));
    EXPECT_EQ(std::tie(map.interleave, map.swizzle, map.promotion, map.fill), std::make_tuple(0, 3, 3, 0));
  }
}

TEST_F(Launch, ParametersOfAPackedBatchInOtherDimensions) {
  args.batch = 1, args.tokens = 777, args.key_dim = 96, args.value_dim = 192, args.num_sequences = 3;
  args.q = gdn_contiguous(address(0x10000000), GDN_F16, 777, 4, 96);
  args.k = gdn_contiguous(address(0x20000000), GDN_F16, 777, 4, 96);
  args.v = gdn_contiguous(address(0x30000000), GDN_F16, 777, 8, 192);
  args.o = gdn_contiguous(address(0x40000000), GDN_F16, 777, 8, 192);
  args.initial_state = {};
  args.final_state = gdn_contiguous_state(address(0x80000000), GDN_F32, 8, 96, 192);
  args.state_layout = GDN_V_FIRST;
  args.cu_seqlens = address(0x90000008), args.cu_seqlens_dtype = GDN_INT64;
  args.scale = 0;
  size_t workspace = 0;
  ASSERT_EQ(gdn_forward_workspace_size(bundle, &args, &workspace), GDN_OK);
  EXPECT_EQ(workspace, 3u * 8 * 80);
  args.workspace = address(0xa0000000), args.workspace_size = workspace;
  expectLaunch(args);
  const FakeLaunch &launch = fakeCuda().launches.at(0);
  EXPECT_EQ(launch.grid[0], 24u);
  EXPECT_EQ(fakeCuda().maps.at(0).type, 6); // fp16
  EXPECT_EQ(fakeCuda().maps.at(2).dims, (std::vector<uint64_t>{192, 8, 64, 841}));
  std::vector<std::string> expected = {bytesOf(0ull),
                                       bytesOf(0ll),
                                       bytesOf(0ll),
                                       bytesOf(0), // no initial state
                                       bytesOf(0x80000000ull),
                                       bytesOf(8 * 96 * 192ll),
                                       bytesOf(96 * 192ll),
                                       bytesOf(0),
                                       bytesOf(0.0f),
                                       bytesOf(0x90000008ull),
                                       bytesOf(1),
                                       bytesOf(3),
                                       bytesOf(777),
                                       bytesOf(777),
                                       bytesOf(8),
                                       bytesOf(2),
                                       bytesOf(0xa0000000ull)};
  EXPECT_EQ(std::vector(launch.params.begin() + 12, launch.params.end()), expected);
}

TEST_F(Launch, AxesOfLengthOneMayHaveAnyStride) {
  args.batch = 3, args.tokens = 1, args.heads = args.heads_v = 1;
  for (gdn_tensor *tensor : {&args.q, &args.k, &args.v, &args.o, &args.g, &args.beta})
    tensor->batch_stride = 512, tensor->token_stride = -7, tensor->head_stride = 3;
  args.initial_state.head_stride = args.final_state.head_stride = -1;
  args.initial_state.sequence_stride = args.final_state.sequence_stride = 128 * 128;
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().maps.at(0).strides, (std::vector<uint64_t>{256, 1024, 1024}));
  EXPECT_EQ(fakeCuda().launches.at(0).params[5], bytesOf(512ll)); // tokens of g
}

TEST_F(Launch, InPlaceAndBroadcastStates) {
  args.final_state = args.initial_state;
  expectLaunch(args);
  args.final_state = {};
  args.initial_state.sequence_stride = args.initial_state.head_stride = 0;
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().launches.at(1).params[13], bytesOf(0ll));
}

// States pass through where there are no tokens: the maps must still be ones that the driver takes.
TEST_F(Launch, WithoutTokens) {
  args.tokens = 0;
  for (gdn_tensor *tensor : {&args.q, &args.k, &args.v, &args.o, &args.g, &args.beta})
    *tensor = {nullptr, 0, 0, 0, tensor->dtype};
  expectLaunch(args);
  ASSERT_EQ(fakeCuda().maps.size(), 1u); // of which all are copies
  const FakeMap &map = fakeCuda().maps[0];
  EXPECT_NE(map.address, 0u);
  EXPECT_EQ(map.address % 16, 0u);
  EXPECT_TRUE(std::ranges::all_of(map.dims, [](uint64_t dim) { return dim > 0; }));
  EXPECT_TRUE(std::ranges::all_of(map.strides, [](uint64_t stride) { return stride > 0 && stride % 16 == 0; }));
}

TEST_F(Launch, NothingToDo) {
  args.batch = 0;
  EXPECT_EQ(gdn_forward(bundle, &args), GDN_OK);
  args.batch = 2, args.tokens = 0, args.final_state = {};
  EXPECT_EQ(gdn_forward(bundle, &args), GDN_OK);
  args.batch = 1, args.num_sequences = 0, args.cu_seqlens = address(0x90000000), args.cu_seqlens_dtype = GDN_INT32;
  EXPECT_EQ(gdn_forward(bundle, &args), GDN_OK);
  EXPECT_TRUE(fakeCuda().launches.empty());
  args.key_dim = 32; // what the bundle lacks is an error even then
  EXPECT_EQ(gdn_forward(bundle, &args), GDN_UNSUPPORTED);
}

TEST_F(Launch, SplitFollowsTheSms) {
  auto entry = [&](int64_t batch, int device, uint32_t split) {
    args.batch = batch, args.split = split;
    fakeCuda().current = device;
    forget();
    EXPECT_EQ(gdn_forward(bundle, &args), GDN_OK) << gdn_last_error_message();
    return fakeCuda().launches.at(0).entry;
  };
  EXPECT_EQ(entry(8, 0, 0), "forward_128_128_split2"); // 128 blocks on 132 SMs
  EXPECT_EQ(entry(9, 0, 0), "forward_128_128_split1");
  EXPECT_EQ(entry(1, 2, 0), "forward_128_128_split1"); // 16 blocks on 8 SMs
  EXPECT_EQ(entry(100, 0, 2), "forward_128_128_split2");
  EXPECT_EQ(fakeCuda().launches.at(0).grid[0], 132u);
  EXPECT_EQ(entry(1, 0, 1), "forward_128_128_split1");
}

TEST_F(Launch, ProfilingVariant) {
  args.profile = address(0xb0000000), args.profile_size = 132 * 3072;
  expectLaunch(args);
  const FakeLaunch &launch = fakeCuda().launches.at(0);
  EXPECT_EQ(launch.entry, "forward_128_128_split1_profile");
  EXPECT_EQ(std::vector(launch.params.end() - 2, launch.params.end()),
            (std::vector{bytesOf(0xb0000000ull), bytesOf(8ll)}));
  forget();
  args.profile_size = 132 * 3072 - 1;
  expectFailure(GDN_INVALID_ARGUMENT, "profile_size: expected at least 405504 bytes for 132 SMs, got 405503", args);
}

TEST_F(Launch, FamilyImageServesItsFamilyAndAnExactOneGoesFirst) {
  std::vector<Kernel> kernels = sample::kernels();
  KernelKey exact = kernels[0].key;
  exact.arch = "sm_120a";
  KernelKey family = exact, older = exact;
  family.arch = "sm_120f", older.arch = "sm_100f";
  Kernel a = sample::forward(exact), f = sample::forward(family);
  a.entry = "exact", f.entry = "family";
  fakeCuda().paramSizes["exact"] = fakeCuda().paramSizes["family"] = fakeCuda().paramSizes["forward_128_128_split1"];
  fakeCuda().current = 1;
  open(*writeBundle({a, f}, ""));
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().launches.back().entry, "exact");
  open(*writeBundle({f}, ""));
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().launches.back().entry, "family");
  forget();
  open(*writeBundle({sample::forward(older)}, ""));
  expectFailure(GDN_WRONG_DEVICE, "expected an image for sm_120 (Fake RTX), got a bundle with sm_100f", args);
}

TEST_F(Launch, LongerStructsOfLaterVersions) {
  struct {
    gdn_forward_args args;
    uint64_t later = 0;
  } longer;
  longer.args = args;
  longer.args.struct_size = sizeof longer;
  expectLaunch(longer.args);
  forget();
  longer.later = 1;
  expectFailure(GDN_INVALID_ARGUMENT, "args.struct_size: expected", longer.args);
}

// The struct of version 0.1.0 ended with the stream.
TEST_F(Launch, ShorterStructsOfEarlierVersions) {
  args.struct_size = offsetof(gdn_forward_args, a_log);
  args.a_log.data = address(0x100); // lies behind it
  expectLaunch(args);
  forget();
  args.struct_size -= 8;
  expectFailure(GDN_INVALID_ARGUMENT, "args.struct_size: expected at least", args);
}

TEST_F(Launch, InputOptions) {
  for (auto change : {+[](gdn_forward_args &a) { a.flags = GDN_BETA_LOGITS; },
                      +[](gdn_forward_args &a) { a.a_log = {address(0x100), GDN_F32}; }}) {
    gdn_forward_args changed = args;
    change(changed);
    expectFailure(GDN_UNSUPPORTED,
                  "flags and a_log: expected log decays and write strengths, which the kernel takes alone, got others",
                  changed);
  }
  Kernel kernel = sample::forward(sample::key());
  kernel.entry = "options";
  kernel.params = {{KernelParam::Kind::Scalar, "options"},
                   sample::pointer("A_log"),
                   sample::element("A_log"),
                   sample::pointer("dt_bias"),
                   sample::element("dt_bias"),
                   {KernelParam::Kind::Scalar, "scale"}};
  fakeCuda().paramSizes["options"] = {4, 8, 4, 8, 4, 4};
  open(*writeBundle({kernel}, ""));
  auto given = [&] {
    expectLaunch(args);
    return fakeCuda().launches.back().params;
  };
  std::vector<std::string> plain = {bytesOf(0),    bytesOf(0ull), bytesOf(0),
                                    bytesOf(0ull), bytesOf(0),    bytesOf(args.scale)};
  EXPECT_EQ(given(), plain);
  args.flags = GDN_BETA_LOGITS | GDN_BETA_DOUBLED | GDN_G_IS_DECAY;
  EXPECT_EQ(given()[0], bytesOf(BetaLogits | BetaDoubled | DecayGiven));
  args.flags = GDN_BETA_DOUBLED;
  args.a_log = {address(0x100), GDN_BF16};
  args.dt_bias = {address(0x204), GDN_F32};
  std::vector<std::string> raw = {bytesOf(GateRaw | BetaDoubled),
                                  bytesOf(0x100ull),
                                  bytesOf(1),
                                  bytesOf(0x204ull),
                                  bytesOf(0),
                                  bytesOf(args.scale)};
  EXPECT_EQ(given(), raw);
  // A kernel that reads them as fp32.
  kernel.params.erase(kernel.params.begin() + 2);
  fakeCuda().paramSizes["options"] = {4, 8, 8, 4, 4};
  open(*writeBundle({kernel}, ""));
  forget();
  expectFailure(GDN_UNSUPPORTED, "dtype of A_log: expected GDN_F32, which the kernel takes alone, got bf16", args);
}

TEST_F(Launch, VariantsByFeature) {
  KernelKey normalising = sample::key();
  normalising.features = L2Norm;
  std::vector<Kernel> both = {sample::forward(sample::key()), sample::forward(normalising)};
  both[1].entry = "normalising";
  fakeCuda().paramSizes["normalising"] = fakeCuda().paramSizes[both[0].entry];
  open(*writeBundle(both, ""));
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().launches.back().entry, both[0].entry);
  args.flags = GDN_NORMALISE_QK;
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().launches.back().entry, "normalising");
  gdn_kernel_info info;
  info.struct_size = sizeof info;
  ASSERT_EQ(gdn_bundle_kernel_info(bundle, 1, &info), GDN_OK);
  EXPECT_EQ(info.features, uint32_t(GDN_NORMALISE_QK));
  open(*writeBundle({both[1]}, "")); // a plain call is not served by it
  forget();
  args.flags = 0;
  expectFailure(GDN_UNSUPPORTED, "K=128 V=128 bf16 k-first, got a bundle without; nearest: ", args);
}

// A launch makes these driver calls and no others: none allocates, synchronises or changes the context.
TEST_F(Launch, CallsOfAPreparedKernel) {
  ASSERT_EQ(gdn_bundle_load(bundle), GDN_OK) << gdn_last_error_message();
  EXPECT_EQ(fakeCuda().libraries, 4); // all but the one for another family
  for (int i = 0; i < 2; ++i) {
    forget();
    expectLaunch(args);
    EXPECT_EQ(fakeCuda().calls, (std::map<std::string, int>{
                                    {"cuCtxGetDevice", 1}, {"cuTensorMapEncodeTiled", 4}, {"cuLaunchKernelEx", 1}}));
  }
}

extern "C" int cuThreadExchangeStreamCaptureMode(int *mode);

TEST_F(Launch, LoadsWhileAGraphIsCaptured) {
  int threadLocal = 1;
  cuThreadExchangeStreamCaptureMode(&threadLocal);
  expectLaunch(args);
  EXPECT_EQ(fakeCuda().captureModeOfLoad, 2); // relaxed
  int mode = 0;
  cuThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(mode, 1);
}

TEST_F(Launch, EachDeviceIsPreparedOnce) {
  for (int device : {0, 2, 0, 2}) {
    fakeCuda().current = device;
    args.split = 1;
    expectLaunch(args);
  }
  EXPECT_EQ(fakeCuda().calls["cuLibraryLoadData"], 1);
  EXPECT_EQ(fakeCuda().calls["cuKernelSetAttribute"], 2);
  EXPECT_EQ((fakeCuda().sharedLimit[{"forward_128_128_split1", 2}]), 200'001);
}

TEST_F(Launch, ManyThreads) {
  constexpr int threads = 8, launches = 300;
  std::vector<std::thread> pool;
  std::atomic<int> failures = 0;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      gdn_forward_args mine = sampleArgs();
      gdn_forward_args wrong = mine;
      wrong.heads = 3 + t; // each thread keeps its own message
      std::string message = "heads_v: expected a multiple of heads (" + std::to_string(3 + t) + ")";
      mine.split = 1 + t % 2;
      mine.stream = address(100 + t);
      for (int i = 0; i < launches; ++i) {
        failures += gdn_forward(bundle, &mine) != GDN_OK;
        if (3 + t != 4 && 3 + t != 8)
          failures += gdn_forward(bundle, &wrong) != GDN_INVALID_ARGUMENT ||
                      !std::string_view(gdn_last_error_message()).starts_with(message);
      }
    });
  for (std::thread &thread : pool)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fakeCuda().calls["cuLibraryLoadData"], 2);
  EXPECT_EQ(fakeCuda().launches.size(), size_t(threads * launches));
  for (const FakeLaunch &launch : fakeCuda().launches) {
    int t = static_cast<int>(reinterpret_cast<uintptr_t>(launch.stream)) - 100;
    EXPECT_EQ(launch.entry, t % 2 ? "forward_128_128_split2" : "forward_128_128_split1");
  }
}

} // namespace
} // namespace gdn
