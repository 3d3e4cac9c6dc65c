// Opening the driver. A process keeps the first driver that opens, so that each case runs in a fresh one.
#include "fixture.h"
#include <cstdio>

namespace gdn {
namespace {

// Ends the process with a status, and the message of the last failure on standard error.
[[noreturn]] void report(gdn_status status) {
  std::fprintf(stderr, "%s\n", gdn_last_error_message());
  std::_Exit(status);
}

gdn_status query(const char *library, gdn_device_info &info, int device = 0) {
  setenv("GDN_DRIVER", library, 1);
  info = {};
  info.struct_size = sizeof info;
  return gdn_device_query(device, &info);
}

[[noreturn]] void reportQuery(const char *library = GDN_FAKE_CUDA, int device = 0) {
  gdn_device_info info;
  report(query(library, info, device));
}

[[noreturn]] void reportForward(const std::string &bytes) {
  setenv("GDN_DRIVER", GDN_FAKE_CUDA, 1);
  for (const KernelParam &param : sample::forward(sample::key()).params)
    fakeCuda().paramSizes["forward_128_128_split1"].push_back(param.size());
  gdn_bundle *bundle;
  gdn_forward_args args = sampleArgs();
  args.split = 1;
  gdn_status status = gdn_bundle_from_memory(bytes.data(), bytes.size(), &bundle);
  report(status == GDN_OK ? gdn_forward(bundle, &args) : status);
}

std::string bundleOfAbi(uint32_t abi) {
  Kernel kernel = sample::forward(sample::key());
  kernel.cubin = sample::cubin(90, "code", abi);
  return *writeBundle({kernel}, "");
}

class DriverOpens : public testing::Test {
protected:
  static void SetUpTestSuite() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

#define EXPECT_STATUS(STATUS, MESSAGE, STATEMENT) EXPECT_EXIT(STATEMENT, testing::ExitedWithCode(STATUS), MESSAGE)

TEST_F(DriverOpens, Missing) {
  EXPECT_STATUS(GDN_NO_DRIVER, "expected the CUDA driver library, got: /nonexistent/libcuda.so: cannot open",
                reportQuery("/nonexistent/libcuda.so"));
}

// Whether or not this machine has the library, it is the right one that is asked for.
TEST_F(DriverOpens, NamesOfLibraries) {
  for (auto [chosen, name] : {std::pair("", "libcuda.so.1"), {"emu", "libgdn-emu-cuda.so"}})
    EXPECT_STATUS(GDN_OK, name, {
      gdn_device_info info;
      if (query(chosen, info) == GDN_NO_DRIVER)
        std::fprintf(stderr, "%s\n", gdn_last_error_message());
      std::fprintf(stderr, "%s\n", info.driver_path);
      std::_Exit(0);
    });
}

TEST_F(DriverOpens, Incomplete) {
  EXPECT_STATUS(GDN_NO_DRIVER,
                "expected the functions of the CUDA 12.0 driver, got a library without cuKernelGetFunction",
                reportQuery(GDN_FAKE_CUDA_INCOMPLETE));
}

TEST_F(DriverOpens, TooOldForTheRuntime) {
  for (const char *library : {GDN_FAKE_CUDA, GDN_FAKE_CUDA_INCOMPLETE})
    EXPECT_STATUS(GDN_DRIVER_TOO_OLD, "expected a driver of CUDA 12.0 or later, got CUDA 11.8", {
      fakeCuda().version = 11080;
      reportQuery(library);
    });
}

TEST_F(DriverOpens, TooOldForTheImage) {
  EXPECT_STATUS(GDN_DRIVER_TOO_OLD,
                "forward sm_90a .* expected a driver of CUDA 13.0 or later for ELF ABI 8, got CUDA 12.8", {
                  fakeCuda().version = 12080;
                  reportForward(bundleOfAbi(8));
                });
  EXPECT_STATUS(GDN_OK, "", {
    fakeCuda().version = 12080;
    reportForward(bundleOfAbi(7));
  });
}

TEST_F(DriverOpens, FailingCalls) {
  for (const char *call : {"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute"})
    EXPECT_STATUS(GDN_DRIVER_ERROR, std::string(call) + ": CUDA_ERROR_LAUNCH_FAILED", {
      fakeCuda().failures[call] = 719;
      reportQuery();
    });
}

TEST_F(DriverOpens, WithoutDevices) {
  EXPECT_STATUS(GDN_NO_CONTEXT, "expected one below 0, got 0", {
    fakeCuda().devices.clear();
    reportQuery();
  });
  EXPECT_STATUS(GDN_NO_CONTEXT, "expected a CUDA device, got none from ", {
    fakeCuda().devices.clear();
    reportForward(sample::bundle());
  });
}

TEST_F(DriverOpens, WrongOrdinal) {
  EXPECT_STATUS(GDN_NO_CONTEXT, "device: expected one below 3, got 3", reportQuery(GDN_FAKE_CUDA, 3));
  EXPECT_STATUS(GDN_INVALID_ARGUMENT, "device: expected 0 or more, got -1", reportQuery(GDN_FAKE_CUDA, -1));
}

TEST_F(DriverOpens, DescribesDevices) {
  gdn_device_info info;
  ASSERT_EQ(query(GDN_FAKE_CUDA, info, 1), GDN_OK) << gdn_last_error_message();
  EXPECT_EQ(std::tie(info.driver_version, info.device_count, info.sm_count, info.compute_capability),
            std::make_tuple(13000, 3, 100, 120));
  EXPECT_STREQ(info.name, "Fake RTX");
  EXPECT_STREQ(info.driver_path, GDN_FAKE_CUDA);
}

TEST_F(DriverOpens, AgainAfterAFailure) {
  EXPECT_STATUS(GDN_OK, "/nonexistent", {
    gdn_device_info info;
    if (query("/nonexistent", info) != GDN_NO_DRIVER)
      std::_Exit(1);
    reportQuery();
  });
}

} // namespace
} // namespace gdn
