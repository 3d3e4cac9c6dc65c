#include "problem.h"
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gdn {
namespace {

constexpr int64_t maxRows = (int64_t(1) << 31) - (int64_t(1) << 16); // kernels number rows in int32, chunks added
constexpr int64_t maxDim = 1 << 16;
constexpr int chunkTokens = work::chunkTokens;
constexpr int64_t strideBytesEnd = int64_t(1) << 40; // of a tensor map

constexpr uint32_t checkpointFlags = GDN_CHECKPOINTS_AFTER | GDN_CHECKPOINTS_BEFORE;
constexpr uint32_t knownFlags = GDN_CUT_MODES | GDN_CUT_INVARIANT | GDN_KEYS_NORMALISED | GDN_BETA_LOGITS |
                                GDN_BETA_DOUBLED | GDN_G_IS_DECAY | GDN_NORMALISE_QK | checkpointFlags;

int64_t bytesOf(ElementType type) { return type == ElementType::F32 ? 4 : 2; }

gdn_status checkRange(const char *what, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high)
    return GDN_OK;
  return fail(GDN_INVALID_ARGUMENT, "%s: expected %lld to %lld, got %lld", what, static_cast<long long>(low),
              static_cast<long long>(high), static_cast<long long>(value));
}

gdn_status checkAddress(const char *what, const char *field, const void *address, int64_t alignment) {
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment) == 0)
    return GDN_OK;
  return fail(GDN_INVALID_ARGUMENT, "%s%s: expected a multiple of %lld bytes, got %p", what, field,
              static_cast<long long>(alignment), address);
}

gdn_status wrongDtype(const char *what, const char *field, const char *expected, int32_t got) {
  constexpr const char *names[] = {"GDN_F32", "GDN_BF16", "GDN_F16", "GDN_INT32", "GDN_INT64"};
  return fail(GDN_INVALID_ARGUMENT, "%s%s: expected %s, got %s (%d)", what, field, expected,
              got >= GDN_F32 && got <= GDN_INT64 ? names[got] : "no gdn_dtype", got);
}

// A strided axis of a tensor.
struct Axis {
  const char *name;
  int64_t length;
  int64_t &stride;
};

// A tensor of two strided axes over contiguous runs of elements, as it is checked.
struct Strided {
  const char *name;
  Axis axes[2];
  int64_t run;
  int64_t elementBytes;
  int64_t alignment; // bytes; of strides
  bool written;
};

gdn_status checkStride(const Strided &tensor, const Axis &axis) {
  int64_t end = strideBytesEnd / tensor.elementBytes;
  if (axis.stride < 0 || axis.stride >= end)
    return fail(GDN_INVALID_ARGUMENT, "%s.%s: expected 0 to %lld elements, got %lld", tensor.name, axis.name,
                static_cast<long long>(end - 1), static_cast<long long>(axis.stride));
  if (axis.stride * tensor.elementBytes % tensor.alignment != 0)
    return fail(GDN_INVALID_ARGUMENT, "%s.%s: expected a multiple of %lld elements (%lld bytes), got %lld", tensor.name,
                axis.name, static_cast<long long>(tensor.alignment / tensor.elementBytes),
                static_cast<long long>(tensor.alignment), static_cast<long long>(axis.stride));
  return GDN_OK;
}

// Checks the strides. Those of axes of length 1 are replaced by the run's length, since tensor maps look even at them.
gdn_status checkStrides(Strided tensor) {
  for (Axis &axis : tensor.axes) {
    if (axis.length <= 1)
      axis.stride = tensor.run;
    else
      GDN_TRY(checkStride(tensor, axis));
  }
  if (!tensor.written)
    return GDN_OK;
  // The axis of smaller stride steps over a run, the other over all of the first.
  int small = tensor.axes[0].length > 1 && tensor.axes[0].stride < tensor.axes[1].stride ? 0 : 1;
  __int128 span = tensor.run;
  for (const Axis *axis : {&tensor.axes[small], &tensor.axes[1 - small]}) {
    if (axis->length <= 1)
      continue;
    if (axis->stride < span)
      return fail(GDN_INVALID_ARGUMENT,
                  "%s.%s: expected at least %lld elements, so that nothing is written twice, got %lld", tensor.name,
                  axis->name, static_cast<long long>(span), static_cast<long long>(axis->stride));
    span += __int128(axis->stride) * (axis->length - 1);
  }
  return GDN_OK;
}

struct TensorRule {
  ViewId id;
  const char *name;
  const gdn_tensor &tensor;
  int64_t heads, columns;
  bool io, written; // io: of the dtype of q, read or written in pieces of 16 bytes
};

gdn_status checkTensorDtype(const TensorRule &rule, ElementType io) {
  int32_t dtype = rule.tensor.dtype;
  if (rule.io && dtype != static_cast<int32_t>(io))
    return wrongDtype(rule.name, ".dtype", io == ElementType::BF16 ? "GDN_BF16 like q" : "GDN_F16 like q", dtype);
  if (dtype < GDN_F32 || dtype > GDN_F16)
    return wrongDtype(rule.name, ".dtype", "GDN_F32, GDN_BF16 or GDN_F16", dtype);
  return GDN_OK;
}

// The batch is one token axis: the step from one row of the batch to the next must be T token steps.
gdn_status packBatch(const TensorRule &rule, const gdn_forward_args &args, int64_t &tokenStride) {
  if (args.batch <= 1)
    return GDN_OK;
  if (args.tokens == 1)
    tokenStride = rule.tensor.batch_stride;
  int64_t packed;
  if (__builtin_mul_overflow(args.tokens, tokenStride, &packed) || rule.tensor.batch_stride != packed)
    return fail(GDN_INVALID_ARGUMENT,
                "%s.batch_stride: expected tokens * token_stride = %lld * %lld, so that the batch is one token axis, "
                "got %lld",
                rule.name, static_cast<long long>(args.tokens), static_cast<long long>(tokenStride),
                static_cast<long long>(rule.tensor.batch_stride));
  return GDN_OK;
}

gdn_status readTensor(const TensorRule &rule, const gdn_forward_args &args, Problem &problem) {
  GDN_TRY(checkTensorDtype(rule, problem.shape.io));
  View &view = problem[rule.id];
  view.element = static_cast<ElementType>(rule.tensor.dtype);
  if (problem.shape.tokens == 0) {
    view.strides = {rule.heads * rule.columns, rule.columns};
    return GDN_OK;
  }
  if (!rule.tensor.data)
    return fail(GDN_INVALID_ARGUMENT, "%s.data: expected a device address, got NULL", rule.name);
  int64_t elementBytes = bytesOf(view.element), alignment = rule.io ? 16 : elementBytes;
  GDN_TRY(checkAddress(rule.name, ".data", rule.tensor.data, alignment));
  view.data = rule.tensor.data;
  view.strides = {rule.tensor.token_stride, rule.tensor.head_stride};
  GDN_TRY(packBatch(rule, args, view.strides[0]));
  return checkStrides(
      {rule.name,
       {{"token_stride", problem.shape.tokens, view.strides[0]}, {"head_stride", rule.heads, view.strides[1]}},
       rule.columns,
       elementBytes,
       alignment,
       rule.written});
}

gdn_status readState(const char *name, const gdn_state &state, int64_t rows, bool written, const Shape &shape,
                     View &view) {
  if (!state.data)
    return GDN_OK;
  if (state.dtype < GDN_F32 || state.dtype > GDN_F16)
    return wrongDtype(name, ".dtype", "GDN_F32, GDN_BF16 or GDN_F16", state.dtype);
  view.element = static_cast<ElementType>(state.dtype);
  view.data = state.data;
  view.strides = {state.sequence_stride, state.head_stride};
  GDN_TRY(checkAddress(name, ".data", state.data, 16));
  return checkStrides({name,
                       {{"sequence_stride", rows, view.strides[0]}, {"head_stride", shape.headsV, view.strides[1]}},
                       int64_t(shape.keyDim) * shape.valueDim,
                       bytesOf(view.element),
                       16,
                       written});
}

// Integers on the device, of which one at least is not NULL.
gdn_status readIndices(const char *name, int32_t dtype,
                       std::initializer_list<std::pair<const char *, const void *>> all, bool &wide) {
  wide = dtype == GDN_INT64;
  if (dtype != GDN_INT32 && dtype != GDN_INT64)
    return wrongDtype(name, "", "GDN_INT32 or GDN_INT64", dtype);
  for (auto [what, address] : all)
    GDN_TRY(checkAddress(what, "", address, wide ? 8 : 4));
  return GDN_OK;
}

// Which rows of the states are whose.
gdn_status readRows(const gdn_forward_args &args, Problem &problem) {
  if (args.read_indices && !args.initial_state.data)
    return fail(GDN_INVALID_ARGUMENT, "read_indices: expected NULL without initial_state, got %p", args.read_indices);
  if (args.write_indices && !args.final_state.data)
    return fail(GDN_INVALID_ARGUMENT, "write_indices: expected NULL without final_state, got %p", args.write_indices);
  problem.sourceRows = args.read_indices;
  problem.sinkRows = args.write_indices ? args.write_indices : args.read_indices;
  if (!problem.sinkRows)
    return args.state_slots == 0 ? GDN_OK
                                 : fail(GDN_INVALID_ARGUMENT,
                                        "state_slots: expected 0 without read_indices and write_indices, got "
                                        "%lld",
                                        static_cast<long long>(args.state_slots));
  problem.rows = args.state_slots;
  GDN_TRY(checkRange("state_slots", args.state_slots, 1, INT32_MAX));
  return readIndices("state_indices_dtype", args.state_indices_dtype,
                     {{"read_indices", args.read_indices}, {"write_indices", args.write_indices}}, problem.wideRows);
}

gdn_status readStates(const gdn_forward_args &args, Problem &problem) {
  GDN_TRY(readRows(args, problem));
  View &in = problem[ViewId::StateIn], &out = problem[ViewId::StateOut];
  int64_t sequences = problem.shape.sequences;
  GDN_TRY(readState("initial_state", args.initial_state, problem.sourceRows ? problem.rows : sequences, false,
                    problem.shape, in));
  GDN_TRY(readState("final_state", args.final_state, problem.sinkRows ? problem.rows : sequences, true, problem.shape,
                    out));
  if (in.data && in.data == out.data && (in.strides != out.strides || in.element != out.element))
    return fail(GDN_INVALID_ARGUMENT, "final_state: expected the strides and dtype of initial_state, whose address it "
                                      "has, got others");
  return GDN_OK;
}

gdn_status readCheckpoints(const gdn_forward_args &args, Problem &problem) {
  const void *data = args.checkpoints.data;
  if (!(args.flags & checkpointFlags))
    return data ? fail(GDN_INVALID_ARGUMENT,
                       "checkpoints: expected NULL without GDN_CHECKPOINTS_AFTER or GDN_CHECKPOINTS_BEFORE, got %p",
                       data)
                : GDN_OK;
  if (args.checkpoint_every < chunkTokens || args.checkpoint_every % chunkTokens != 0)
    return fail(GDN_INVALID_ARGUMENT, "checkpoint_every: expected a multiple of %d tokens, got %lld", chunkTokens,
                static_cast<long long>(args.checkpoint_every));
  GDN_TRY(checkRange("checkpoint_rows", args.checkpoint_rows, 0, INT32_MAX));
  if (!data && args.checkpoint_rows > 0)
    return fail(GDN_INVALID_ARGUMENT, "checkpoints.data: expected the address of %lld rows, got NULL",
                static_cast<long long>(args.checkpoint_rows));
  if (!args.checkpoint_starts && args.cu_seqlens)
    return fail(GDN_INVALID_ARGUMENT, "checkpoint_starts: expected an address with cu_seqlens, got NULL");
  problem.skips = args.flags & GDN_CHECKPOINTS_AFTER;
  problem.every = std::min<int64_t>(args.checkpoint_every / chunkTokens, maxRows / chunkTokens);
  problem.checkpoints = args.checkpoint_rows;
  problem.starts = args.checkpoint_starts;
  if (problem.starts)
    GDN_TRY(readIndices("checkpoint_starts_dtype", args.checkpoint_starts_dtype,
                        {{"checkpoint_starts", args.checkpoint_starts}}, problem.wideStarts));
  return readState("checkpoints", args.checkpoints, args.checkpoint_rows, true, problem.shape,
                   problem[ViewId::CheckpointsOut]);
}

gdn_status readOffsets(const gdn_forward_args &args, Problem &problem) {
  if (!args.cu_seqlens)
    return GDN_OK;
  problem.offsets = args.cu_seqlens;
  return readIndices("cu_seqlens_dtype", args.cu_seqlens_dtype, {{"cu_seqlens", args.cu_seqlens}}, problem.wideOffsets);
}

gdn_status readSequences(const gdn_forward_args &args, Shape &shape) {
  if (args.cu_seqlens) {
    GDN_TRY(checkRange("batch of packed sequences", args.batch, 1, 1));
    GDN_TRY(checkRange("num_sequences", args.num_sequences, args.tokens > 0, maxRows));
    shape.sequences = args.num_sequences;
  } else if (args.num_sequences != 0 && args.num_sequences != args.batch) {
    return fail(GDN_INVALID_ARGUMENT, "num_sequences: expected batch (%lld) or 0 without cu_seqlens, got %lld",
                static_cast<long long>(args.batch), static_cast<long long>(args.num_sequences));
  } else {
    shape.sequences = args.batch;
  }
  return GDN_OK;
}

// One value a v-head.
gdn_status readHeadValues(const char *name, const gdn_head_values &values, View &view) {
  if (!values.data)
    return GDN_OK;
  if (values.dtype < GDN_F32 || values.dtype > GDN_F16)
    return wrongDtype(name, ".dtype", "GDN_F32, GDN_BF16 or GDN_F16", values.dtype);
  view.data = const_cast<void *>(values.data); // no kernel writes to it
  view.element = static_cast<ElementType>(values.dtype);
  return checkAddress(name, ".data", values.data, bytesOf(view.element));
}

// What g and beta hold.
gdn_status readOptions(const gdn_forward_args &args, Problem &problem) {
  bool raw = args.a_log.data != nullptr, decay = args.flags & GDN_G_IS_DECAY;
  if (raw && decay)
    return fail(GDN_INVALID_ARGUMENT, "a_log: expected NULL with GDN_G_IS_DECAY, got %p", args.a_log.data);
  if (!raw && args.dt_bias.data)
    return fail(GDN_INVALID_ARGUMENT, "dt_bias: expected NULL without a_log, got %p", args.dt_bias.data);
  GDN_TRY(readHeadValues("a_log", args.a_log, problem[ViewId::ALog]));
  GDN_TRY(readHeadValues("dt_bias", args.dt_bias, problem[ViewId::DtBias]));
  problem.options = (decay ? DecayGiven : 0u) | (raw ? GateRaw : 0u) |
                    (args.flags & GDN_BETA_LOGITS ? BetaLogits : 0u) |
                    (args.flags & GDN_BETA_DOUBLED ? BetaDoubled : 0u);
  return GDN_OK;
}

gdn_status readFlags(uint32_t flags, Shape &shape) {
  if (flags & ~knownFlags)
    return fail(GDN_INVALID_ARGUMENT, "flags: expected bits of 0x%x, got 0x%x", knownFlags, flags);
  shape.mode = static_cast<Mode>(flags & GDN_CUT_MODES);
  shape.invariant = flags & GDN_CUT_INVARIANT;
  shape.features =
      static_cast<uint8_t>((flags & GDN_NORMALISE_QK ? L2Norm : 0) | (flags & checkpointFlags ? Checkpoints : 0));
  shape.normalised = flags & GDN_KEYS_NORMALISED || (flags & GDN_NORMALISE_QK && flags & GDN_BETA_LOGITS);
  if ((flags & checkpointFlags) == checkpointFlags)
    return fail(GDN_INVALID_ARGUMENT,
                "flags: expected one of GDN_CHECKPOINTS_AFTER and GDN_CHECKPOINTS_BEFORE, got both");
  if (shape.mode == Mode::Off && shape.invariant)
    return fail(GDN_INVALID_ARGUMENT, "flags: expected one of GDN_CUT_OFF and GDN_CUT_INVARIANT, got both");
  if (shape.mode == Mode::Fast && !shape.normalised)
    return fail(GDN_INVALID_ARGUMENT, "flags: expected GDN_KEYS_NORMALISED with GDN_CUT_FAST, got none");
  return GDN_OK;
}

} // namespace

// Callers of later versions may set only what this version knows.
gdn_status readArgs(const gdn_forward_args *given, gdn_forward_args &args) {
  constexpr size_t first = offsetof(gdn_forward_args, stream) + sizeof args.stream; // of version 0.1.0
  GDN_TRY(checkSized("args", given, first));
  const char *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof args; i < given->struct_size; ++i)
    if (bytes[i] != 0)
      return fail(GDN_INVALID_ARGUMENT, "args.struct_size: expected %zu or zeros behind, got %zu with byte %zu set",
                  sizeof args, given->struct_size, i);
  args = {};
  std::memcpy(&args, given, std::min(given->struct_size, sizeof args));
  return GDN_OK;
}

gdn_status readShape(const gdn_forward_args &args, Shape &shape) {
  GDN_TRY(checkRange("batch", args.batch, 0, maxRows));
  GDN_TRY(checkRange("tokens", args.tokens, 0, maxRows));
  GDN_TRY(checkRange("batch * tokens", args.batch * args.tokens, 0, maxRows));
  GDN_TRY(checkRange("heads", args.heads, 1, maxDim));
  GDN_TRY(checkRange("heads_v", args.heads_v, 1, maxDim));
  if (args.heads_v % args.heads != 0)
    return fail(GDN_INVALID_ARGUMENT, "heads_v: expected a multiple of heads (%lld), got %lld",
                static_cast<long long>(args.heads), static_cast<long long>(args.heads_v));
  GDN_TRY(checkRange("key_dim", args.key_dim, 1, maxDim));
  GDN_TRY(checkRange("value_dim", args.value_dim, 1, maxDim));
  GDN_TRY(checkRange("state_layout", args.state_layout, GDN_K_FIRST, GDN_V_FIRST));
  GDN_TRY(readFlags(args.flags, shape));
  GDN_TRY(checkRange("split", args.split, 0, 64));
  if (args.q.dtype != GDN_BF16 && args.q.dtype != GDN_F16)
    return wrongDtype("q", ".dtype", "GDN_BF16 or GDN_F16", args.q.dtype);
  GDN_TRY(readSequences(args, shape));
  shape.length = args.tokens;
  shape.tokens = args.batch * args.tokens;
  shape.heads = args.heads;
  shape.headsV = args.heads_v;
  shape.keyDim = static_cast<uint32_t>(args.key_dim);
  shape.valueDim = static_cast<uint32_t>(args.value_dim);
  shape.split = args.split;
  shape.io = static_cast<ElementType>(args.q.dtype);
  shape.stateVFirst = args.state_layout == GDN_V_FIRST;
  shape.profile = args.profile != nullptr;
  shape.packed = args.cu_seqlens != nullptr;
  return GDN_OK;
}

gdn_status readTensors(const gdn_forward_args &args, Problem &problem) {
  int64_t heads = args.heads, headsV = args.heads_v, keyDim = args.key_dim, valueDim = args.value_dim;
  const TensorRule rules[] = {{ViewId::Q, "q", args.q, heads, keyDim, true, false},
                              {ViewId::K, "k", args.k, heads, keyDim, true, false},
                              {ViewId::V, "v", args.v, headsV, valueDim, true, false},
                              {ViewId::O, "o", args.o, headsV, valueDim, true, true},
                              {ViewId::G, "g", args.g, headsV, 1, false, false},
                              {ViewId::Beta, "beta", args.beta, headsV, 1, false, false}};
  for (const TensorRule &rule : rules)
    GDN_TRY(readTensor(rule, args, problem));
  GDN_TRY(readStates(args, problem));
  GDN_TRY(readCheckpoints(args, problem));
  GDN_TRY(readOffsets(args, problem));
  GDN_TRY(readOptions(args, problem));
  if (!std::isfinite(args.scale))
    return fail(GDN_INVALID_ARGUMENT, "scale: expected a finite number, got %g", static_cast<double>(args.scale));
  problem.scale = args.scale;
  GDN_TRY(checkAddress("profile", "", args.profile, 8));
  problem[ViewId::Clocks].data = args.profile;
  problem[ViewId::Clocks].strides = {8};
  GDN_TRY(checkAddress("workspace", "", args.workspace, 16));
  problem[ViewId::Workspace].data = args.workspace;
  return GDN_OK;
}

} // namespace gdn
