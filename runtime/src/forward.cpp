#include "bundle.h"
#include "work.h"
#include <algorithm>
#include <climits>

namespace gdn {
namespace {

gdn_status checkBundle(const gdn_bundle *bundle) {
  return bundle ? GDN_OK : fail(GDN_INVALID_ARGUMENT, "bundle: expected a bundle, got NULL");
}

gdn_status checkWorkspace(const gdn_forward_args &args, size_t needed) {
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

// `overlaps`: it may begin before the kernel that was launched before it has ended, for which it then waits itself.
gdn_status launchBlocks(const LoadableKernel &chosen, const Problem &problem, const Driver &driver, unsigned blocks,
                        bool overlaps, void *stream) {
  const Kernel &kernel = chosen.kernel();
  ParamBuffer params;
  GDN_TRY(fillParams(chosen.plan(), problem, driver, params));
  constexpr int capturesOverlap = 12030; // the first driver that keeps the attribute in a graph
  CUlaunchAttribute attribute{cu::overlapsPrevious, 1, {}};
  CUlaunchConfig config{{blocks, 1, 1},     {kernel.threads, 1, 1},
                        kernel.sharedBytes, static_cast<CUstream>(stream),
                        &attribute,         overlaps && driver.version >= capturesOverlap};
  CUresult result = driver.cuLaunchKernelEx(&config, chosen.function(), params.pointers, nullptr);
  if (result == cu::success)
    return GDN_OK;
  return driver.check(result, ("cuLaunchKernelEx of '" + kernel.entry + "'").c_str());
}

int64_t items(const Kernel &kernel, const Shape &shape) { return shape.sequences * shape.headsV * kernel.key.split; }

gdn_status checkItems(int64_t items) {
  if (items <= INT_MAX)
    return GDN_OK;
  return fail(GDN_INVALID_ARGUMENT, "sequences * heads_v * split: expected at most %d, got %lld", INT_MAX,
              static_cast<long long>(items));
}

gdn_status checkRows(const LoadableKernel &kernel, const Problem &problem) {
  if (!problem.sinkRows || kernel.plan().takesRows)
    return GDN_OK;
  return fail(GDN_UNSUPPORTED,
              "read_indices and write_indices: expected NULL, which the kernel takes alone, got addresses");
}

// A block an SM where work is cut; else no more than there are tiles.
gdn_status launch(const LoadableKernel &chosen, const Problem &problem, const Driver &driver, const Device &device,
                  void *stream) {
  const Kernel &kernel = chosen.kernel();
  int64_t blocks = problem.planned ? problem.plan.blocks : std::min<int64_t>(device.sms, items(kernel, problem.shape));
  return launchBlocks(chosen, problem, driver, static_cast<unsigned>(blocks), problem.planned, stream);
}

// A call that is taken, with what it launches; without a kernel, nothing.
struct Call {
  gdn_forward_args args;
  Problem problem;
  size_t workspaceBytes;
  const Driver *driver;
  const Device *device;
  LoadableKernel *kernel = nullptr, *planner = nullptr;
  LoadableKernel *halves = nullptr; // to which the planner may leave the work of `kernel`
};

// First what the bundle lacks, then what is wrong with tensors.
gdn_status readCall(gdn_bundle *bundle, const gdn_forward_args *given, Call &call) {
  GDN_TRY(checkBundle(bundle));
  GDN_TRY(readArgs(given, call.args));
  GDN_TRY(readShape(call.args, call.problem.shape));
  GDN_TRY(workspaceBytes(*bundle, call.problem.shape, call.workspaceBytes));
  return readTensors(call.args, call.problem);
}

gdn_status chooseKernels(gdn_bundle &bundle, Call &call) {
  if (call.problem.empty())
    return GDN_OK;
  GDN_TRY(Driver::get(call.driver));
  CUdevice ordinal;
  GDN_TRY(call.driver->currentDevice(ordinal));
  call.device = &call.driver->devices[static_cast<size_t>(ordinal)];
  GDN_TRY(checkProfile(call.args, *call.device));
  GDN_TRY(selectKernel(bundle, call.problem.shape, *call.device, call.kernel));
  GDN_TRY(checkItems(items(call.kernel->kernel(), call.problem.shape)));
  GDN_TRY(checkRows(*call.kernel, call.problem));
  GDN_TRY(call.kernel->prepare(*call.driver, ordinal));
  placeWork(*call.kernel, *call.device, call.problem);
  if (!call.problem.planned)
    return GDN_OK;
  if (call.problem.shape.split == 0 && halvesOf(call.problem.shape, call.device->sms) == Halves::Perhaps) {
    Shape halves = call.problem.shape;
    halves.split = 2;
    call.halves = findKernel(bundle, halves, *call.device);
  }
  if (call.halves) {
    call.problem.plan.flags |= work::Halves;
    GDN_TRY(call.halves->prepare(*call.driver, ordinal));
  }
  GDN_TRY(selectPlanner(bundle, *call.device, call.planner));
  return call.planner->prepare(*call.driver, ordinal);
}

gdn_status forward(gdn_bundle *bundle, const gdn_forward_args *given) {
  Call call;
  GDN_TRY(readCall(bundle, given, call));
  GDN_TRY(checkWorkspace(call.args, call.workspaceBytes));
  GDN_TRY(chooseKernels(*bundle, call));
  void *stream = call.args.stream;
  if (call.planner)
    GDN_TRY(launchBlocks(*call.planner, call.problem, *call.driver, plannerBlocks(call.problem.plan), false, stream));
  for (const LoadableKernel *kernel : {call.halves, call.kernel})
    if (kernel)
      GDN_TRY(launch(*kernel, call.problem, *call.driver, *call.device, stream));
  return GDN_OK;
}

gdn_status check(gdn_bundle *bundle, const gdn_forward_args *given) {
  Call call;
  GDN_TRY(readCall(bundle, given, call));
  return chooseKernels(*bundle, call);
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

gdn_status gdn_forward_check(gdn_bundle *bundle, const gdn_forward_args *args) {
  return gdn::guarded([&] { return gdn::check(bundle, args); });
}

gdn_status gdn_forward(gdn_bundle *bundle, const gdn_forward_args *args) {
  return gdn::guarded([&] { return gdn::forward(bundle, args); });
}
