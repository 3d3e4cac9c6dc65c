// The handle of an open bundle, and its kernels in the driver.
#pragma once
#include "plan.h"
#include <atomic>
#include <deque>
#include <mutex>

namespace gdn {

// A kernel of the bundle, loaded when it is first needed.
class LoadableKernel {
public:
  LoadableKernel(const BundleKernel &bundled, LaunchPlan plan);
  ~LoadableKernel();
  LoadableKernel(const LoadableKernel &) = delete;

  const Kernel &kernel() const { return bundled_.kernel; }
  const KernelKey &key() const { return bundled_.kernel.key; }
  const LaunchPlan &plan() const { return plan_; }
  int sm() const { return sm_; } // of its architecture

  // How well the image suits a GPU of this compute capability: 0 not at all, 1 it is for its family, 2 for exactly it.
  int fitness(int capability) const;

  // Makes the kernel ready on a device; cheap if it is.
  gdn_status prepare(const Driver &driver, CUdevice device) {
    if (device < 64 && (ready_.load(std::memory_order_acquire) >> device & 1))
      return GDN_OK;
    return load(driver, device);
  }
  // The same, and loads the code into the current context, which the first launch in it would do otherwise.
  gdn_status load(const Driver &driver, CUdevice device);
  // Of a prepared kernel. The driver takes a kernel of a library for a function of the current context.
  CUfunction function() const { return reinterpret_cast<CUfunction>(handle_); }

private:
  gdn_status loadLibrary(const Driver &driver);

  const BundleKernel &bundled_;
  const LaunchPlan plan_;
  const int sm_;
  const bool family_;
  std::mutex mutex_;
  const Driver *driver_ = nullptr; // set once the library is loaded
  CUlibrary library_ = nullptr;
  CUkernel handle_ = nullptr;
  std::atomic<uint64_t> ready_ = 0; // a bit a device
};

// A file in memory.
class Mapping {
public:
  Mapping() = default;
  ~Mapping();
  Mapping(const Mapping &) = delete;
  gdn_status open(const char *path);
  std::string_view bytes() const { return {static_cast<const char *>(data_), size_}; }

private:
  void *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace gdn

struct gdn_bundle {
  gdn::Mapping file; // empty if the caller keeps the bytes
  gdn::Bundle content;
  std::deque<gdn::LoadableKernel> kernels;  // the forward kernels of `content`, in its order
  std::deque<gdn::LoadableKernel> planners; // its kernels that plan for them
};

namespace gdn {

// The kernel that serves a shape on a device, and how many work items it has: chosen by fitness, then the split.
gdn_status selectKernel(gdn_bundle &bundle, const Shape &shape, const Device &device, LoadableKernel *&chosen);
// The same, or null.
LoadableKernel *findKernel(gdn_bundle &bundle, const Shape &shape, const Device &device);

// The planner that fits the device best.
gdn_status selectPlanner(gdn_bundle &bundle, const Device &device, LoadableKernel *&chosen);

// The workspace that any kernel for the shape needs. GDN_UNSUPPORTED if the bundle has none for any device.
gdn_status workspaceBytes(const gdn_bundle &bundle, const Shape &shape, size_t &bytes);

// GDN_WRONG_DEVICE, naming the device and the architectures of the bundle.
gdn_status wrongDevice(const gdn_bundle &bundle, const Device &device);

} // namespace gdn
