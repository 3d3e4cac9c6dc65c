// Whether a call's work is cut over the blocks, and what of the workspace that takes: the host's side of format/work.h.
#pragma once
#include "format/kernel.h"
#include "format/work.h"
#include "problem.h"

namespace gdn {

// Whether a launch of the kernel can follow a plan.
bool takesPlan(const Kernel &kernel);

// Whether V is split over two blocks: uncut, or cut like any other work, where there is little for each block; or that
// is seen on the device alone.
enum class Halves : uint8_t { No, Uncut, Planned, Perhaps };
Halves halvesOf(const Shape &shape, int sms);

// The workspace of a kernel of its own, and with the plan's behind it where there may be one on a GPU of its
// architecture.
size_t workspaceBytes(const Kernel &kernel, const Shape &shape);
// GDN_INVALID_ARGUMENT where a plan would number more slots than it can.
gdn_status checkWork(const Kernel &kernel, const Shape &shape);

// Sets what a kernel that follows a plan is given; without one its items are the tiles, in the order of memory.
void placeWork(const Kernel &kernel, const Device &device, Problem &problem);

// The blocks of the planner itself: more than one where it may read gates.
unsigned plannerBlocks(const work::Shape &shape);

} // namespace gdn
