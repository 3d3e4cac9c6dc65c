// Every way in which a call can fail once a driver is open.
#include "fixture.h"
#include <fstream>
#include <set>
#include <unistd.h>

namespace gdn {
namespace {

struct BadArgument {
  const char *message;
  void (*spoil)(gdn_forward_args &args);
  gdn_status status = GDN_INVALID_ARGUMENT;
};

class BadArguments : public Runtime {
protected:
  void refuse(std::initializer_list<BadArgument> cases) {
    for (const BadArgument &bad : cases) {
      SCOPED_TRACE(bad.message);
      gdn_forward_args spoilt = sampleArgs();
      bad.spoil(spoilt);
      expectFailure(bad.status, bad.message, spoilt);
      std::string sentence = gdn_last_error_message();
      EXPECT_EQ(gdn_forward_check(bundle, &spoilt), bad.status);
      EXPECT_EQ(gdn_last_error_message(), sentence);
    }
  }
};

using Args = gdn_forward_args;

void pack(Args &a) {
  a.batch = 1, a.num_sequences = 3, a.cu_seqlens = address(0x90000000), a.cu_seqlens_dtype = GDN_INT32;
}

TEST_F(BadArguments, Dimensions) {
  refuse({BadArgument{"args.struct_size: expected at least", [](Args &a) { a.struct_size = 8; }},
          BadArgument{"batch: expected 0 to 2147418112, got -1", [](Args &a) { a.batch = -1; }},
          BadArgument{"tokens: expected 0 to 2147418112, got 2147483648", [](Args &a) { a.tokens = 1ll << 31; }},
          BadArgument{"batch * tokens: expected 0 to 2147418112, got 4294836224",
                      [](Args &a) { a.tokens = (1ll << 31) - (1 << 16); }},
          BadArgument{"heads: expected 1 to 65536, got 0", [](Args &a) { a.heads = 0; }},
          BadArgument{"heads_v: expected 1 to 65536, got -8", [](Args &a) { a.heads_v = -8; }},
          BadArgument{"heads_v: expected a multiple of heads (3), got 8", [](Args &a) { a.heads = 3; }},
          BadArgument{"heads_v: expected a multiple of heads (16), got 8", [](Args &a) { a.heads = 16; }},
          BadArgument{"key_dim: expected 1 to 65536, got 0", [](Args &a) { a.key_dim = 0; }},
          BadArgument{"value_dim: expected 1 to 65536, got 4294967296", [](Args &a) { a.value_dim = 1ll << 32; }},
          BadArgument{"state_layout: expected 0 to 1, got 2", [](Args &a) { a.state_layout = 2; }},
          BadArgument{"flags: expected bits of 0x3f0f, got 0x4000", [](Args &a) { a.flags = 1 << 14; }},
          BadArgument{"a_log: expected NULL with GDN_G_IS_DECAY, got 0x100",
                      [](Args &a) { a.flags = GDN_G_IS_DECAY, a.a_log = {address(0x100), GDN_F32}; }},
          BadArgument{"dt_bias: expected NULL without a_log, got 0x100",
                      [](Args &a) { a.dt_bias = {address(0x100), GDN_F32}; }},
          BadArgument{"a_log.dtype: expected GDN_F32, GDN_BF16 or GDN_F16, got GDN_INT64 (4)",
                      [](Args &a) { a.a_log = {address(0x100), GDN_INT64}; }},
          BadArgument{"dt_bias.data: expected a multiple of 4 bytes, got 0x102",
                      [](Args &a) {
                        a.a_log = {address(0x102), GDN_BF16};
                        a.dt_bias = {address(0x102), GDN_F32};
                      }},
          BadArgument{"flags: expected one of GDN_CUT_OFF and GDN_CUT_INVARIANT, got both",
                      [](Args &a) { a.flags = GDN_CUT_OFF | GDN_CUT_INVARIANT; }},
          BadArgument{"flags: expected GDN_KEYS_NORMALISED with GDN_CUT_FAST, got none",
                      [](Args &a) { a.flags = GDN_CUT_FAST; }},
          BadArgument{"split: expected 0 to 64, got 65", [](Args &a) { a.split = 65; }},
          BadArgument{"num_sequences: expected batch (2) or 0 without cu_seqlens, got 3",
                      [](Args &a) { a.num_sequences = 3; }},
          BadArgument{"batch of packed sequences: expected 1 to 1, got 2", [](Args &a) { pack(a), a.batch = 2; }},
          BadArgument{"num_sequences: expected 1 to", [](Args &a) { pack(a), a.num_sequences = 0; }},
          BadArgument{"num_sequences: expected 1 to", [](Args &a) { pack(a), a.num_sequences = 1ll << 31; }},
          BadArgument{"cu_seqlens_dtype: expected GDN_INT32 or GDN_INT64, got GDN_F32 (0)",
                      [](Args &a) { pack(a), a.cu_seqlens_dtype = GDN_F32; }},
          BadArgument{"cu_seqlens: expected a multiple of 8 bytes, got 0x90000004",
                      [](Args &a) { pack(a), a.cu_seqlens_dtype = GDN_INT64, a.cu_seqlens = address(0x90000004); }},
          BadArgument{"sequences * heads_v * split: expected at most 2147483647",
                      [](Args &a) {
                        pack(a), a.num_sequences = 1 << 30;
                        a.initial_state = a.final_state = {};
                      }},
          BadArgument{"scale: expected a finite number, got nan", [](Args &a) { a.scale = __builtin_nanf(""); }},
          BadArgument{"profile: expected a multiple of 8 bytes", [](Args &a) { a.profile = address(12); }},
          BadArgument{"workspace: expected a multiple of 16 bytes", [](Args &a) { a.workspace = address(8); }}});
}

TEST_F(BadArguments, Tensors) {
  refuse(
      {BadArgument{"q.dtype: expected GDN_BF16 or GDN_F16, got GDN_F32 (0)", [](Args &a) { a.q.dtype = GDN_F32; }},
       BadArgument{"q.dtype: expected GDN_BF16 or GDN_F16, got no gdn_dtype (-3)", [](Args &a) { a.q.dtype = -3; }},
       BadArgument{"k.dtype: expected GDN_BF16 like q, got GDN_F16 (2)", [](Args &a) { a.k.dtype = GDN_F16; }},
       BadArgument{"v.dtype: expected GDN_BF16 like q, got GDN_F16 (2)", [](Args &a) { a.v.dtype = GDN_F16; }},
       BadArgument{"o.dtype: expected GDN_BF16 like q, got GDN_F32 (0)", [](Args &a) { a.o.dtype = GDN_F32; }},
       BadArgument{"g.dtype: expected GDN_F32, GDN_BF16 or GDN_F16, got GDN_INT32 (3)",
                   [](Args &a) { a.g.dtype = GDN_INT32; }},
       BadArgument{"beta.dtype: expected GDN_F32, GDN_BF16 or GDN_F16, got no gdn_dtype (9)",
                   [](Args &a) { a.beta.dtype = 9; }},
       BadArgument{"q.data: expected a device address, got NULL", [](Args &a) { a.q.data = nullptr; }},
       BadArgument{"k.data: expected a device address, got NULL", [](Args &a) { a.k.data = nullptr; }},
       BadArgument{"v.data: expected a device address, got NULL", [](Args &a) { a.v.data = nullptr; }},
       BadArgument{"o.data: expected a device address, got NULL", [](Args &a) { a.o.data = nullptr; }},
       BadArgument{"g.data: expected a device address, got NULL", [](Args &a) { a.g.data = nullptr; }},
       BadArgument{"beta.data: expected a device address, got NULL", [](Args &a) { a.beta.data = nullptr; }},
       BadArgument{"k.data: expected a multiple of 16 bytes, got 0x20000008",
                   [](Args &a) { a.k.data = address(0x20000008); }},
       BadArgument{"g.data: expected a multiple of 4 bytes, got 0x50000002",
                   [](Args &a) { a.g.data = address(0x50000002); }},
       BadArgument{"q.batch_stride: expected tokens * token_stride = 1000 * 512, so that the batch is one token axis, "
                   "got 512008",
                   [](Args &a) { a.q.batch_stride += 8; }},
       BadArgument{"beta.batch_stride: expected tokens * token_stride", [](Args &a) { a.beta.batch_stride = 0; }},
       BadArgument{"v.token_stride: expected a multiple of 8 elements (16 bytes), got 1028",
                   [](Args &a) { a.v.token_stride = 1028, a.v.batch_stride = 1028'000; }},
       BadArgument{"q.head_stride: expected a multiple of 8 elements (16 bytes), got 129",
                   [](Args &a) { a.q.head_stride = 129; }},
       BadArgument{"k.head_stride: expected 0 to 549755813887 elements, got -128",
                   [](Args &a) { a.k.head_stride = -128; }},
       BadArgument{"k.token_stride: expected 0 to 549755813887 elements, got 549755813888",
                   [](Args &a) { a.k.token_stride = 1ll << 39, a.k.batch_stride = 1000 * (1ll << 39); }},
       BadArgument{"g.token_stride: expected 0 to", [](Args &a) { a.g.token_stride = -8, a.g.batch_stride = -8000; }},
       BadArgument{"g.batch_stride: expected tokens * token_stride", [](Args &a) { a.g.token_stride = INT64_MAX; }},
       BadArgument{"o.head_stride: expected at least 128 elements, so that nothing is written twice, got 64",
                   [](Args &a) { a.o.head_stride = 64; }},
       BadArgument{"o.token_stride: expected at least 1024 elements, so that nothing is written twice, got 1016",
                   [](Args &a) { a.o.token_stride = 1016, a.o.batch_stride = 1'016'000; }},
       BadArgument{"o.head_stride: expected at least 256000 elements, so that nothing is written twice, got 255872",
                   [](Args &a) {
                     a.o.token_stride = 128, a.o.batch_stride = 128'000; // heads outermost
                     a.o.head_stride = 255'872;
                   }}});
}

TEST_F(BadArguments, States) {
  refuse(
      {BadArgument{"initial_state.dtype: expected GDN_F32, GDN_BF16 or GDN_F16, got GDN_INT64 (4)",
                   [](Args &a) { a.initial_state.dtype = GDN_INT64; }},
       BadArgument{"final_state.data: expected a multiple of 16 bytes, got 0x80000004",
                   [](Args &a) { a.final_state.data = address(0x80000004); }},
       BadArgument{"final_state.sequence_stride: expected a multiple of 8 elements (16 bytes), got 131073",
                   [](Args &a) { a.final_state.sequence_stride += 1; }},
       BadArgument{"final_state.head_stride: expected at least 16384 elements, so that nothing is written twice, got 0",
                   [](Args &a) { a.final_state.head_stride = 0; }},
       BadArgument{"final_state.sequence_stride: expected at least 131072 elements",
                   [](Args &a) { a.final_state.sequence_stride = 16384; }},
       BadArgument{"initial_state.head_stride: expected 0 to", [](Args &a) { a.initial_state.head_stride = -16384; }},
       BadArgument{"final_state: expected the strides and dtype of initial_state, whose address it has, got others",
                   [](Args &a) { a.final_state.data = a.initial_state.data; }}});
}

TEST_F(BadArguments, Kernels) {
  refuse(
      {BadArgument{"expected a forward kernel for K=128 V=256 bf16 k-first, got a bundle without; nearest: forward "
                   "sm_100f K=128 V=128 chunk=64 bf16 k-first split=1; forward sm_90a K=128 V=128",
                   [](Args &a) { a.value_dim = 256; }, GDN_UNSUPPORTED},
       BadArgument{"K=96 V=192 bf16 v-first, got a bundle without; nearest: forward sm_90a K=96 V=192 chunk=64 fp16",
                   [](Args &a) { a.key_dim = 96, a.value_dim = 192, a.state_layout = GDN_V_FIRST; }, GDN_UNSUPPORTED},
       BadArgument{"bf16 k-first l2norm, got a bundle without, which gdnc build --features l2norm adds; nearest: ",
                   [](Args &a) { a.flags = GDN_NORMALISE_QK; }, GDN_UNSUPPORTED},
       BadArgument{"K=128 V=256 bf16 k-first l2norm, got a bundle without; nearest: ",
                   [](Args &a) { a.flags = GDN_NORMALISE_QK, a.value_dim = 256; }, GDN_UNSUPPORTED},
       BadArgument{"split=4, got a bundle without", [](Args &a) { a.split = 4; }, GDN_UNSUPPORTED},
       BadArgument{"split=2 profile, got a bundle without",
                   [](Args &a) { a.split = 2, a.profile = address(64), a.profile_size = 1 << 20; }, GDN_UNSUPPORTED}});
}

using Errors = Runtime;

TEST_F(Errors, NullArguments) {
  size_t size;
  EXPECT_EQ(gdn_forward(nullptr, &args), GDN_INVALID_ARGUMENT);
  EXPECT_STREQ(gdn_last_error_message(), "bundle: expected a bundle, got NULL");
  EXPECT_EQ(gdn_forward(bundle, nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_STREQ(gdn_last_error_message(), "args: expected a struct, got NULL");
  EXPECT_EQ(gdn_forward_workspace_size(nullptr, &args, &size), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_forward_workspace_size(bundle, nullptr, &size), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_forward_workspace_size(bundle, &args, nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_STREQ(gdn_last_error_message(), "bytes: expected an address, got NULL");
  gdn_bundle *opened;
  EXPECT_EQ(gdn_bundle_open(nullptr, &opened), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_open("x", nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_from_memory(nullptr, 5, &opened), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_from_memory("x", 1, nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_verify(nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_load(nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_kernel_info(nullptr, 0, nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_kernel_info(bundle, 0, nullptr), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_bundle_kernel_count(nullptr), 0u);
  EXPECT_STREQ(gdn_bundle_metadata(nullptr), "");
  EXPECT_EQ(gdn_device_query(0, nullptr), GDN_INVALID_ARGUMENT);
  gdn_bundle_close(nullptr);
}

TEST_F(Errors, Workspace) {
  args.key_dim = 96, args.value_dim = 192, args.state_layout = GDN_V_FIRST;
  args.q = gdn_contiguous(address(0x10000000), GDN_F16, 1000, 4, 96), args.k = args.q;
  args.v = gdn_contiguous(address(0x30000000), GDN_F16, 1000, 8, 192), args.o = args.v;
  args.initial_state = args.final_state = {};
  expectFailure(GDN_WORKSPACE_TOO_SMALL, "workspace_size: expected at least 1280 bytes, got 0", args);
  args.workspace = address(0xa0000000), args.workspace_size = 1279;
  expectFailure(GDN_WORKSPACE_TOO_SMALL, "workspace_size: expected at least 1280 bytes, got 1279", args);
  args.workspace = nullptr, args.workspace_size = 1280;
  expectFailure(GDN_INVALID_ARGUMENT, "workspace: expected the address of 1280 bytes, got NULL", args);
  args.workspace = address(0xa0000000);
  expectLaunch(args);
}

TEST_F(Errors, CheckEnqueuesNothing) {
  EXPECT_EQ(gdn_forward_check(bundle, &args), GDN_OK) << gdn_last_error_message();
  EXPECT_TRUE(fakeCuda().launches.empty());
  EXPECT_EQ(gdn_forward_check(nullptr, &args), GDN_INVALID_ARGUMENT);
  EXPECT_EQ(gdn_forward_check(bundle, nullptr), GDN_INVALID_ARGUMENT);
  fakeCuda().failures = {{"cuLibraryLoadData", 1}};
  open(sample::bundle());
  EXPECT_EQ(gdn_forward_check(bundle, &args), GDN_DRIVER_ERROR);
}

TEST_F(Errors, WrongDevice) {
  fakeCuda().current = 1;
  expectFailure(GDN_WRONG_DEVICE, "expected an image for sm_120 (Fake RTX), got a bundle with sm_100f, sm_90a", args);
  EXPECT_EQ(gdn_bundle_load(bundle), GDN_WRONG_DEVICE);
}

TEST_F(Errors, NoContext) {
  fakeCuda().current = -1;
  expectFailure(GDN_NO_CONTEXT,
                "expected a current CUDA context in the calling thread, got none (a call of the CUDA runtime such as "
                "cudaFree(0), or cuCtxSetCurrent, makes one current)",
                args);
  EXPECT_EQ(gdn_bundle_load(bundle), GDN_NO_CONTEXT);
  fakeCuda().current = 3;
  fakeCuda().failures.clear();
  expectFailure(GDN_NO_CONTEXT, "expected the current device below 3, got 3", args);
}

TEST_F(Errors, DriverCalls) {
  for (const char *call : {"cuCtxGetDevice", "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelSetAttribute",
                           "cuKernelGetFunction", "cuTensorMapEncodeTiled", "cuLaunchKernelEx"}) {
    fakeCuda().failures = {{call, 1}};
    expectFailure(GDN_DRIVER_ERROR, call, args);
    EXPECT_NE(std::string(gdn_last_error_message()).find("CUDA_ERROR_INVALID_VALUE (1): invalid argument"),
              std::string::npos)
        << gdn_last_error_message();
  }
  fakeCuda().failures = {{"cuLaunchKernelEx", 719}};
  expectFailure(
      GDN_DRIVER_ERROR,
      "cuLaunchKernelEx of 'forward_128_128_split2': CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure", args);
  fakeCuda().failures = {{"cuTensorMapEncodeTiled", 1}};
  expectFailure(GDN_DRIVER_ERROR, "cuTensorMapEncodeTiled of 'q_in'", args);
  fakeCuda().failures = {{"cuLaunchKernelEx", 12345}}; // unknown to the driver itself
  expectFailure(GDN_DRIVER_ERROR, "unknown error (12345)", args);
  fakeCuda().failures.clear();
  expectLaunch(args); // no failure sticks
}

TEST_F(Errors, KernelsThatTakeTypesAndStridesForGranted) {
  Kernel kernel = sample::forward(sample::key());
  std::erase_if(kernel.params, [](const KernelParam &param) {
    bool element = param.kind == KernelParam::Kind::Element && (param.name == "g_in" || param.name == "s_out");
    bool heads = param.kind == KernelParam::Kind::Stride && param.name == "beta_in" && param.axis == 1;
    return element || heads;
  });
  fakeCuda().paramSizes[kernel.entry].clear();
  for (const KernelParam &param : kernel.params)
    fakeCuda().paramSizes[kernel.entry].push_back(param.size());
  open(*writeBundle({kernel}, ""));
  expectFailure(GDN_UNSUPPORTED, "dtype of s_out: expected GDN_F32, which the kernel takes alone, got fp16", args);
  args.final_state.dtype = GDN_F32;
  args.g.dtype = GDN_BF16;
  expectFailure(GDN_UNSUPPORTED, "dtype of g_in: expected GDN_F32, which the kernel takes alone, got bf16", args);
  args.g.dtype = GDN_F32;
  args.beta.head_stride = 2;
  expectFailure(GDN_UNSUPPORTED, "stride of axis 1 of beta_in: expected 1, which the kernel takes alone, got 2", args);
  args.beta.head_stride = 1;
  expectLaunch(args);
  args.final_state.data = nullptr;
  args.final_state.dtype = -1;
  expectLaunch(args);
}

TEST_F(Errors, MissingEntry) {
  fakeCuda().paramSizes.clear();
  expectFailure(GDN_DRIVER_ERROR, "cuLibraryGetKernel of 'forward_128_128_split2'", args);
  EXPECT_EQ(fakeCuda().libraries, 0);
}

TEST_F(Errors, DamagedImageIsFoundWhenItIsLoaded) {
  std::string damaged = sample::bundle();
  size_t at = damaged.find("code of forward_128_128_split2");
  ASSERT_NE(at, std::string::npos);
  damaged[at] ^= 1;
  open(damaged);
  EXPECT_EQ(gdn_bundle_verify(bundle), GDN_BUNDLE_CORRUPT);
  expectFailure(GDN_BUNDLE_CORRUPT,
                "forward sm_90a K=128 V=128 chunk=64 bf16 k-first split=2: expected an image with hash", args);
  EXPECT_EQ(gdn_bundle_load(bundle), GDN_BUNDLE_CORRUPT);
  args.split = 1;
  expectLaunch(args);
}

TEST_F(Errors, KernelsThatNeedALaterLibrary) {
  for (const KernelParam &param :
       {sample::pointer("pool_in"), sample::stride("g_in", 2), sample::element("clocks"),
        sample::map("s_in", 128, ElementType::BF16), sample::map("q_in", 64, ElementType::BF16),
        sample::map("q_in", 128, ElementType::F16), sample::batch("cu_pages"),
        KernelParam{KernelParam::Kind::Scalar, "softcap"}}) {
    Kernel kernel = sample::forward(sample::key());
    kernel.params.push_back(param);
    std::string content = *writeBundle({kernel}, "");
    gdn_bundle *opened;
    EXPECT_EQ(gdn_bundle_from_memory(content.data(), content.size(), &opened), GDN_BUNDLE_VERSION) << param.name;
    EXPECT_EQ(opened, nullptr);
    std::string expected = ": expected parameters that gdn 0.1.0 can give, got '" + param.name + "' of kind ";
    EXPECT_NE(std::string(gdn_last_error_message()).find(expected), std::string::npos) << gdn_last_error_message();
  }
  Kernel other = sample::forward(sample::key()); // operations of later versions do no harm
  other.key.operation = "backward";
  other.params.push_back(sample::pointer("dq_out"));
  open(*writeBundle({other}, ""));
  EXPECT_EQ(gdn_bundle_kernel_count(bundle), 1u);
  expectFailure(GDN_UNSUPPORTED, "nearest: none, it has no forward kernel", args);
}

class Files : public testing::Test {
protected:
  void expectStatus(gdn_status status, const std::string &message, const std::string &content) {
    std::string path = testing::TempDir() + "gdn_" + std::to_string(getpid()) + ".gdnb";
    std::ofstream(path, std::ios::binary) << content;
    gdn_bundle *bundle;
    EXPECT_EQ(gdn_bundle_open(path.c_str(), &bundle), status) << gdn_last_error_message();
    EXPECT_EQ(bundle == nullptr, status != GDN_OK);
    if (status != GDN_OK) {
      EXPECT_NE(std::string(gdn_last_error_message()).find(path + ": " + message), std::string::npos)
          << gdn_last_error_message();
    }
    gdn_bundle_close(bundle);
    std::remove(path.c_str());
  }
};

TEST_F(Files, Open) {
  std::string content = sample::bundle();
  expectStatus(GDN_OK, "", content);
  expectStatus(GDN_BUNDLE_CORRUPT, "expected a header of 56 bytes, got 0 bytes", "");
  expectStatus(GDN_BUNDLE_CORRUPT, "expected a bundle, got other leading bytes", std::string(500, 'x'));
  expectStatus(GDN_BUNDLE_CORRUPT, "expected " + std::to_string(content.size()) + " bytes as the header says, got 700",
               content.substr(0, 700));
  content[8] = 2;
  expectStatus(GDN_BUNDLE_VERSION, "expected format version 1, got 2", content);
}

TEST_F(Files, Missing) {
  gdn_bundle *bundle;
  EXPECT_EQ(gdn_bundle_open("/nonexistent/x.gdnb", &bundle), GDN_FILE_ERROR);
  EXPECT_STREQ(gdn_last_error_message(), "/nonexistent/x.gdnb: cannot be opened: No such file or directory");
  EXPECT_EQ(gdn_bundle_open("/", &bundle), GDN_FILE_ERROR);
  EXPECT_STREQ(gdn_last_error_message(), "/: expected a regular file, got another");
}

TEST_F(Errors, KernelInfo) {
  EXPECT_EQ(gdn_bundle_kernel_count(bundle), 5u);
  EXPECT_STREQ(gdn_bundle_metadata(bundle), sample::metadata);
  struct {
    gdn_kernel_info info;
    uint64_t later;
  } longer;
  longer.later = 77;
  longer.info.struct_size = sizeof longer;
  ASSERT_EQ(gdn_bundle_kernel_info(bundle, 1, &longer.info), GDN_OK);
  const gdn_kernel_info &info = longer.info;
  EXPECT_STREQ(info.operation, "forward");
  EXPECT_STREQ(info.arch, "sm_90a");
  EXPECT_STREQ(info.schedule, "split=1 aux=2");
  EXPECT_EQ(std::tie(info.key_dim, info.value_dim, info.chunk, info.io, info.state_layout, info.split, info.profile),
            std::make_tuple(96, 192, 64, GDN_F16, GDN_V_FIRST, 1, 0));
  EXPECT_EQ(std::tie(info.threads, info.registers, info.shared_bytes, info.elf_abi, info.min_driver),
            std::make_tuple(384, 168, 200'001, 8, 13000));
  EXPECT_EQ(info.image_bytes, sample::kernels()[3].cubin.size());
  EXPECT_EQ(info.features, 0u);
  EXPECT_EQ(longer.later, 0u);
  EXPECT_EQ(gdn_bundle_kernel_info(bundle, 5, &longer.info), GDN_INVALID_ARGUMENT);
  EXPECT_STREQ(gdn_last_error_message(), "index: expected below 5, got 5");
  gdn_kernel_info older; // of version 0.1.0
  older.struct_size = offsetof(gdn_kernel_info, features);
  older.features = 77;
  ASSERT_EQ(gdn_bundle_kernel_info(bundle, 1, &older), GDN_OK);
  EXPECT_EQ(older.image_bytes, info.image_bytes);
  EXPECT_EQ(older.features, 77u);
  longer.info.struct_size = 3;
  EXPECT_EQ(gdn_bundle_kernel_info(bundle, 0, &longer.info), GDN_INVALID_ARGUMENT);
}

TEST(Status, EveryOneHasASentence) {
  std::set<std::string> sentences;
  for (int status = GDN_OK; status <= GDN_OUT_OF_MEMORY; ++status)
    sentences.insert(gdn_status_string(static_cast<gdn_status>(status)));
  EXPECT_EQ(sentences.size(), size_t(GDN_OUT_OF_MEMORY + 1));
  std::string unknown = "a status that this version of the library does not know";
  EXPECT_FALSE(sentences.contains(unknown));
  EXPECT_EQ(gdn_status_string(static_cast<gdn_status>(13)), unknown);
  EXPECT_EQ(gdn_status_string(static_cast<gdn_status>(-1)), unknown);
  EXPECT_EQ(gdn_version(), 100u);
}

} // namespace
} // namespace gdn
