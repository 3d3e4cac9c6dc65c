#include "work.h"
#include <algorithm>
#include <climits>

namespace gdn {
namespace {

size_t alignUp(size_t bytes) { return (bytes + 255) / 256 * 256; }

// SMs of the largest GPU of an architecture: so many blocks a workspace is made for, since the host asks without a
// driver. A larger one, not made yet, would use no more of its SMs.
int mostSms(int sm) {
  switch (sm) {
  case 90:
    return 132;
  case 100:
    return 148;
  case 103:
    return 160;
  case 120:
    return 188;
  case 121:
    return 48;
  default:
    return 192;
  }
}

size_t ownBytes(const Kernel &kernel, const Shape &shape) {
  return static_cast<size_t>(shape.sequences * shape.headsV) * kernel.workspaceBytes;
}

// Of a dense batch's sequences; 0 of a packed one, whose lengths the host does not know.
int denseLength(const Shape &shape) { return shape.packed ? 0 : static_cast<int>(shape.length); }

work::Shape planShape(const LoadableKernel &kernel, const Shape &shape, int sms) {
  const KernelKey &key = kernel.key();
  work::Shape plan{};
  plan.sequences = static_cast<int>(shape.sequences);
  plan.tokens = static_cast<int>(shape.tokens);
  plan.heads = static_cast<int>(shape.headsV);
  plan.keyDim = static_cast<int>(key.keyDim);
  plan.valueDim = static_cast<int>(key.valueDim);
  plan.columns = static_cast<int>(key.valueDim / key.split);
  plan.blocks = std::min(sms, mostSms(kernel.sm()));
  bool warm = shape.mode != Mode::Exact && shape.normalised;
  plan.flags = (warm ? work::Warm : 0u) | (shape.mode == Mode::Fast ? work::Fast : 0u) |
               (shape.invariant ? work::Invariant : 0u);
  return plan;
}

bool isPlanned(const LoadableKernel &kernel, const Shape &shape, const work::Shape &plan) {
  bool leftUncut = shape.split == 0 && kernel.key().split == 2 && halvesOf(shape, plan.blocks) == Halves::Uncut;
  bool uncut = shape.mode == Mode::Off || shape.tokens == 0 || leftUncut;
  return kernel.plan().takesWork && !uncut && work::needsPlan(plan, denseLength(shape));
}

} // namespace

Halves halvesOf(const Shape &shape, int sms) {
  work::Shape plan{};
  plan.sequences = static_cast<int>(shape.sequences), plan.heads = static_cast<int>(shape.headsV), plan.blocks = sms;
  int64_t chunks = (shape.tokens + work::chunkTokens - 1) / work::chunkTokens;
  bool isDense = !shape.packed || shape.sequences == 1;
  int64_t each = (chunks + shape.sequences - 1) / shape.sequences, longest = isDense ? each : chunks;
  if (shape.invariant || 2 * shape.sequences * shape.headsV > sms)
    return Halves::No;
  if (work::leavesHalves(plan, longest, chunks))
    return Halves::Uncut;
  if (2 * chunks * shape.headsV <= 9 * int64_t(sms))
    return Halves::Planned;
  return !isDense && work::leavesHalves(plan, each, chunks) ? Halves::Perhaps : Halves::No;
}

gdn_status workspaceBytes(const LoadableKernel &kernel, const Shape &shape, size_t &bytes) {
  bytes = ownBytes(kernel.kernel(), shape);
  if (!kernel.plan().takesWork || shape.mode == Mode::Off)
    return GDN_OK;
  const work::Shape plan = planShape(kernel, shape, INT_MAX);
  const work::Layout layout = work::layout(plan, 2);
  if (!layout.fits())
    return fail(GDN_INVALID_ARGUMENT,
                "flags: expected at most %d cuts with GDN_CUT_INVARIANT, got %lld tokens of %lld heads",
                work::matrixBase, static_cast<long long>(shape.tokens), static_cast<long long>(shape.headsV));
  // Fewer blocks need a plan no sooner where tiles are many; where they are few, they may.
  bool mayNeed = plan.tiles() < 16ll * plan.blocks || work::needsPlan(plan, denseLength(shape));
  if (shape.tokens > 0 && mayNeed)
    bytes = alignUp(bytes) + static_cast<size_t>(layout.bytes);
  return GDN_OK;
}

void placeWork(const LoadableKernel &kernel, const Device &device, Problem &problem) {
  problem.plan = planShape(kernel, problem.shape, device.sms);
  if (const void *state = problem[ViewId::StateIn].data; state && state == problem[ViewId::StateOut].data)
    problem.plan.flags |= work::InPlace;
  problem.planned = isPlanned(kernel, problem.shape, problem.plan);
  int64_t keyDim = kernel.key().keyDim;
  problem[ViewId::Flags].strides = {work::flagWords};
  problem[ViewId::MHigh].strides = problem[ViewId::MLow].strides = {keyDim, keyDim};
  if (!problem.planned)
    return;
  const work::Layout at = work::layout(problem.plan, 2);
  char *workspace =
      static_cast<char *>(problem[ViewId::Workspace].data) + alignUp(ownBytes(kernel.kernel(), problem.shape));
  problem.planAddress = workspace;
  problem[ViewId::Flags].data = workspace + at.flags;
  problem[ViewId::Slots].data = workspace + at.slotValues;
  problem[ViewId::MHigh].data = workspace + at.high;
  problem[ViewId::MLow].data = workspace + at.low;
  problem.matrixRows = at.matrices * keyDim;
}

unsigned plannerBlocks(const work::Shape &shape) {
  if (!(shape.flags & work::Warm))
    return 1;
  return static_cast<unsigned>(std::min<int64_t>(shape.blocks, work::unitsOf(shape, work::windowOf(shape))));
}

} // namespace gdn
