// The functions of the CUDA driver that gdn's runtime, tests and benchmark call, on the emulator. One device of compute
// capability 9.0; everything is done when a call returns, but for what a graph records. Device memory is host memory,
// and kernels may use any host memory of the process too.
//
// A module is PTX: NUL-terminated text. A cubin is refused, in words.
#include "Device.h"
#include <chrono>
#include <cstring>
#include <utility>

using namespace gdn::emu::cuda;
namespace emu = gdn::emu;
using Address = unsigned long long;

namespace {

struct Event {
  std::chrono::steady_clock::time_point at;
};
int context;                               // its address stands for the primary context
thread_local bool contextIsCurrent = true; // who hands over host memory has made none

int load(Library **to, const void *image) {
  if (!to || !image)
    return Device::fail(invalidValue, "expected an image");
  if (!std::memcmp(image,
                   "\x7f"
                   "ELF",
                   4))
    return Device::fail(invalidImage, "expected PTX, got a cubin: the emulator needs a bundle built with --with-ptx");
  std::string error;
  auto library = std::make_unique<Library>();
  library->image = emu::loadPtx(static_cast<const char *>(image), error);
  if (!library->image)
    return Device::fail(invalidImage, error);
  *to = library.release();
  return success;
}

int entryOf(Entry **to, Library *library, const char *name) {
  auto &slot = library->entries[name];
  if (!slot) {
    auto entry = std::make_unique<Entry>(Entry{library, name, {}});
    std::string error;
    if (!emu::describeEntry(*library->image, name, entry->info, error))
      return Device::fail(notFound, error);
    slot = std::move(entry);
  }
  *to = slot.get();
  return success;
}

int copy(Stream *stream, void *to, const void *from, size_t bytes) {
  return Device::get().submit(stream, [=] {
    std::memmove(to, from, bytes);
    return int(success);
  });
}
template <class T> int set(Stream *stream, Address to, T value, size_t count) {
  return Device::get().submit(stream, [=] {
    for (size_t n = 0; n < count; n++)
      std::memcpy(reinterpret_cast<uint8_t *>(to) + n * sizeof(T), &value, sizeof(T));
    return int(success);
  });
}
void *pointer(Address address) { return reinterpret_cast<void *>(address); }

const struct {
  int status;
  const char *name, *words;
} statuses[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {outOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {invalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {invalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {notFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {launchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {notSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

// Values of CUdevice_attribute.
int attribute(int which) {
  switch (which) {
  case 1:
    return 1024; // threads of a block
  case 8:
    return 48 * 1024; // shared memory of a block without asking
  case 10:
    return 32; // warp
  case 13:
    return 1'000'000; // clock in kHz
  case 16:
    return int(Device::get().machine.multiprocessors); // multiprocessors
  case 39:
    return 2048; // threads of a multiprocessor
  case 41:
    return 1; // unified addressing
  case 75:
    return 9; // compute capability
  case 76:
    return 0;
  case 81:
    return 228 * 1024; // shared memory of a multiprocessor
  case 97:
    return 227 * 1024; // of a block that asks
  default:
    return 0;
  }
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) int

EXPORT cuInit(unsigned) { return success; }
EXPORT cuDriverGetVersion(int *version) { return *version = 13000, success; }
// The runtime hands modules over as PTX to a driver that has this function.
EXPORT gdnEmulatorVersion(int *version) { return *version = 1, success; }
// Visits every work count of the launches since the last call. Later launches count their issue slots alone unless
// `counts` is set: all of them takes time.
EXPORT gdnEmulatorWork(int counts, void (*visit)(void *to, const char *name, double value), void *to) {
  for (auto &[name, value] : Device::get().takeWork(counts))
    visit(to, name.c_str(), value);
  return success;
}

EXPORT cuGetErrorName(int status, const char **name) {
  for (auto &s : statuses)
    if (s.status == status)
      return *name = s.name, success;
  return *name = nullptr, invalidValue;
}
// The emulator's own words, where the thread's last failure has some.
EXPORT cuGetErrorString(int status, const char **words) {
  for (auto &s : statuses)
    if (s.status == status)
      return *words = status && !Device::message().empty() ? Device::message().c_str() : s.words, success;
  return *words = nullptr, invalidValue;
}

EXPORT cuDeviceGetCount(int *count) { return *count = 1, success; }
EXPORT cuDeviceGet(int *device, int ordinal) {
  return *device = ordinal, ordinal == 0 ? success : Device::fail(invalidValue, "the emulator has one device");
}
EXPORT cuDeviceGetName(char *name, int size, int) {
  std::strncpy(name, "gdn-emu sm_90a", size_t(size));
  return success;
}
EXPORT cuDeviceGetAttribute(int *value, int which, int) { return *value = attribute(which), success; }
EXPORT cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = Device::get().memoryBytes, success; }

EXPORT cuDevicePrimaryCtxRetain(void **to, int) { return *to = &context, success; }
EXPORT cuDevicePrimaryCtxRelease_v2(int) { return success; }
EXPORT cuCtxSetCurrent(void *which) { return contextIsCurrent = which, success; }
EXPORT cuCtxGetCurrent(void **to) { return *to = contextIsCurrent ? &context : nullptr, success; }
EXPORT cuCtxGetDevice(int *device) {
  return *device = 0, contextIsCurrent ? success : Device::fail(invalidContext, "no context is current");
}
EXPORT cuCtxSynchronize() { return success; }

EXPORT cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = *total = Device::get().memoryBytes;
  return success;
}
EXPORT cuMemAlloc_v2(Address *to, size_t bytes) {
  uint64_t address = 0;
  int status = Device::get().allocate(address, bytes);
  return *to = address, status;
}
EXPORT cuMemAllocAsync(Address *to, size_t bytes, Stream *) { return cuMemAlloc_v2(to, bytes); }
EXPORT cuMemFree_v2(Address address) { return Device::get().release(address); }
EXPORT cuMemFreeAsync(Address address, Stream *) { return cuMemFree_v2(address); }
EXPORT cuMemcpyHtoD_v2(Address to, const void *from, size_t n) { return copy(nullptr, pointer(to), from, n); }
EXPORT cuMemcpyDtoH_v2(void *to, Address from, size_t n) { return copy(nullptr, to, pointer(from), n); }
EXPORT cuMemcpyDtoD_v2(Address to, Address from, size_t n) { return copy(nullptr, pointer(to), pointer(from), n); }
EXPORT cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t n, Stream *s) { return copy(s, pointer(to), from, n); }
EXPORT cuMemcpyDtoHAsync_v2(void *to, Address from, size_t n, Stream *s) { return copy(s, to, pointer(from), n); }
EXPORT cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, Stream *s) {
  return copy(s, pointer(to), pointer(from), n);
}
EXPORT cuMemsetD8_v2(Address to, unsigned char value, size_t n) { return set(nullptr, to, value, n); }
EXPORT cuMemsetD32_v2(Address to, unsigned value, size_t n) { return set(nullptr, to, value, n); }
EXPORT cuMemsetD8Async(Address to, unsigned char value, size_t n, Stream *s) { return set(s, to, value, n); }
EXPORT cuMemsetD32Async(Address to, unsigned value, size_t n, Stream *s) { return set(s, to, value, n); }

EXPORT cuStreamCreate(Stream **to, unsigned) { return *to = new Stream, success; }
EXPORT cuStreamDestroy_v2(Stream *stream) { return delete stream, success; }
EXPORT cuStreamSynchronize(Stream *) { return success; }
EXPORT cuStreamWaitEvent(Stream *, Event *, unsigned) { return success; }
EXPORT cuThreadExchangeStreamCaptureMode(int *) { return success; }
EXPORT cuStreamBeginCapture_v2(Stream *stream, int) {
  if (!stream || stream->recording)
    return Device::fail(invalidValue, "expected a stream of its own that is not recording");
  return stream->recording = new Graph, success;
}
EXPORT cuStreamEndCapture(Stream *stream, Graph **to) {
  *to = stream ? std::exchange(stream->recording, nullptr) : nullptr;
  return *to ? success : Device::fail(invalidValue, "the stream is not recording");
}
EXPORT cuGraphInstantiateWithFlags(Graph **to, Graph *graph, unsigned long long) {
  return *to = new Graph(*graph), success;
}
EXPORT cuGraphLaunch(Graph *graph, Stream *) {
  for (auto &work : graph->work)
    if (int status = work())
      return status;
  return success;
}
EXPORT cuGraphExecDestroy(Graph *graph) { return delete graph, success; }
EXPORT cuGraphDestroy(Graph *graph) { return delete graph, success; }

EXPORT cuEventCreate(Event **to, unsigned) { return *to = new Event, success; }
EXPORT cuEventDestroy_v2(Event *event) { return delete event, success; }
EXPORT cuEventRecord(Event *event, Stream *) { return event->at = std::chrono::steady_clock::now(), success; }
EXPORT cuEventSynchronize(Event *) { return success; }
EXPORT cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
  *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return success;
}

EXPORT cuLibraryLoadData(Library **to, const void *image, int *, void **, unsigned, int *, void **, unsigned) {
  return load(to, image);
}
EXPORT cuLibraryUnload(Library *library) { return delete library, success; }
EXPORT cuLibraryGetKernel(Entry **to, Library *library, const char *name) { return entryOf(to, library, name); }
EXPORT cuKernelSetAttribute(int, int, Entry *, int) { return success; }
EXPORT cuKernelGetFunction(Entry **to, Entry *kernel) { return *to = kernel, success; }
EXPORT cuModuleLoadData(Library **to, const void *image) { return load(to, image); }
EXPORT cuModuleUnload(Library *library) { return delete library, success; }
EXPORT cuModuleGetFunction(Entry **to, Library *library, const char *name) { return entryOf(to, library, name); }
EXPORT cuFuncSetAttribute(Entry *, int, int) { return success; }

EXPORT cuLaunchKernel(Entry *entry, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, Stream *stream, void **params, void **extra) {
  if (!entry || extra || (!params && !entry->info.paramBytes.empty()))
    return Device::fail(invalidValue, "expected a kernel and an array of its parameters' addresses");
  emu::Launch launch;
  launch.entry = entry->name;
  launch.grid = {gx, gy, gz};
  launch.block = {bx, by, bz};
  launch.sharedBytes = shared;
  for (size_t n = 0; n < entry->info.paramBytes.size(); n++) {
    auto *bytes = static_cast<const uint8_t *>(params[n]);
    launch.params.emplace_back(bytes, bytes + entry->info.paramBytes[n]);
  }
  Library *library = entry->library;
  return Device::get().submit(stream, [=] { return Device::get().launch(launch, *library); });
}

// Launches run one after the other, which every attribute allows.
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Stream *stream;
};
EXPORT cuLaunchKernelEx(const LaunchConfig *config, Entry *entry, void **params, void **extra) {
  const unsigned *grid = config->grid, *block = config->block;
  return cuLaunchKernel(entry, grid[0], grid[1], grid[2], block[0], block[1], block[2], config->sharedBytes,
                        config->stream, params, extra);
}

EXPORT cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *base, const uint64_t *dims,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                              int swizzle, int, int fill) {
  constexpr unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (type < 0 || type >= int(std::size(bytes)) || rank < 1 || rank > 5 || interleave)
    return Device::fail(invalidValue, "expected a known element type, a rank from 1 to 5 and no interleaving");
  emu::TensorMapSpec spec;
  spec.elementBytes = bytes[type];
  spec.elementType = unsigned(type);
  spec.rank = rank;
  spec.base = reinterpret_cast<uint64_t>(base);
  for (unsigned d = 0; d < rank; d++) {
    spec.dims[d] = dims[d];
    spec.box[d] = box[d];
    spec.elementStrides[d] = steps[d];
    if (d)
      spec.strides[d - 1] = strides[d - 1];
  }
  spec.swizzle = unsigned(swizzle);
  spec.fillNan = fill;
  std::string error = emu::encodeTensorMap(map, spec);
  return error.empty() ? success : Device::fail(invalidValue, error);
}
