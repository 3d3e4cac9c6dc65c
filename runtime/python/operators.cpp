// gdn_forward as an operator of torch, through torch's stable ABI: one library for every torch from 2.10 on.
#define USE_CUDA // declares the functions that a torch without CUDA lacks; the one used here is weak
#include <algorithm>
#include <array>
#include <gdn/gdn.h>
#include <stdexcept>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#pragma weak aoti_torch_get_current_cuda_stream

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

gdn_bundle *bundle = nullptr;
bool emulated = false;

void check(gdn_status status) {
  if (status != GDN_OK)
    throw std::runtime_error(gdn_last_error_message());
}

gdn_dtype dtypeOf(const Tensor &tensor) {
  switch (tensor.scalar_type()) {
  case ScalarType::Float:
    return GDN_F32;
  case ScalarType::BFloat16:
    return GDN_BF16;
  case ScalarType::Half:
    return GDN_F16;
  case ScalarType::Int:
    return GDN_INT32;
  case ScalarType::Long:
    return GDN_INT64;
  default:
    throw std::runtime_error("expected a tensor of a dtype of gdn.h, got one of another");
  }
}

// Describes tensors to libgdn, once their sizes, device and strides are such that the kernel stays within them; libgdn
// checks all else. gdnc.forward, whose _check.py has more words, says what does not fit.
class Reader {
public:
  explicit Reader(const Tensor &q) : device(q.device()) { require(device.is_cpu() == emulated && q.dim() == 4, "q"); }

  gdn_tensor tensor(const char *name, const Tensor &tensor, std::initializer_list<int64_t> sizes) const {
    Strides strides = check(name, tensor, sizes, 1);
    return {tensor.data_ptr(), strides[0], strides[1], strides[2], dtypeOf(tensor)};
  }

  // [rows, heads, matrix]; -1: any number of rows.
  gdn_state state(const char *name, const std::optional<Tensor> &state, int64_t rows,
                  const std::array<int64_t, 3> &rest) const {
    if (!state)
      return {};
    rows = rows < 0 && state->dim() == 4 ? state->size(0) : rows;
    Strides strides = check(name, *state, {rows, rest[0], rest[1], rest[2]}, 2);
    return {state->data_ptr(), strides[0], strides[1], dtypeOf(*state)};
  }

  // One of each sequence.
  const void *indices(const char *name, const std::optional<Tensor> &indices, int64_t sequences, int32_t &dtype) const {
    if (!indices)
      return nullptr;
    check(name, *indices, {sequences}, 1);
    require(dtype == 0 || dtype == dtypeOf(*indices), name);
    dtype = dtypeOf(*indices);
    return indices->data_ptr();
  }

  gdn_head_values headValues(const char *name, const std::optional<Tensor> &values, int64_t heads) const {
    if (!values)
      return {};
    check(name, *values, {heads}, 1);
    return {values->data_ptr(), dtypeOf(*values)};
  }

  int64_t offsets(const Tensor &offsets) const { // their number
    require(offsets.dim() == 1 && offsets.size(0) > 0, "cu_seqlens");
    check("cu_seqlens", offsets, {offsets.size(0)}, 1);
    return offsets.size(0);
  }

private:
  using Strides = torch::headeronly::IntHeaderOnlyArrayRef;

  static void require(bool fits, const char *name) {
    if (!fits)
      throw std::runtime_error(std::string(name) +
                               ": expected what gdnc.forward takes, got another shape, device or strides");
  }

  // The last `dense` dimensions are contiguous.
  Strides check(const char *name, const Tensor &tensor, std::initializer_list<int64_t> sizes, size_t dense) const {
    Strides strides = tensor.strides();
    require(std::ranges::equal(tensor.sizes(), sizes) && tensor.device() == device, name);
    int64_t stride = 1;
    for (size_t axis = sizes.size(); axis-- > sizes.size() - dense; stride *= sizes.begin()[axis])
      require(strides[axis] == stride || sizes.begin()[axis] <= 1, name);
    return strides;
  }

  torch::stable::Device device;
};

// What the kernel needs of memory; empty for none.
std::optional<Tensor> makeWorkspace(const Tensor &like, gdn_forward_args &args) {
  check(gdn_forward_workspace_size(bundle, &args, &args.workspace_size));
  if (args.workspace_size == 0)
    return std::nullopt;
  // Not by new_empty, which takes the way through torch's dispatcher again.
  int64_t size = static_cast<int64_t>(args.workspace_size), stride = 1;
  int32_t device;
  AtenTensorHandle handle;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device));
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_empty_strided(1, &size, &stride, aoti_torch_dtype_uint8(), device, like.get_device_index(), &handle));
  Tensor workspace(handle);
  args.workspace = workspace.data_ptr();
  return workspace;
}

void launchOnGpu(const Tensor &q, gdn_forward_args &args) {
  torch::stable::accelerator::DeviceGuard guard(q.get_device_index());
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(q.get_device_index(), &args.stream));
  gdn_status status = gdn_forward(bundle, &args);
  if (status == GDN_NO_CONTEXT) { // a thread whose first use of the GPU this is; any kernel of torch binds one
    torch::stable::new_zeros(q, {1});
    status = gdn_forward(bundle, &args);
  }
  check(status);
}

// States of sequences, or pools of them: what has no tensor has no indices.
void readStates(const Reader &read, const std::optional<Tensor> &initial, const std::optional<Tensor> &final,
                const std::optional<Tensor> &readIndices, const std::optional<Tensor> &writeIndices, int64_t sequences,
                const std::array<int64_t, 3> &sizes, gdn_forward_args &args) {
  args.initial_state = read.state("initial_state", initial, readIndices ? -1 : sequences, sizes);
  int64_t slots = readIndices && initial ? initial->size(0) : writeIndices ? -1 : sequences;
  args.final_state = read.state("final_state", final, slots, sizes);
  args.read_indices = read.indices("read_indices", readIndices, sequences, args.state_indices_dtype);
  args.write_indices = read.indices("write_indices", writeIndices, sequences, args.state_indices_dtype);
  if (readIndices || (writeIndices && final))
    args.state_slots = slots < 0 ? final->size(0) : slots;
}

void forward(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &g, const Tensor &beta, const Tensor &o,
             std::optional<Tensor> initialState, std::optional<Tensor> finalState, std::optional<Tensor> offsets,
             double scale, bool stateVFirst, int64_t split, int64_t flags, std::optional<Tensor> aLog,
             std::optional<Tensor> dtBias, std::optional<Tensor> readIndices, std::optional<Tensor> writeIndices,
             std::optional<Tensor> checkpoints, int64_t checkpointEvery, std::optional<Tensor> checkpointStarts) {
  Reader read(q);
  int64_t batch = q.size(0), tokens = q.size(1), heads = q.size(2), keyDim = q.size(3);
  int64_t headsV = g.size(-1), valueDim = v.size(-1), sequences = offsets ? read.offsets(*offsets) - 1 : batch;
  const std::array<int64_t, 3> states = {headsV, stateVFirst ? valueDim : keyDim, stateVFirst ? keyDim : valueDim};
  gdn_forward_args args = {};
  args.struct_size = sizeof args;
  args.batch = batch;
  args.tokens = tokens;
  args.heads = heads;
  args.heads_v = headsV;
  args.key_dim = keyDim;
  args.value_dim = valueDim;
  args.num_sequences = sequences;
  args.q = read.tensor("q", q, {batch, tokens, heads, keyDim});
  args.k = read.tensor("k", k, {batch, tokens, heads, keyDim});
  args.v = read.tensor("v", v, {batch, tokens, headsV, valueDim});
  args.o = read.tensor("o", o, {batch, tokens, headsV, valueDim});
  args.g = read.tensor("g", g, {batch, tokens, headsV});
  args.beta = read.tensor("beta", beta, {batch, tokens, headsV});
  readStates(read, initialState, finalState, readIndices, writeIndices, sequences, states, args);
  args.checkpoints = read.state("checkpoints", checkpoints, -1, states);
  args.checkpoint_rows = checkpoints ? checkpoints->size(0) : 0;
  args.checkpoint_every = checkpointEvery;
  args.checkpoint_starts = read.indices("checkpoint_starts", checkpointStarts, sequences, args.checkpoint_starts_dtype);
  args.state_layout = stateVFirst ? GDN_V_FIRST : GDN_K_FIRST;
  if (offsets) {
    args.cu_seqlens = offsets->data_ptr();
    args.cu_seqlens_dtype = dtypeOf(*offsets);
  }
  args.scale = static_cast<float>(scale);
  args.split = static_cast<uint32_t>(split);
  args.flags = static_cast<uint32_t>(flags);
  args.a_log = read.headValues("A_log", aLog, headsV);
  args.dt_bias = read.headValues("dt_bias", dtBias, headsV);
  std::optional<Tensor> workspace = makeWorkspace(q, args);
  if (q.is_cuda())
    launchOnGpu(q, args);
  else
    check(gdn_forward(bundle, &args));
}

} // namespace

// The bundle whose kernels are launched, which stays open, and whether on the emulator, in the CPU's memory.
extern "C" GDN_API void gdn_torch_use(gdn_bundle *opened, bool onEmulator) {
  bundle = opened;
  emulated = onEmulator;
}

STABLE_TORCH_LIBRARY(gdnc, m) {
  m.def("forward(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor(a!) o, Tensor? initial_state, "
        "Tensor(b!)? final_state, Tensor? cu_seqlens, float scale, bool state_v_first, int split, int flags, "
        "Tensor? A_log, Tensor? dt_bias, Tensor? read_indices=None, Tensor? write_indices=None, "
        "Tensor(c!)? checkpoints=None, int checkpoint_every=0, Tensor? checkpoint_starts=None) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(gdnc, CUDA, m) { m.impl("forward", TORCH_BOX(&forward)); }

STABLE_TORCH_LIBRARY_IMPL(gdnc, CPU, m) { m.impl("forward", TORCH_BOX(&forward)); } // on the emulator
