// Whether a call's work is cut over the blocks, and what of the workspace that takes: the host's side of format/work.h.
#pragma once
#include "bundle.h"
#include "format/work.h"

namespace gdn {

// Whether V is split over two blocks: uncut, or cut like any other work, where there is little for each block; or that
// is seen on the device alone.
enum class Halves : uint8_t { No, Uncut, Planned, Perhaps };
Halves halvesOf(const Shape &shape, int sms);

// The workspace of a kernel of its own, and with the plan's behind it where there may be one on a GPU of its
// architecture. GDN_INVALID_ARGUMENT where a plan would number more slots than it can.
gdn_status workspaceBytes(const LoadableKernel &kernel, const Shape &shape, size_t &bytes);

// Sets what a kernel that follows a plan is given; without one its items are the tiles, in the order of memory.
void placeWork(const LoadableKernel &kernel, const Device &device, Problem &problem);

// The blocks of the planner itself: more than one where it may read gates.
unsigned plannerBlocks(const work::Shape &shape);

} // namespace gdn
