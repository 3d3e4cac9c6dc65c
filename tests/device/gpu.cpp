#include "tests/device/gpu.h"
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

namespace gdn::gpu {

namespace {

gdn_device_info query(int ordinal) {
  gdn_device_info info = {};
  info.struct_size = sizeof(info);
  check(gdn_device_query(ordinal, &info), "gdn_device_query");
  return info;
}

char hung[256];

void onAlarm(int) {
  ssize_t written = write(STDERR_FILENO, hung, strlen(hung));
  _exit(written < 0 ? 1 : 4);
}

// Destructors run while another error is on its way, and after a fault on the device every call fails.
template <typename Call> void quietly(Call call) {
  try {
    call();
  } catch (const Error &) {
  }
}

} // namespace

Driver::Driver(const char *path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
  if (!library)
    throw Error(std::string("cannot open the driver: ") + dlerror());
}

void *Driver::symbol(const char *name) const { return dlsym(library, name); }

std::string Driver::describe(const char *name, int result) const {
  std::string text = std::string(name) + " failed with " + std::to_string(result);
  for (const char *words : {"cuGetErrorName", "cuGetErrorString"}) {
    const char *word = nullptr;
    if (auto *function = reinterpret_cast<int (*)(int, const char **)>(symbol(words)))
      function(result, &word);
    text += word ? std::string(": ") + word : "";
  }
  return text;
}

Gpu::Gpu(int ordinal) : description(query(ordinal)), table(description.driver_path) {
  table.cuInit(0);
  table.cuDeviceGet(&device, ordinal);
  table.cuDevicePrimaryCtxRetain(&context, device);
  table.cuCtxSetCurrent(context);
  table.cuStreamCreate(&queue, 1); // not ordered with the default stream
}

Gpu::~Gpu() {
  quietly([&] { table.cuStreamDestroy_v2(queue); });
  quietly([&] { table.cuDevicePrimaryCtxRelease_v2(device); });
}

size_t Gpu::freeMemory() const {
  size_t free = 0, total = 0;
  table.cuMemGetInfo_v2(&free, &total);
  return free;
}

std::map<std::string, double> Gpu::takeWork(bool counts) const {
  std::map<std::string, double> work;
  auto visit = [](void *to, const char *name, double value) {
    static_cast<std::map<std::string, double> *>(to)->emplace(name, value);
  };
  table.gdnEmulatorWork(counts, visit, &work);
  return work;
}

Memory::Memory(const Gpu &gpu, size_t size) : gpu(gpu), bytes(size) {
  if (size)
    gpu.driver().cuMemAlloc_v2(&base, size);
}

Memory::~Memory() {
  if (base)
    quietly([&] { gpu.driver().cuMemFree_v2(base); });
}

// The synchronous copies below are ordered with the default stream alone, hence the waits for ours.
void Memory::fill(uint8_t value) {
  gpu.synchronize();
  if (bytes)
    gpu.driver().cuMemsetD8_v2(base, value, bytes);
  gpu.driver().cuStreamSynchronize(nullptr);
}

void Memory::upload(const void *from, size_t size, size_t offset) {
  gpu.synchronize();
  if (size)
    gpu.driver().cuMemcpyHtoD_v2(base + offset, from, size);
  gpu.driver().cuStreamSynchronize(nullptr);
}

void Memory::download(void *to, size_t size, size_t offset) const {
  gpu.synchronize();
  if (size)
    gpu.driver().cuMemcpyDtoH_v2(to, base + offset, size);
}

void Graph::finish() {
  gpu.driver().cuStreamEndCapture(gpu.stream(), &graph);
  gpu.driver().cuGraphInstantiateWithFlags(&executable, graph, 0);
}

Graph::~Graph() {
  if (executable)
    quietly([&] { gpu.driver().cuGraphExecDestroy(executable); });
  if (graph)
    quietly([&] { gpu.driver().cuGraphDestroy(graph); });
}

Event::~Event() {
  quietly([&] { gpu.driver().cuEventDestroy_v2(event); });
}

float Event::millisecondsSince(const Event &begin) const {
  float milliseconds = 0;
  gpu.driver().cuEventElapsedTime(&milliseconds, begin.event, event);
  return milliseconds;
}

void watchdog(unsigned seconds, const std::string &message) {
  alarm(0);
  std::snprintf(hung, sizeof(hung), "%s: no result after %u seconds (a deadlock?)\n", message.c_str(), seconds);
  std::signal(SIGALRM, onAlarm);
  alarm(seconds);
}

void check(gdn_status status, const char *what) {
  if (status != GDN_OK)
    throw Error(std::string(what) + ": " + gdn_status_string(status) + ": " + gdn_last_error_message());
}

Bundle::Bundle(const std::string &path) { check(gdn_bundle_open(path.c_str(), &handle), path.c_str()); }

Bundle Bundle::fromMemory(std::string_view bytes) {
  gdn_bundle *handle = nullptr;
  check(gdn_bundle_from_memory(bytes.data(), bytes.size(), &handle), "gdn_bundle_from_memory");
  return Bundle(handle);
}

gdn_kernel_info Bundle::kernel(size_t index) const {
  gdn_kernel_info info = {};
  info.struct_size = sizeof(info);
  check(gdn_bundle_kernel_info(handle, index, &info), "gdn_bundle_kernel_info");
  return info;
}

} // namespace gdn::gpu
