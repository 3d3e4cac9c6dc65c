#include "driver.h"
#include "src/status.h"
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>

namespace gdn {
namespace {

constexpr int oldestDriver = 12000; // the first with the functions of symbols.def

// The emulator's library lies beside this one, or on the loader's path.
void *openEmulator(std::string &path) {
  path = "libgdn-emu-cuda.so";
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&openEmulator), &self) && self.dli_fname) {
    std::string folder = self.dli_fname;
    std::string beside = folder.substr(0, folder.rfind('/') + 1) + path;
    if (void *library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      path = beside;
      return library;
    }
  }
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void *openLibrary(std::string &path) {
  const char *chosen = std::getenv("GDN_DRIVER");
  path = chosen && *chosen ? chosen : "libcuda.so.1";
  return path == "emu" ? openEmulator(path) : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

template <typename Function> bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

gdn_status findFunctions(void *library, Driver &driver) {
  const char *missing = nullptr;
#define GDN_DRIVER_FUNCTION(NAME, ...)                                                                                 \
  if (!find(library, #NAME, driver.NAME) && !missing)                                                                  \
    missing = #NAME;
#include "symbols.def"
#undef GDN_DRIVER_FUNCTION
  driver.takesPtx = dlsym(library, "gdnEmulatorVersion") != nullptr;
  if (driver.cuDriverGetVersion)
    driver.cuDriverGetVersion(&driver.version);
  if (driver.version != 0 && driver.version < oldestDriver)
    return fail(GDN_DRIVER_TOO_OLD, "%s: expected a driver of CUDA 12.0 or later, got CUDA %d.%d", driver.path.c_str(),
                driver.version / 1000, driver.version % 1000 / 10);
  if (missing)
    return fail(GDN_NO_DRIVER, "%s: expected the functions of the CUDA 12.0 driver, got a library without %s",
                driver.path.c_str(), missing);
  return GDN_OK;
}

gdn_status describeDevices(Driver &driver) {
  CUresult result = driver.cuInit(0);
  if (result == cu::errorNoDevice)
    return GDN_OK;
  GDN_TRY(driver.check(result, "cuInit"));
  int count = 0;
  GDN_TRY(driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    char name[256] = "";
    int major = 0, minor = 0, sms = 0;
    GDN_TRY(driver.check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
    GDN_TRY(driver.check(driver.cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName"));
    for (auto [attribute, value] :
         {std::pair(cu::attributeMajor, &major), {cu::attributeMinor, &minor}, {cu::attributeSmCount, &sms}})
      GDN_TRY(driver.check(driver.cuDeviceGetAttribute(value, attribute, device), "cuDeviceGetAttribute"));
    driver.devices.push_back({name, major * 10 + minor, sms});
  }
  return GDN_OK;
}

gdn_status openDriver(Driver &driver) {
  void *library = openLibrary(driver.path);
  if (!library)
    return fail(GDN_NO_DRIVER, "expected the CUDA driver library, got: %s", dlerror());
  gdn_status status = findFunctions(library, driver);
  if (status == GDN_OK)
    status = describeDevices(driver);
  if (status != GDN_OK)
    dlclose(library);
  return status;
}

} // namespace

gdn_status Driver::get(const Driver *&driver) {
  static std::atomic<const Driver *> opened = nullptr;
  driver = opened.load(std::memory_order_acquire);
  if (driver)
    return GDN_OK;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  driver = opened.load(std::memory_order_relaxed);
  if (driver)
    return GDN_OK;
  auto fresh = std::make_unique<Driver>();
  GDN_TRY(openDriver(*fresh));
  driver = fresh.release();
  opened.store(driver, std::memory_order_release);
  return GDN_OK;
}

gdn_status Driver::check(CUresult result, const char *call) const {
  if (result == cu::success)
    return GDN_OK;
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return fail(GDN_DRIVER_ERROR, "%s: %s (%d): %s", call, name ? name : "unknown error", result, text ? text : "");
}

gdn_status Driver::currentDevice(CUdevice &device) const {
  if (devices.empty())
    return fail(GDN_NO_CONTEXT, "expected a CUDA device, got none from %s", path.c_str());
  CUresult result = cuCtxGetDevice(&device);
  if (result == cu::errorInvalidContext)
    return fail(GDN_NO_CONTEXT, "expected a current CUDA context in the calling thread, got none (a call of the CUDA "
                                "runtime such as cudaFree(0), or cuCtxSetCurrent, makes one current)");
  GDN_TRY(check(result, "cuCtxGetDevice"));
  if (device < 0 || static_cast<size_t>(device) >= devices.size())
    return fail(GDN_NO_CONTEXT, "expected the current device below %zu, got %d", devices.size(), device);
  return GDN_OK;
}

} // namespace gdn
