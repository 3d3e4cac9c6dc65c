#include "bundle.h"
#include "work.h"
#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

namespace gdn {
namespace {

// In how many of the properties that callers choose a kernel differs from a shape.
int distance(const KernelKey &key, const Shape &shape) {
  return (key.keyDim != shape.keyDim) + (key.valueDim != shape.valueDim) + (key.io != shape.io) +
         (key.stateVFirst != shape.stateVFirst) + (key.profile != shape.profile) + (key.features != shape.features) +
         (shape.split != 0 && key.split != shape.split);
}

std::string describe(const Shape &shape) {
  return "K=" + std::to_string(shape.keyDim) + " V=" + std::to_string(shape.valueDim) + " " + gdn::describe(shape.io) +
         (shape.stateVFirst ? " v-first" : " k-first") + (shape.split ? " split=" + std::to_string(shape.split) : "") +
         describeFeatures(shape.features) + (shape.profile ? " profile" : "");
}

gdn_status unsupported(const gdn_bundle &bundle, const Shape &shape) {
  std::vector<std::pair<int, size_t>> ranked;
  std::string remedy, nearest;
  for (size_t i = 0; i < bundle.kernels.size(); ++i) {
    const KernelKey &key = bundle.kernels[i].key();
    ranked.emplace_back(distance(key, shape), i);
    if (ranked[i].first == 1 && key.features != shape.features && shape.features != 0)
      remedy = ", which gdnc build --features" + describeFeatures(shape.features) + " adds";
  }
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i < ranked.size() && i < 3; ++i)
    nearest += (i ? "; " : "") + gdn::describe(bundle.kernels[ranked[i].second].key());
  return fail(GDN_UNSUPPORTED, "expected a forward kernel for %s, got a bundle without%s; nearest: %s",
              describe(shape).c_str(), remedy.c_str(),
              nearest.empty() ? "none, it has no forward kernel" : nearest.c_str());
}

// Of two splits the better one: the larger if with both all work runs at once, the one that does if only one, else the
// smaller. Where work can be cut otherwise, that mostly does better than a larger split.
std::pair<bool, int64_t> splitRank(const LoadableKernel &kernel, const Shape &shape, const Device &device) {
  int64_t split = kernel.key().split;
  if (kernel.plan().takesWork && shape.mode != Mode::Off) {
    Halves halves = halvesOf(shape, device.sms);
    return {true, halves == Halves::Uncut || halves == Halves::Planned ? split : -split};
  }
  bool atOnce = shape.sequences * shape.headsV * split <= device.sms;
  return {atOnce, atOnce ? split : -split};
}

} // namespace

LoadableKernel *findKernel(gdn_bundle &bundle, const Shape &shape, const Device &device) {
  using Rank = std::tuple<int, std::pair<bool, int64_t>, uint32_t>; // fitness, split, chunk
  LoadableKernel *chosen = nullptr;
  Rank best;
  for (LoadableKernel &kernel : bundle.kernels) {
    int fitness = distance(kernel.key(), shape) == 0 ? kernel.fitness(device.capability) : 0;
    if (fitness == 0)
      continue;
    Rank rank{fitness, splitRank(kernel, shape, device), kernel.key().chunk};
    if (!chosen || rank > best)
      chosen = &kernel, best = rank;
  }
  return chosen;
}

gdn_status selectKernel(gdn_bundle &bundle, const Shape &shape, const Device &device, LoadableKernel *&chosen) {
  chosen = findKernel(bundle, shape, device);
  return chosen ? GDN_OK : wrongDevice(bundle, device);
}

gdn_status selectPlanner(gdn_bundle &bundle, const Device &device, LoadableKernel *&chosen) {
  chosen = nullptr;
  for (LoadableKernel &planner : bundle.planners)
    if (int fitness = planner.fitness(device.capability);
        fitness > 0 && (!chosen || fitness > chosen->fitness(device.capability)))
      chosen = &planner;
  return chosen
             ? GDN_OK
             : fail(GDN_UNSUPPORTED, "expected a planner for sm_%d beside a forward kernel that asks for one, got none",
                    device.capability);
}

gdn_status workspaceBytes(const gdn_bundle &bundle, const Shape &shape, size_t &bytes) {
  bool found = false;
  bytes = 0;
  for (const LoadableKernel &kernel : bundle.kernels) {
    if (distance(kernel.key(), shape) != 0)
      continue;
    found = true;
    size_t needed;
    GDN_TRY(workspaceBytes(kernel, shape, needed));
    bytes = std::max(bytes, needed);
  }
  return found ? GDN_OK : unsupported(bundle, shape);
}

gdn_status wrongDevice(const gdn_bundle &bundle, const Device &device) {
  std::string archs;
  for (const LoadableKernel &kernel : bundle.kernels)
    if (archs.find(kernel.key().arch) == archs.npos)
      archs += (archs.empty() ? "" : ", ") + kernel.key().arch;
  return fail(GDN_WRONG_DEVICE, "expected an image for sm_%d (%s), got a bundle with %s", device.capability,
              device.name.c_str(), archs.empty() ? "none" : archs.c_str());
}

} // namespace gdn
