#include "bundle.h"
#include "work.h"
#include <algorithm>
#include <climits>

namespace gdn {
namespace {

gdn_status checkBundle(const gdn_bundle *bundle) {
  return bundle ? GDN_OK : fail(GDN_INVALID_ARGUMENT, "bundle: expected a bundle, got NULL");
}

gdn_status checkWorkspace(const gdn_bundle &bundle, const gdn_forward_args &args, const Shape &shape) {
  size_t needed;
  GDN_TRY(workspaceBytes(bundle, shape, needed));
  if (args.workspace_size < needed)
    return fail(GDN_WORKSPACE_TOO_SMALL, "workspace_size: expected at least %zu bytes, got %zu", needed,
                args.workspace_size);
  if (needed > 0 && !args.workspace)
    return fail(GDN_INVALID_ARGUMENT, "workspace: expected the address of %zu bytes, got NULL", needed);
  return GDN_OK;
}

gdn_status checkProfile(const gdn_forward_args &args, const Device &device) {
  size_t needed = static_cast<size_t>(device.sms) * GDN_PROFILE_ROWS * GDN_PROFILE_COLUMNS * sizeof(int64_t);
  if (!args.profile || args.profile_size >= needed)
    return GDN_OK;
  return fail(GDN_INVALID_ARGUMENT, "profile_size: expected at least %zu bytes for %d SMs, got %zu", needed, device.sms,
              args.profile_size);
}

gdn_status launchBlocks(const LoadableKernel &chosen, const Problem &problem, const Driver &driver, unsigned blocks,
                        void *stream) {
  const Kernel &kernel = chosen.kernel();
  ParamBuffer params;
  GDN_TRY(fillParams(chosen.plan(), problem, driver, params));
  CUresult result = driver.cuLaunchKernel(chosen.function(), blocks, 1, 1, kernel.threads, 1, 1, kernel.sharedBytes,
                                          static_cast<CUstream>(stream), params.pointers, nullptr);
  if (result == cu::success)
    return GDN_OK;
  return driver.check(result, ("cuLaunchKernel of '" + kernel.entry + "'").c_str());
}

// A block an SM where work is cut; else no more than there are tiles.
gdn_status launch(const LoadableKernel &chosen, const Problem &problem, const Driver &driver, const Device &device,
                  void *stream) {
  const Kernel &kernel = chosen.kernel();
  int64_t items = problem.shape.sequences * problem.shape.headsV * kernel.key.split;
  if (items > INT_MAX)
    return fail(GDN_INVALID_ARGUMENT, "sequences * heads_v * split: expected at most %d, got %lld", INT_MAX,
                static_cast<long long>(items));
  int64_t blocks = problem.planned ? problem.plan.blocks : std::min<int64_t>(device.sms, items);
  return launchBlocks(chosen, problem, driver, static_cast<unsigned>(blocks), stream);
}

gdn_status forward(gdn_bundle *bundle, const gdn_forward_args *given) {
  GDN_TRY(checkBundle(bundle));
  gdn_forward_args args;
  GDN_TRY(readArgs(given, args));
  Problem problem;
  GDN_TRY(readShape(args, problem.shape));
  GDN_TRY(checkWorkspace(*bundle, args, problem.shape)); // first what the bundle lacks, then what is wrong with tensors
  GDN_TRY(readTensors(args, problem));
  if (problem.empty())
    return GDN_OK;
  const Driver *driver;
  GDN_TRY(Driver::get(driver));
  CUdevice ordinal;
  GDN_TRY(driver->currentDevice(ordinal));
  const Device &device = driver->devices[static_cast<size_t>(ordinal)];
  GDN_TRY(checkProfile(args, device));
  LoadableKernel *kernel;
  GDN_TRY(selectKernel(*bundle, problem.shape, device, kernel));
  GDN_TRY(kernel->prepare(*driver, ordinal));
  placeWork(kernel->kernel(), device, problem);
  if (problem.planned) {
    LoadableKernel *planner;
    GDN_TRY(selectPlanner(*bundle, device, planner));
    GDN_TRY(planner->prepare(*driver, ordinal));
    GDN_TRY(launchBlocks(*planner, problem, *driver, plannerBlocks(problem.plan), args.stream));
  }
  return launch(*kernel, problem, *driver, device, args.stream);
}

} // namespace
} // namespace gdn

gdn_status gdn_forward_workspace_size(const gdn_bundle *bundle, const gdn_forward_args *args, size_t *bytes) {
  return gdn::guarded([&] {
    GDN_TRY(gdn::checkBundle(bundle));
    if (!bytes)
      return gdn::fail(GDN_INVALID_ARGUMENT, "bytes: expected an address, got NULL");
    gdn_forward_args read;
    GDN_TRY(gdn::readArgs(args, read));
    gdn::Shape shape;
    GDN_TRY(gdn::readShape(read, shape));
    return gdn::workspaceBytes(*bundle, shape, *bytes);
  });
}

gdn_status gdn_forward(gdn_bundle *bundle, const gdn_forward_args *args) {
  return gdn::guarded([&] { return gdn::forward(bundle, args); });
}
