#include "tools/gdnc/Run.h"
#include "tests/device/call.h"
#include "tests/reference/compare.h"
#include "tests/reference/generate.h"
#include "tools/gdnc/Common.h"
#include <cstdlib>

using namespace gdnc;
namespace reference = gdn::reference;

namespace {

double timeLaunches(const gdn::gpu::Gpu &gpu, gdn::device::Call &call, int launches) {
  gdn::gpu::Event begin(gpu), end(gpu);
  begin.record();
  for (int i = 0; i < launches; ++i)
    call.launch();
  end.record();
  gpu.synchronize();
  return end.millisecondsSince(begin) / launches;
}

// One kernel of the bundle.
RunResult runKernel(const gdn::gpu::Gpu &gpu, const gdn::gpu::Bundle &bundle, size_t index,
                    const reference::Problem &problem, const reference::Result &wanted) {
  gdn_kernel_info info = bundle.kernel(index);
  gdn::device::Storage storage;
  storage.valueFirst = info.state_layout == GDN_V_FIRST;
  storage.split = static_cast<uint32_t>(info.split);
  storage.aligned = true;
  gdn::device::Call call(gpu, bundle, problem, storage);
  RunResult result;
  result.kernel = index;
  if (gpu.isEmulator())
    gpu.takeWork(/*counts=*/true);
  gdn::device::Outcome got = call.run(); // also loads the kernel, which is not to be timed
  if (gpu.isEmulator())
    result.work = gpu.takeWork(/*counts=*/false);
  else
    result.milliseconds = timeLaunches(gpu, call, 10);
  reference::Error output = reference::compare(wanted.output, got.output, problem.valueHeads, problem.valueDim);
  reference::Error state = reference::compare(wanted.state, got.state, problem.valueHeads, problem.stateSize());
  result.outputError = output.relative;
  result.stateError = state.relative;
  double bound = problem.io == gdn::ElementType::BF16 ? 5e-3 : 1e-3;
  result.accurate =
      output.relative <= bound && state.relative <= bound && output.faults().empty() && state.faults().empty();
  return result;
}

// The problem that a kernel is given, and what it is to give back. Neighbours in a bundle mostly share one.
struct Task {
  reference::Recipe recipe;
  reference::Problem problem;
  reference::Result wanted;

  static int64_t every(const gdn_kernel_info &info) { return info.features & GDN_CHECKPOINTS_AFTER ? 64 : 0; }

  void set(const gdn_kernel_info &info) {
    if (!wanted.output.empty() && recipe.io == gdn::ElementType(info.io) && recipe.keyDim == uint32_t(info.key_dim) &&
        recipe.valueDim == uint32_t(info.value_dim) && recipe.normalise == bool(info.features & GDN_NORMALISE_QK) &&
        recipe.every == every(info))
      return;
    recipe.every = every(info);
    recipe.normalise = info.features & GDN_NORMALISE_QK;
    recipe.keyNorm = recipe.queryNorm = recipe.normalise ? 4 : 1;
    recipe.io = gdn::ElementType(info.io);
    recipe.keyDim = static_cast<uint32_t>(info.key_dim);
    recipe.valueDim = static_cast<uint32_t>(info.value_dim);
    problem = reference::generate(recipe, /*seed=*/1);
    wanted = reference::recurrence(problem);
  }
};

} // namespace

void gdnc::useEmulator() { setenv("GDN_DRIVER", "emu", /*replace=*/1); }

RunReport gdnc::runForward(std::string_view bytes, uint32_t heads, uint32_t valueHeads, uint32_t tokens) try {
  gdn::gpu::Gpu gpu(0);
  gdn::gpu::Bundle bundle = gdn::gpu::Bundle::fromMemory(bytes);
  Task task;
  task.recipe.keyHeads = heads;
  task.recipe.valueHeads = valueHeads;
  task.recipe.lengths = {tokens};
  RunReport report{gpu.info().name, tokens, {}};
  for (size_t i = 0; i < bundle.size(); ++i) {
    gdn_kernel_info info = bundle.kernel(i);
    if (info.profile || info.operation != std::string("forward"))
      continue;
    task.set(info);
    report.results.push_back(runKernel(gpu, bundle, i, task.problem, task.wanted));
  }
  return report;
} catch (const gdn::gpu::Error &error) {
  throw Failure(EnvironmentError, "{}", error.what());
}
