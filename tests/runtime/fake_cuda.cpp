#include "fake_cuda.h"
#include <cstring>

namespace {

constexpr int success = 0, invalidValue = 1, noDevice = 100, invalidContext = 201, notFound = 500;

struct Library {
  std::string image;
};
struct Kernel {
  std::string entry;
};

struct LaunchAttribute {
  int id, pad, value;
  char rest[60];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  void *stream;
  LaunchAttribute *attributes;
  unsigned count;
};
constexpr int programmaticStreamSerialization = 6;

thread_local int captureMode = 0; // global

// Counts the call, and says whether it is to fail.
int enter(const char *function) {
  std::lock_guard lock(fakeCuda().mutex);
  ++fakeCuda().calls[function];
  auto it = fakeCuda().failures.find(function);
  return it == fakeCuda().failures.end() ? success : it->second;
}

} // namespace

FakeCuda &fakeCuda() {
  static FakeCuda fake;
  return fake;
}

#define ENTER()                                                                                                        \
  if (int injected = enter(__func__))                                                                                  \
  return injected

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) {
  ENTER();
  return fakeCuda().devices.empty() ? noDevice : success;
}

int cuDriverGetVersion(int *version) {
  ENTER();
  *version = fakeCuda().version;
  return success;
}

int cuGetErrorName(int result, const char **name) {
  *name = result == invalidValue ? "CUDA_ERROR_INVALID_VALUE" : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : nullptr;
  return *name ? success : invalidValue;
}

int cuGetErrorString(int result, const char **text) {
  *text = result == invalidValue ? "invalid argument" : result == 719 ? "unspecified launch failure" : nullptr;
  return *text ? success : invalidValue;
}

int cuDeviceGetCount(int *count) {
  ENTER();
  *count = static_cast<int>(fakeCuda().devices.size());
  return success;
}

int cuDeviceGet(int *device, int ordinal) {
  ENTER();
  *device = ordinal;
  return success;
}

int cuDeviceGetName(char *name, int size, int device) {
  ENTER();
  std::strncpy(name, fakeCuda().devices.at(device).name.c_str(), size);
  return success;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER();
  const FakeDevice &fake = fakeCuda().devices.at(device);
  *value = attribute == 16   ? fake.sms
           : attribute == 75 ? fake.capability / 10
           : attribute == 76 ? fake.capability % 10
                             : -1;
  return success;
}

int cuCtxGetDevice(int *device) {
  ENTER();
  *device = fakeCuda().current;
  return *device < 0 ? invalidContext : success;
}

int cuLibraryLoadData(void **library, const void *image, int *, void **, unsigned, int *, void **, unsigned) {
  ENTER();
  *library = new Library{std::string(static_cast<const char *>(image), 64)};
  std::lock_guard lock(fakeCuda().mutex);
  fakeCuda().captureModeOfLoad = captureMode;
  ++fakeCuda().libraries;
  return success;
}

int cuLibraryUnload(void *library) {
  ENTER();
  delete static_cast<Library *>(library);
  std::lock_guard lock(fakeCuda().mutex);
  --fakeCuda().libraries;
  return success;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *entry) {
  ENTER();
  std::lock_guard lock(fakeCuda().mutex);
  if (!fakeCuda().paramSizes.contains(entry))
    return notFound;
  static std::map<std::string, Kernel> kernels; // handles stay valid to the end
  *kernel = &kernels.try_emplace(entry, Kernel{entry}).first->second;
  return success;
}

int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
  ENTER();
  if (attribute != 8)
    return invalidValue;
  std::lock_guard lock(fakeCuda().mutex);
  fakeCuda().sharedLimit[{static_cast<Kernel *>(kernel)->entry, device}] = value;
  return success;
}

#ifndef FAKE_INCOMPLETE // built a second time without one of the functions
int cuKernelGetFunction(void **function, void *kernel) {
  ENTER();
  *function = kernel;
  return success;
}
#endif

int cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER();
  std::swap(*mode, captureMode);
  return success;
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  ENTER();
  std::lock_guard lock(fakeCuda().mutex);
  uint64_t number = fakeCuda().maps.size();
  fakeCuda().maps.push_back({type,
                             reinterpret_cast<uintptr_t>(address),
                             {dims, dims + rank},
                             {strides, strides + rank - 1},
                             {box, box + rank},
                             {steps, steps + rank},
                             interleave,
                             swizzle,
                             promotion,
                             fill});
  std::memset(map, 0, 128);
  std::memcpy(map, &number, sizeof number);
  return success;
}

int cuLaunchKernelEx(const LaunchConfig *config, void *function, void **params, void **extra) {
  ENTER();
  if (extra)
    return invalidValue;
  const std::string &entry = static_cast<Kernel *>(function)->entry;
  std::lock_guard lock(fakeCuda().mutex);
  const unsigned *grid = config->grid, *block = config->block;
  FakeLaunch launch{entry,
                    fakeCuda().current,
                    {grid[0], grid[1], grid[2]},
                    {block[0], block[1], block[2]},
                    config->shared,
                    config->stream,
                    config->count == 1 && config->attributes->id == programmaticStreamSerialization &&
                        config->attributes->value,
                    {}};
  for (uint32_t size : fakeCuda().paramSizes.at(entry))
    launch.params.emplace_back(static_cast<const char *>(*params++), size);
  fakeCuda().launches.push_back(std::move(launch));
  return success;
}
}
#pragma GCC visibility pop
