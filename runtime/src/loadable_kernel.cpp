#include "bundle.h"

namespace gdn {
namespace {

// Loading is no part of a graph: lets it be while the calling thread captures one.
class OutsideCapture {
public:
  explicit OutsideCapture(const Driver &driver) : driver_(driver) { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideCapture() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCapture(const OutsideCapture &) = delete;

private:
  const Driver &driver_;
  int mode_ = cu::captureRelaxed;
};

} // namespace

LoadableKernel::LoadableKernel(const BundleKernel &bundled, LaunchPlan plan)
    : bundled_(bundled), plan_(std::move(plan)), sm_(static_cast<int>(smNumber(key().arch))),
      family_(key().arch.back() == 'f') {}

LoadableKernel::~LoadableKernel() {
  if (library_)
    driver_->cuLibraryUnload(library_);
}

int LoadableKernel::fitness(int capability) const {
  if (capability == sm_)
    return family_ ? 1 : 2;
  return family_ && capability / 10 == sm_ / 10 && capability > sm_;
}

gdn_status LoadableKernel::load(const Driver &driver, CUdevice device) {
  std::lock_guard lock(mutex_);
  OutsideCapture outside(driver);
  if (!library_)
    GDN_TRY(loadLibrary(driver));
  GDN_TRY(driver.check(
      driver.cuKernelSetAttribute(cu::maxDynamicSharedBytes, static_cast<int>(kernel().sharedBytes), handle_, device),
      "cuKernelSetAttribute of the dynamic shared memory"));
  CUfunction function; // only asked for to have the code loaded now
  GDN_TRY(driver.check(driver.cuKernelGetFunction(&function, handle_), "cuKernelGetFunction"));
  if (device < 64)
    ready_.fetch_or(uint64_t(1) << device, std::memory_order_release);
  return GDN_OK;
}

gdn_status LoadableKernel::loadLibrary(const Driver &driver) {
  int needed = static_cast<int>(minimumDriver(bundled_.elf.abi));
  if (driver.version < needed)
    return fail(GDN_DRIVER_TOO_OLD, "%s: expected a driver of CUDA %d.%d or later for ELF ABI %u, got CUDA %d.%d",
                describe(key()).c_str(), needed / 1000, needed % 1000 / 10, bundled_.elf.abi, driver.version / 1000,
                driver.version % 1000 / 10);
  if (driver.takesPtx && !bundled_.ptx)
    return fail(GDN_UNSUPPORTED, "%s: %s expected PTX beside the image, got none; build the bundle with --with-ptx",
                describe(key()).c_str(), driver.path.c_str());
  const BundleImage &image = driver.takesPtx ? *bundled_.ptx : bundled_.cubin;
  if (!image.intact())
    return fail(GDN_BUNDLE_CORRUPT, "%s: expected an image with hash %016llx, got other bytes", describe(key()).c_str(),
                static_cast<unsigned long long>(image.hash));
  std::string text; // PTX ends with a zero byte
  if (driver.takesPtx)
    text = image.bytes;
  const void *data = driver.takesPtx ? text.c_str() : image.bytes.data();
  CUlibrary library = nullptr;
  GDN_TRY(driver.check(driver.cuLibraryLoadData(&library, data, nullptr, nullptr, 0, nullptr, nullptr, 0),
                       "cuLibraryLoadData"));
  CUresult result = driver.cuLibraryGetKernel(&handle_, library, kernel().entry.c_str());
  if (result != cu::success) {
    driver.cuLibraryUnload(library);
    return driver.check(result, ("cuLibraryGetKernel of '" + kernel().entry + "'").c_str());
  }
  library_ = library;
  driver_ = &driver;
  return GDN_OK;
}

} // namespace gdn
