#include "bundle.h"
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gdn {

Mapping::~Mapping() {
  if (data_)
    munmap(data_, size_);
}

gdn_status Mapping::open(const char *path) {
  auto failed = [path](const char *what) { return fail(GDN_FILE_ERROR, "%s: %s: %s", path, what, strerror(errno)); };
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return failed("cannot be opened");
  struct stat status;
  gdn_status result = GDN_OK;
  if (fstat(file, &status) != 0)
    result = failed("cannot be read");
  else if (!S_ISREG(status.st_mode))
    result = fail(GDN_FILE_ERROR, "%s: expected a regular file, got another", path);
  else if (status.st_size > 0) { // an empty file has no mapping, and its contents are refused for being short
    void *data = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED)
      result = failed("cannot be mapped");
    else
      data_ = data, size_ = static_cast<size_t>(status.st_size);
  }
  close(file);
  return result;
}

namespace {

gdn_status readContent(const char *name, std::string_view bytes, gdn_bundle &bundle) {
  BundleResult<Bundle> content = parseBundle(bytes);
  if (!content)
    return fail(content.error().kind == BundleError::Version ? GDN_BUNDLE_VERSION : GDN_BUNDLE_CORRUPT, "%s: %s", name,
                content.error().text.c_str());
  bundle.content = std::move(*content);
  for (const BundleKernel &kernel : bundle.content.kernels) {
    bool forward = kernel.kernel.key.operation == "forward";
    if (!forward && kernel.kernel.key.operation != "plan")
      continue;
    LaunchPlan plan;
    GDN_TRY(makePlan(kernel.kernel, plan));
    (forward ? bundle.kernels : bundle.planners).emplace_back(kernel, std::move(plan));
  }
  return GDN_OK;
}

gdn_status openBundle(const char *path, std::string_view bytes, gdn_bundle **out) {
  auto bundle = std::make_unique<gdn_bundle>();
  if (path) {
    GDN_TRY(bundle->file.open(path));
    bytes = bundle->file.bytes();
  }
  GDN_TRY(readContent(path ? path : "bundle in memory", bytes, *bundle));
  *out = bundle.release();
  return GDN_OK;
}

gdn_status loadAll(gdn_bundle &bundle) {
  const Driver *driver;
  GDN_TRY(Driver::get(driver));
  CUdevice device;
  GDN_TRY(driver->currentDevice(device));
  const Device &current = driver->devices[static_cast<size_t>(device)];
  bool found = false;
  for (LoadableKernel &kernel : bundle.kernels) {
    if (kernel.fitness(current.capability) == 0)
      continue;
    found = true;
    GDN_TRY(kernel.load(*driver, device)); // even where it is ready: the context may be a new one
  }
  for (LoadableKernel &planner : bundle.planners)
    if (planner.fitness(current.capability) > 0)
      GDN_TRY(planner.load(*driver, device));
  return found ? GDN_OK : wrongDevice(bundle, current);
}

gdn_kernel_info describeKernel(const BundleKernel &bundled) {
  const Kernel &kernel = bundled.kernel;
  gdn_kernel_info info{};
  info.operation = kernel.key.operation.c_str();
  info.arch = kernel.key.arch.c_str();
  info.schedule = kernel.schedule.c_str();
  info.key_dim = static_cast<int32_t>(kernel.key.keyDim);
  info.value_dim = static_cast<int32_t>(kernel.key.valueDim);
  info.chunk = static_cast<int32_t>(kernel.key.chunk);
  info.io = static_cast<int32_t>(kernel.key.io);
  info.state_layout = kernel.key.stateVFirst ? GDN_V_FIRST : GDN_K_FIRST;
  info.split = static_cast<int32_t>(kernel.key.split);
  info.profile = kernel.key.profile;
  info.threads = static_cast<int32_t>(kernel.threads);
  info.registers = static_cast<int32_t>(kernel.registers);
  info.spill_bytes = static_cast<int32_t>(kernel.spillBytes);
  info.stack_bytes = static_cast<int32_t>(kernel.stackBytes);
  info.shared_bytes = static_cast<int32_t>(kernel.sharedBytes);
  info.elf_abi = static_cast<int32_t>(bundled.elf.abi);
  info.min_driver = static_cast<int32_t>(minimumDriver(bundled.elf.abi));
  info.image_bytes = bundled.cubin.bytes.size();
  constexpr uint32_t checkpoints = GDN_CHECKPOINTS_AFTER | GDN_CHECKPOINTS_BEFORE;
  info.features = (kernel.key.features & L2Norm ? uint32_t(GDN_NORMALISE_QK) : 0) |
                  (kernel.key.features & Checkpoints ? checkpoints : 0);
  return info;
}

gdn_status nullArgument(const char *name) {
  return fail(GDN_INVALID_ARGUMENT, "%s: expected an address, got NULL", name);
}

} // namespace
} // namespace gdn

using namespace gdn;

gdn_status gdn_bundle_open(const char *path, gdn_bundle **bundle) {
  if (!bundle)
    return nullArgument("bundle");
  *bundle = nullptr;
  if (!path)
    return nullArgument("path");
  return guarded([&] { return openBundle(path, {}, bundle); });
}

gdn_status gdn_bundle_from_memory(const void *data, size_t size, gdn_bundle **bundle) {
  if (!bundle)
    return nullArgument("bundle");
  *bundle = nullptr;
  if (!data)
    return nullArgument("data");
  return guarded([&] { return openBundle(nullptr, {static_cast<const char *>(data), size}, bundle); });
}

void gdn_bundle_close(gdn_bundle *bundle) { delete bundle; }

gdn_status gdn_bundle_verify(const gdn_bundle *bundle) {
  if (!bundle)
    return nullArgument("bundle");
  return guarded([&] {
    std::string error = bundle->content.verify();
    return error.empty() ? GDN_OK : fail(GDN_BUNDLE_CORRUPT, "%s", error.c_str());
  });
}

gdn_status gdn_bundle_load(gdn_bundle *bundle) {
  if (!bundle)
    return nullArgument("bundle");
  return guarded([&] { return loadAll(*bundle); });
}

const char *gdn_bundle_metadata(const gdn_bundle *bundle) { return bundle ? bundle->content.metadata : ""; }

size_t gdn_bundle_kernel_count(const gdn_bundle *bundle) { return bundle ? bundle->content.kernels.size() : 0; }

gdn_status gdn_bundle_kernel_info(const gdn_bundle *bundle, size_t index, gdn_kernel_info *info) {
  if (!bundle)
    return nullArgument("bundle");
  GDN_TRY(checkSized("info", info, offsetof(gdn_kernel_info, features)));
  if (index >= bundle->content.kernels.size())
    return fail(GDN_INVALID_ARGUMENT, "index: expected below %zu, got %zu", bundle->content.kernels.size(), index);
  fillSized(info, describeKernel(bundle->content.kernels[index]));
  return GDN_OK;
}
