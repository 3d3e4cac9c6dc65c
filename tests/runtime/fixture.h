// A bundle of sample kernels, the fake driver, and the arguments of a call that succeeds.
#pragma once
#include "fake_cuda.h"
#include "gdn/gdn.h"
#include "sample.h"
#include <cstdlib>
#include <gtest/gtest.h>

namespace gdn {

// Addresses on the device: never read.
inline void *address(uint64_t value) { return reinterpret_cast<void *>(value); }

// 2 x 1000 tokens of 4/8 heads, contiguous.
inline gdn_forward_args sampleArgs() {
  gdn_forward_args args{};
  args.struct_size = sizeof args;
  args.batch = 2, args.tokens = 1000, args.heads = 4, args.heads_v = 8, args.key_dim = args.value_dim = 128;
  args.q = gdn_contiguous(address(0x10000000), GDN_BF16, args.tokens, args.heads, args.key_dim);
  args.k = gdn_contiguous(address(0x20000000), GDN_BF16, args.tokens, args.heads, args.key_dim);
  args.v = gdn_contiguous(address(0x30000000), GDN_BF16, args.tokens, args.heads_v, args.value_dim);
  args.o = gdn_contiguous(address(0x40000000), GDN_BF16, args.tokens, args.heads_v, args.value_dim);
  args.g = gdn_contiguous(address(0x50000000), GDN_F32, args.tokens, args.heads_v, 1);
  args.beta = gdn_contiguous(address(0x60000000), GDN_BF16, args.tokens, args.heads_v, 1);
  args.initial_state = gdn_contiguous_state(address(0x70000000), GDN_F32, args.heads_v, args.key_dim, args.value_dim);
  args.final_state = gdn_contiguous_state(address(0x80000000), GDN_F16, args.heads_v, args.key_dim, args.value_dim);
  args.scale = 0.0883883461f;
  args.stream = address(0x5);
  return args;
}

class Runtime : public testing::Test {
protected:
  void SetUp() override {
    setenv("GDN_DRIVER", GDN_FAKE_CUDA, 1);
    FakeCuda &fake = fakeCuda();
    fake.current = 0;
    fake.failures.clear(), fake.paramSizes.clear(), fake.sharedLimit.clear();
    for (const Kernel &kernel : sample::kernels())
      for (const KernelParam &param : kernel.params)
        fake.paramSizes[kernel.entry].push_back(param.size());
    forget();
    open(sample::bundle());
  }
  void TearDown() override {
    gdn_bundle_close(bundle);
    EXPECT_EQ(fakeCuda().libraries, 0);
  }

  void forget() { fakeCuda().calls.clear(), fakeCuda().maps.clear(), fakeCuda().launches.clear(); }
  void open(std::string content) {
    gdn_bundle_close(bundle);
    bytes = std::move(content);
    ASSERT_EQ(gdn_bundle_from_memory(bytes.data(), bytes.size(), &bundle), GDN_OK) << gdn_last_error_message();
  }
  void expectLaunch(const gdn_forward_args &args) {
    ASSERT_EQ(gdn_forward(bundle, &args), GDN_OK) << gdn_last_error_message();
    ASSERT_FALSE(fakeCuda().launches.empty());
  }
  void expectFailure(gdn_status status, const std::string &message, const gdn_forward_args &args) {
    EXPECT_EQ(gdn_forward(bundle, &args), status);
    EXPECT_NE(std::string(gdn_last_error_message()).find(message), std::string::npos) << gdn_last_error_message();
    EXPECT_TRUE(fakeCuda().launches.empty());
  }

  gdn_forward_args args = sampleArgs();
  std::string bytes;
  gdn_bundle *bundle = nullptr;
};

} // namespace gdn
