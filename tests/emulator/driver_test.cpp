// The stand-in for libcuda.so.1, as a program sees it that opens it.
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <vector>

namespace {

using Address = unsigned long long;

class Driver : public testing::Test {
protected:
  void SetUp() override {
    library = dlopen(GDN_EMU_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    std::stringstream text;
    text << std::ifstream(GDN_EMU_PTX).rdbuf();
    ptx = text.str();
    ASSERT_EQ(call("cuInit", 0u), 0);
    ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &context, 0), 0);
    ASSERT_EQ(call("cuCtxSetCurrent", context), 0);
  }
  void TearDown() override {
    for (void *module : modules)
      EXPECT_EQ(call("cuLibraryUnload", module), 0);
  }
  template <class... A> int call(const char *name, A... arguments) {
    auto function = reinterpret_cast<int (*)(A...)>(dlsym(library, name));
    EXPECT_TRUE(function) << name;
    return function ? function(arguments...) : -1;
  }
  std::string words(int status) {
    const char *text = nullptr;
    call("cuGetErrorString", status, &text);
    return text ? text : "";
  }
  Address allocate(size_t bytes) {
    Address address = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &address, bytes), 0);
    return address;
  }
  void *kernel() {
    void *module = nullptr, *function = nullptr;
    EXPECT_EQ(call("cuLibraryLoadData", &module, static_cast<const void *>(ptx.c_str()), static_cast<int *>(nullptr),
                   static_cast<void **>(nullptr), 0u, static_cast<int *>(nullptr), static_cast<void **>(nullptr), 0u),
              0);
    EXPECT_EQ(call("cuLibraryGetKernel", &function, module, "scale"), 0);
    modules.push_back(module);
    return function;
  }
  int scale(void *function, void *stream, float a, Address x, Address y, uint32_t n, unsigned blocks) {
    void *params[] = {&a, &x, &y, &n};
    return call("cuLaunchKernel", function, blocks, 1u, 1u, 64u, 1u, 1u, 0u, stream, static_cast<void **>(params),
                static_cast<void **>(nullptr));
  }
  void *library = nullptr, *context = nullptr;
  std::vector<void *> modules;
  std::string ptx;
};

TEST_F(Driver, DescribesADevice) {
  int count = 0, major = 0, sms = 0, version = 0;
  EXPECT_EQ(call("cuDeviceGetCount", &count), 0);
  EXPECT_EQ(call("cuDeviceGetAttribute", &major, 75, 0), 0);
  EXPECT_EQ(call("cuDeviceGetAttribute", &sms, 16, 0), 0);
  EXPECT_EQ(call("cuDriverGetVersion", &version), 0);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(major, 9);
  EXPECT_EQ(sms, 7); // the test's environment
  EXPECT_GE(version, 12000);
}

TEST_F(Driver, RunsAKernel) {
  Address x = allocate(400), y = allocate(400);
  std::vector<float> in(100), out(100);
  for (size_t n = 0; n < in.size(); n++)
    in[n] = float(n);
  EXPECT_EQ(call("cuMemcpyHtoD_v2", x, static_cast<const void *>(in.data()), size_t(400)), 0);
  EXPECT_EQ(scale(kernel(), nullptr, 3, x, y, 100, 2), 0);
  EXPECT_EQ(call("cuMemcpyDtoH_v2", static_cast<void *>(out.data()), y, size_t(400)), 0);
  for (size_t n = 0; n < out.size(); n++)
    EXPECT_EQ(out[n], 3 * in[n]);
}

// Tensors on the CPU need no allocation by the driver.
TEST_F(Driver, TakesHostMemory) {
  std::vector<float> in(64, 2.0f), out(64);
  EXPECT_EQ(
      scale(kernel(), nullptr, 4, reinterpret_cast<Address>(in.data()), reinterpret_cast<Address>(out.data()), 64, 1),
      0);
  EXPECT_EQ(out, std::vector<float>(64, 8.0f));
}

TEST_F(Driver, FaultsHaveWords) {
  Address x = allocate(400), y = allocate(396);
  EXPECT_EQ(scale(kernel(), nullptr, 3, x, y, 100, 2), 719);
  EXPECT_NE(words(719).find("kernel 'scale': line 25, block 1, warp 1: global write of 4 bytes"), std::string::npos)
      << words(719);
  EXPECT_EQ(call("cuMemFree_v2", x), 0);
  EXPECT_EQ(scale(kernel(), nullptr, 3, x, y, 10, 1), 719) << "freed memory is not used again";
  EXPECT_NE(words(719).find("no allocation there"), std::string::npos) << words(719);
  EXPECT_EQ(call("cuMemFree_v2", x), 1) << "freed twice";
}

TEST_F(Driver, RefusesWhatIsNoPtx) {
  void *module = nullptr;
  const char cubin[64] = "\x7f"
                         "ELF";
  EXPECT_EQ(call("cuModuleLoadData", &module, static_cast<const void *>(cubin)), 200);
  EXPECT_NE(words(200).find("--with-ptx"), std::string::npos);
  EXPECT_EQ(call("cuModuleLoadData", &module, static_cast<const void *>("no PTX")), 200);
  EXPECT_NE(words(200).find("line 1: "), std::string::npos) << words(200);
}

TEST_F(Driver, RecordsGraphs) {
  Address x = allocate(256), y = allocate(256);
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  EXPECT_EQ(call("cuStreamCreate", &stream, 0u), 0);
  EXPECT_EQ(call("cuMemsetD32_v2", x, 0x40000000u, size_t(64)), 0); // 2.0
  EXPECT_EQ(call("cuMemsetD8_v2", y, (unsigned char)(0), size_t(256)), 0);
  EXPECT_EQ(call("cuStreamBeginCapture_v2", stream, 0), 0);
  EXPECT_EQ(scale(kernel(), stream, 5, x, y, 64, 1), 0);
  EXPECT_EQ(call("cuStreamEndCapture", stream, &graph), 0);
  EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
  float first = -1;
  EXPECT_EQ(call("cuMemcpyDtoH_v2", static_cast<void *>(&first), y, size_t(4)), 0);
  EXPECT_EQ(first, 0) << "recorded work is not done";
  EXPECT_EQ(call("cuGraphLaunch", executable, stream), 0);
  EXPECT_EQ(call("cuMemcpyDtoH_v2", static_cast<void *>(&first), y, size_t(4)), 0);
  EXPECT_EQ(first, 10);
  EXPECT_EQ(call("cuGraphExecDestroy", executable), 0);
  EXPECT_EQ(call("cuGraphDestroy", graph), 0);
  EXPECT_EQ(call("cuStreamDestroy_v2", stream), 0);
}

TEST_F(Driver, EncodesTensorMaps) {
  alignas(64) uint8_t map[128];
  std::vector<uint8_t> memory(4096 + 16);
  void *base = memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
  uint64_t dims[] = {64, 16}, strides[] = {128};
  uint32_t box[] = {64, 16}, steps[] = {1, 1};
  auto encode = [&] {
    return call("cuTensorMapEncodeTiled", static_cast<void *>(map), 9, 2u, base, static_cast<const uint64_t *>(dims),
                static_cast<const uint64_t *>(strides), static_cast<const uint32_t *>(box),
                static_cast<const uint32_t *>(steps), 0, 3, 0, 0);
  };
  EXPECT_EQ(encode(), 0);
  box[0] = 128;
  EXPECT_EQ(encode(), 1);
  EXPECT_EQ(words(1), "expected inner rows within the swizzle's 128 bytes, got 256");
  box[0] = 64, strides[0] = 100;
  EXPECT_EQ(encode(), 1);
  EXPECT_NE(words(1).find("multiple of 16"), std::string::npos);
}

} // namespace
