#include "plan.h"
#include <algorithm>

namespace gdn {
namespace {

using Kind = KernelParam::Kind;

constexpr std::array<const char *, 22> batchNames = {
    "cu_seqlens",  "cu_wide",   "sequences", "length",    "tokens",  "heads",       "ratio", "work",
    "source_rows", "sink_rows", "wide_rows", "rows",      "starts",  "wide_starts", "every", "checkpoints",
    "skips",       "blocks",    "key_dim",   "value_dim", "columns", "plan_flags"};

constexpr std::array<const char *, 2> scalarNames = {"scale", "options"};

template <size_t N> bool find(const std::array<const char *, N> &names, const std::string &name, uint8_t &index) {
  auto it = std::find(names.begin(), names.end(), name);
  index = static_cast<uint8_t>(it - names.begin());
  return it != names.end();
}

int stridedAxes(ViewId id) {
  switch (id) {
  case ViewId::Clocks:
  case ViewId::Flags:
    return 1;
  case ViewId::Workspace:
  case ViewId::Slots:
  case ViewId::ALog:
  case ViewId::DtBias:
    return 0;
  default:
    return 2;
  }
}

bool isMatrix(ViewId id) { return id == ViewId::MHigh || id == ViewId::MLow; }

bool isMappable(const Kernel &kernel, const KernelParam &param, ViewId id) {
  bool ofKeys = id == ViewId::Q || id == ViewId::K || isMatrix(id), ofValues = id == ViewId::V || id == ViewId::O;
  return (ofKeys || ofValues) && param.element == kernel.key.io &&
         param.columns == (ofKeys ? kernel.key.keyDim : kernel.key.valueDim);
}

bool asksFor(const Kernel &kernel, Kind kind, const std::string &name, int axis = 0) {
  return std::any_of(kernel.params.begin(), kernel.params.end(), [&](const KernelParam &param) {
    return param.kind == kind && param.name == name && param.axis == axis;
  });
}

// What a kernel takes for granted of a view to which it has a pointer.
void resolvePointer(const Kernel &kernel, const KernelParam &param, ViewId id, PlanParam &out) {
  bool anyElement = id == ViewId::G || id == ViewId::Beta || id == ViewId::StateIn || id == ViewId::StateOut ||
                    id == ViewId::CheckpointsOut || id == ViewId::ALog || id == ViewId::DtBias;
  out.onlyF32 = anyElement && !asksFor(kernel, Kind::Element, param.name);
  if (id == ViewId::Clocks || id >= ViewId::Flags) // contiguous, as kernels know
    return;
  for (int axis = 0; axis < stridedAxes(id); ++axis)
    if (!asksFor(kernel, Kind::Stride, param.name, axis))
      out.unitAxes = static_cast<uint8_t>(out.unitAxes | 1 << axis);
}

gdn_status checkPointer(const PlanParam &param, const View &view) {
  if (!view.data)
    return GDN_OK;
  const char *name = viewNames[param.source];
  if (param.onlyF32 && view.element != ElementType::F32)
    return fail(GDN_UNSUPPORTED, "dtype of %s: expected GDN_F32, which the kernel takes alone, got %s", name,
                describe(view.element));
  for (size_t axis = 0; axis < view.strides.size(); ++axis)
    if (param.unitAxes >> axis & 1 && view.strides[axis] != 1)
      return fail(GDN_UNSUPPORTED, "stride of axis %zu of %s: expected 1, which the kernel takes alone, got %lld", axis,
                  name, static_cast<long long>(view.strides[axis]));
  return GDN_OK;
}

bool resolve(const Kernel &kernel, const KernelParam &param, PlanParam &out) {
  if (param.kind == Kind::Scalar)
    return find(scalarNames, param.name, out.source);
  if (param.kind == Kind::Batch)
    return find(batchNames, param.name, out.source);
  if (!find(viewNames, param.name, out.source))
    return false;
  auto id = static_cast<ViewId>(out.source);
  switch (param.kind) {
  case Kind::Pointer:
    resolvePointer(kernel, param, id, out);
    return true;
  case Kind::Map:
    return isMappable(kernel, param, id);
  case Kind::Stride:
    return param.axis < stridedAxes(id);
  case Kind::Element:
    return id != ViewId::Clocks && id != ViewId::Workspace && id < ViewId::Flags;
  default:
    return true;
  }
}

// The layout that KernelParam describes: rank 4, the rows of a box a dimension of their own.
gdn_status encodeMap(const PlanParam &param, const Problem &problem, const Driver &driver, CUtensorMap *map) {
  auto id = static_cast<ViewId>(param.source);
  const Shape &shape = problem.shape;
  const View &view = problem[id];
  bool ofKeys = id == ViewId::Q || id == ViewId::K || isMatrix(id);
  int64_t heads = isMatrix(id) ? 1 : ofKeys ? shape.heads : shape.headsV;
  int64_t rows = isMatrix(id) ? problem.matrixRows : shape.tokens;
  uint64_t rowBytes = static_cast<uint64_t>(view.strides[0]) * 2,
           headBytes = static_cast<uint64_t>(view.strides[1]) * 2;
  uint64_t dims[4] = {ofKeys ? shape.keyDim : shape.valueDim, static_cast<uint64_t>(heads), param.boxRows,
                      static_cast<uint64_t>(rows) + param.boxRows};
  uint64_t strides[3] = {headBytes, rowBytes, rowBytes};
  uint32_t box[4] = {param.boxColumns, 1, param.boxRows, 1}, steps[4] = {1, 1, 1, 1};
  // Without tokens or without a plan nothing is read or written, but a map wants an address: any will do.
  void *data = view.data ? view.data : problem[shape.tokens ? ViewId::O : ViewId::StateOut].data;
  auto base = reinterpret_cast<uintptr_t>(data) - param.boxRows * rowBytes;
  int type = shape.io == ElementType::BF16 ? cu::mapBfloat16 : cu::mapFloat16;
  CUresult result =
      driver.cuTensorMapEncodeTiled(map, type, 4, reinterpret_cast<void *>(base), dims, strides, box, steps,
                                    cu::interleaveNone, cu::swizzle128, cu::promotion256, cu::fillZeros);
  if (result == cu::success)
    return GDN_OK;
  return driver.check(result, (std::string("cuTensorMapEncodeTiled of '") + viewNames[param.source] + "'").c_str());
}

uint64_t batchValue(BatchField field, const Problem &problem) {
  const Shape &shape = problem.shape;
  switch (field) {
  case BatchField::Offsets:
    return reinterpret_cast<uint64_t>(problem.offsets);
  case BatchField::Wide:
    return problem.wideOffsets;
  case BatchField::Sequences:
    return static_cast<uint64_t>(shape.sequences);
  case BatchField::Length:
    return static_cast<uint64_t>(shape.length);
  case BatchField::Tokens:
    return static_cast<uint64_t>(shape.tokens);
  case BatchField::Heads:
    return static_cast<uint64_t>(shape.headsV);
  case BatchField::Ratio:
    return static_cast<uint64_t>(shape.headsV / shape.heads);
  case BatchField::Work:
    return reinterpret_cast<uint64_t>(problem.planAddress);
  case BatchField::SourceRows:
    return reinterpret_cast<uint64_t>(problem.sourceRows);
  case BatchField::SinkRows:
    return reinterpret_cast<uint64_t>(problem.sinkRows);
  case BatchField::WideRows:
    return problem.wideRows;
  case BatchField::Rows:
    return static_cast<uint64_t>(problem.rows);
  case BatchField::Starts:
    return reinterpret_cast<uint64_t>(problem.starts);
  case BatchField::WideStarts:
    return problem.wideStarts;
  case BatchField::Every:
    return static_cast<uint64_t>(problem.every);
  case BatchField::Checkpoints:
    return static_cast<uint64_t>(problem.checkpoints);
  case BatchField::Skips:
    return problem.skips;
  case BatchField::Blocks:
    return static_cast<uint64_t>(problem.plan.blocks);
  case BatchField::KeyDim:
    return shape.keyDim;
  case BatchField::ValueDim:
    return shape.valueDim;
  case BatchField::Columns:
    return static_cast<uint64_t>(problem.plan.columns);
  case BatchField::PlanFlags:
    return problem.plan.flags;
  }
  return 0;
}

} // namespace

gdn_status makePlan(const Kernel &kernel, LaunchPlan &plan) {
  size_t end = 0;
  for (const KernelParam &param : kernel.params) {
    PlanParam resolved;
    resolved.kind = param.kind;
    resolved.axis = param.axis;
    resolved.boxColumns = param.boxColumns;
    resolved.boxRows = param.boxRows;
    if (!resolve(kernel, param, resolved))
      return fail(GDN_BUNDLE_VERSION,
                  "%s: expected parameters that gdn %d.%d.%d can give, got '%s' of kind %d, axis %d",
                  describe(kernel.key).c_str(), GDN_VERSION_MAJOR, GDN_VERSION_MINOR, GDN_VERSION_PATCH,
                  param.name.c_str(), static_cast<int>(param.kind), param.axis);
    end = (end + param.alignment() - 1) / param.alignment() * param.alignment();
    resolved.offset = static_cast<uint16_t>(end);
    end += param.size();
    plan.params.push_back(resolved);
    auto is = [&](Kind kind, auto field) {
      return param.kind == kind && resolved.source == static_cast<uint8_t>(field);
    };
    plan.takesOptions |= is(Kind::Scalar, ScalarField::Options);
    plan.takesRows |= is(Kind::Batch, BatchField::SinkRows);
    plan.takesWork |= is(Kind::Batch, BatchField::Work);
  }
  return GDN_OK;
}

gdn_status fillParams(const LaunchPlan &plan, const Problem &problem, const Driver &driver, ParamBuffer &out) {
  if (problem.options && !plan.takesOptions)
    return fail(GDN_UNSUPPORTED, "flags and a_log: expected log decays and write strengths, which the kernel takes "
                                 "alone, got others");
  void **pointer = out.pointers;
  const CUtensorMap *encoded = nullptr;
  for (const PlanParam &param : plan.params) {
    char *slot = out.bytes + param.offset;
    *pointer++ = slot;
    uint64_t value = 0; // of which a parameter of four bytes is the low half; the next one overwrites the other
    switch (param.kind) {
    case Kind::Map: {
      auto *map = reinterpret_cast<CUtensorMap *>(slot);
      if (encoded && !problem.views[param.source].data) // of what is not touched, any map will do
        *map = *encoded;
      else
        GDN_TRY(encodeMap(param, problem, driver, map));
      encoded = map;
      continue;
    }
    case Kind::Pointer:
      GDN_TRY(checkPointer(param, problem.views[param.source]));
      value = reinterpret_cast<uint64_t>(problem.views[param.source].data);
      break;
    case Kind::Stride:
      value = static_cast<uint64_t>(problem.views[param.source].strides[param.axis]);
      break;
    case Kind::Element:
      value = static_cast<uint64_t>(problem.views[param.source].element);
      break;
    case Kind::Scalar:
      if (static_cast<ScalarField>(param.source) == ScalarField::Scale)
        std::memcpy(&value, &problem.scale, sizeof problem.scale);
      else
        value = problem.options;
      break;
    case Kind::Batch:
      value = batchValue(static_cast<BatchField>(param.source), problem);
      break;
    }
    std::memcpy(slot, &value, sizeof value);
  }
  return GDN_OK;
}

} // namespace gdn
