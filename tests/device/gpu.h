// The CUDA driver, as far as the tests and the benchmark need it: opened at run time, like libgdn does. Every failure
// is an Error.
#pragma once
#include "gdn/gdn.h"
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace gdn::gpu {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Address = unsigned long long;

// The functions of the driver library that libgdn opened.
class Driver {
public:
  explicit Driver(const char *library);
  Driver(const Driver &) = delete;

  template <typename... Params> class Function {
  public:
    Function(const Driver &driver, const char *name) : driver(driver), name(name), code(driver.symbol(name)) {}
    explicit operator bool() const { return code; }
    void operator()(Params... params) const {
      if (!code)
        throw Error(std::string("the driver has no ") + name);
      if (int result = reinterpret_cast<int (*)(Params...)>(code)(params...))
        throw Error(driver.describe(name, result));
    }

  private:
    const Driver &driver;
    const char *name;
    void *code;
  };

private:
  void *symbol(const char *name) const;
  std::string describe(const char *name, int result) const;
  void *library;

public:
#define GDN_GPU_FUNCTION(name, ...) Function<__VA_ARGS__> name{*this, #name};
#include "tests/device/gpu.def"
#undef GDN_GPU_FUNCTION
};

// One device with its primary context current on the calling thread, and a stream.
class Gpu {
public:
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu &) = delete;

  const gdn_device_info &info() const { return description; }
  const Driver &driver() const { return table; }
  void *stream() const { return queue; }
  void synchronize() const { table.cuStreamSynchronize(queue); }
  bool hasGraphs() const { return bool(table.cuGraphLaunch); }
  bool hasModules() const { return bool(table.cuModuleLoadData); }
  size_t freeMemory() const;
  bool isEmulator() const { return bool(table.gdnEmulatorWork); }
  // Of the emulator alone: what its launches since the last call did, by name. Without `counts` the next ones count
  // their issue slots and nothing else.
  std::map<std::string, double> takeWork(bool counts) const;

private:
  gdn_device_info description;
  Driver table;
  int device = 0;
  void *context = nullptr, *queue = nullptr;
};

// Device memory.
class Memory {
public:
  Memory(const Gpu &gpu, size_t size);
  ~Memory();
  Memory(Memory &&from) : gpu(from.gpu), base(std::exchange(from.base, 0)), bytes(from.bytes) {}
  Memory &operator=(Memory &&) = delete;

  Address address() const { return base; }
  void *pointer(size_t offset = 0) const { return reinterpret_cast<void *>(base + offset); }
  size_t size() const { return bytes; }
  void fill(uint8_t value);
  void upload(const void *from, size_t size, size_t offset = 0);
  void download(void *to, size_t size, size_t offset = 0) const;

private:
  const Gpu &gpu;
  Address base = 0;
  size_t bytes;
};

// Work recorded once, launched many times.
class Graph {
public:
  template <typename Record> Graph(const Gpu &gpu, Record record) : gpu(gpu) {
    gpu.driver().cuStreamBeginCapture_v2(gpu.stream(), 0); // the strictest mode: forbidden calls fail
    try {
      record();
    } catch (...) {
      void *unused;
      gpu.driver().cuStreamEndCapture(gpu.stream(), &unused);
      throw;
    }
    finish();
  }
  ~Graph();
  Graph(const Graph &) = delete;
  void launch() const { gpu.driver().cuGraphLaunch(executable, gpu.stream()); }

private:
  void finish();
  const Gpu &gpu;
  void *graph = nullptr, *executable = nullptr;
};

class Event {
public:
  explicit Event(const Gpu &gpu) : gpu(gpu) { gpu.driver().cuEventCreate(&event, 0); }
  ~Event();
  Event(const Event &) = delete;
  void record() const { gpu.driver().cuEventRecord(event, gpu.stream()); }
  float millisecondsSince(const Event &begin) const;

private:
  const Gpu &gpu;
  void *event = nullptr;
};

// A kernel that deadlocks never returns: unless this is called again within `seconds`, the program prints `message` and
// ends with exit code 4. 0 seconds: no longer.
void watchdog(unsigned seconds, const std::string &message = "");

// Throws an Error with libgdn's message unless `status` is GDN_OK.
void check(gdn_status status, const char *what);

// A bundle, open as long as this lives.
class Bundle {
public:
  explicit Bundle(const std::string &path);
  static Bundle fromMemory(std::string_view bytes); // which stay as they are as long as it lives
  ~Bundle() { gdn_bundle_close(handle); }
  Bundle(const Bundle &) = delete;
  gdn_bundle *get() const { return handle; }
  size_t size() const { return gdn_bundle_kernel_count(handle); }
  gdn_kernel_info kernel(size_t index) const;

private:
  explicit Bundle(gdn_bundle *handle) : handle(handle) {}
  gdn_bundle *handle = nullptr;
};

} // namespace gdn::gpu
