// How a kernel is launched: its parameters, resolved from names when a bundle is opened, filled in at each call.
#pragma once
#include "format/bundle.h"
#include "problem.h"

namespace gdn {

enum class ScalarField : uint8_t { Scale, Options };
enum class BatchField : uint8_t {
  Offsets,
  Wide,
  Sequences,
  Length,
  Tokens,
  Heads,
  Ratio,
  Work,
  SourceRows,
  SinkRows,
  WideRows,
  Rows,
  Starts,
  WideStarts,
  Every,
  Checkpoints,
  Skips,
  Blocks,
  KeyDim,
  ValueDim,
  Columns,
  PlanFlags
};

struct PlanParam {
  KernelParam::Kind kind;
  uint8_t source = 0; // ViewId, BatchField or ScalarField
  uint8_t axis = 0;
  // Of a Pointer: what its view must be, since the kernel does not ask for it.
  bool onlyF32 = false;
  uint8_t unitAxes = 0; // bit by axis: stride 1
  uint16_t offset = 0;  // in the parameter buffer
  uint16_t boxColumns = 0, boxRows = 0;
};

struct LaunchPlan {
  std::vector<PlanParam> params;
  bool takesOptions = false, takesRows = false, takesWork = false; // the last: it can follow a plan
};

// Fails where a kernel takes what this version of the library cannot give.
gdn_status makePlan(const Kernel &kernel, LaunchPlan &plan);

// The parameters of one launch.
struct ParamBuffer {
  alignas(64) char bytes[maxParamBytes + sizeof(uint32_t)]; // the last, of four bytes, is written as eight
  void *pointers[maxParams];
};

gdn_status fillParams(const LaunchPlan &plan, const Problem &problem, const Driver &driver, ParamBuffer &out);

} // namespace gdn
