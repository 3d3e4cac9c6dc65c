#include "tools/gdnc/Run.h"
#include "runtime/format/bundle.h"
#include "tests/device/call.h"
#include "tests/reference/compare.h"
#include "tests/reference/generate.h"
#include "tools/gdnc/Common.h"

using namespace gdnc;
namespace reference = gdn::reference;

namespace {

reference::Problem makeProblem(const Model &rank, uint32_t tokens, gdn::ElementType io) {
  reference::Recipe recipe;
  recipe.keyHeads = rank.keyHeads;
  recipe.valueHeads = rank.valueHeads;
  recipe.keyDim = rank.keyDim;
  recipe.valueDim = rank.valueDim;
  recipe.lengths = {tokens};
  recipe.io = io;
  return reference::generate(recipe, /*seed=*/1);
}

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
RunResult runKernel(const gdn::gpu::Gpu &gpu, const gdn::gpu::Bundle &bundle, const gdn_kernel_info &info,
                    const reference::Problem &problem, const reference::Result &wanted) {
  gdn::device::Storage storage;
  storage.valueFirst = info.state_layout == GDN_V_FIRST;
  storage.split = static_cast<uint32_t>(info.split);
  gdn::device::Call call(gpu, bundle, problem, storage);
  gdn::device::Outcome got = call.run(); // also loads the kernel, which is not to be timed
  reference::Error output = reference::compare(wanted.output, got.output, problem.valueHeads, problem.valueDim);
  reference::Error state = reference::compare(wanted.state, got.state, problem.valueHeads, problem.stateSize());
  RunResult result;
  result.io = gdn::describe(problem.io);
  result.state = storage.valueFirst ? "v-first" : "k-first";
  result.split = storage.split;
  result.outputError = output.relative;
  result.stateError = state.relative;
  double bound = problem.io == gdn::ElementType::BF16 ? 5e-3 : 1e-3;
  result.accurate =
      output.relative <= bound && state.relative <= bound && output.faults().empty() && state.faults().empty();
  result.milliseconds = timeLaunches(gpu, call, 10);
  return result;
}

} // namespace

RunReport gdnc::runForward(const std::string &path, const Model &rank, uint32_t tokens) try {
  gdn::gpu::Gpu gpu(0);
  gdn::gpu::Bundle bundle(path);
  RunReport report{gpu.info().name, tokens, {}};
  for (gdn::ElementType io : {gdn::ElementType::BF16, gdn::ElementType::F16}) {
    reference::Problem problem = makeProblem(rank, tokens, io);
    reference::Result wanted;
    for (size_t i = 0; i < bundle.size(); ++i) {
      gdn_kernel_info info = bundle.kernel(i);
      if (info.profile || info.io != static_cast<int32_t>(io))
        continue;
      if (wanted.output.empty())
        wanted = reference::recurrence(problem);
      report.results.push_back(runKernel(gpu, bundle, info, problem, wanted));
    }
  }
  return report;
} catch (const gdn::gpu::Error &error) {
  throw Failure(EnvironmentError, "{}", error.what());
}
