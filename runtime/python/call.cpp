#include "call.h"
#include <algorithm>
#include <array>
#include <gdn/gdn.h>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#define USE_CUDA // declares the functions that a torch without CUDA lacks; those used here are weak
#include <torch/csrc/stable/accelerator.h>

#pragma weak aoti_torch_get_current_cuda_stream
#pragma weak aoti_torch_cuda_caching_allocator_raw_alloc
#pragma weak aoti_torch_cuda_caching_allocator_raw_delete

namespace gdn::python {
namespace {

gdn_bundle *bundle = nullptr;
bool emulated = false;

void check(gdn_status status) {
  if (status != GDN_OK)
    throw std::runtime_error(gdn_last_error_message());
}

// Describes tensors to libgdn, once their sizes, device and strides are such that the kernel stays within them; libgdn
// checks all else. gdnc.forward, whose _check.py has more words, says what does not fit.
class Reader {
public:
  explicit Reader(const View &q) : device(q.device) {
    require(device.kind == (emulated ? Device::Cpu : Device::Cuda) && q.rank == 4, "q");
  }

  gdn_tensor tensor(const char *name, const View &view, std::initializer_list<int64_t> sizes) const {
    check(name, view, sizes, 1);
    return {view.data, view.strides[0], view.strides[1], view.strides[2], view.dtype};
  }

  // [rows, heads, matrix]; -1: any number of rows.
  gdn_state state(const char *name, const View &view, int64_t rows, const std::array<int64_t, 3> &rest) const {
    if (!view)
      return {};
    rows = rows < 0 && view.rank == 4 ? view.sizes[0] : rows;
    check(name, view, {rows, rest[0], rest[1], rest[2]}, 2);
    return {view.data, view.strides[0], view.strides[1], view.dtype};
  }

  // One of each sequence.
  const void *indices(const char *name, const View &view, int64_t sequences, int32_t &dtype) const {
    if (!view)
      return nullptr;
    check(name, view, {sequences}, 1);
    require(dtype == 0 || dtype == view.dtype, name);
    dtype = view.dtype;
    return view.data;
  }

  gdn_head_values headValues(const char *name, const View &view, int64_t heads) const {
    if (!view)
      return {};
    check(name, view, {heads}, 1);
    return {view.data, view.dtype};
  }

  int64_t offsets(const View &view) const { // their number
    require(view.rank == 1 && view.sizes[0] > 0, "cu_seqlens");
    check("cu_seqlens", view, {view.sizes[0]}, 1);
    return view.sizes[0];
  }

private:
  static void require(bool fits, const char *name) {
    if (!fits)
      throw std::runtime_error(std::string(name) +
                               ": expected what gdnc.forward takes, got another shape, dtype, device or strides");
  }

  // The last `dense` dimensions are contiguous.
  void check(const char *name, const View &view, std::initializer_list<int64_t> sizes, size_t dense) const {
    require(static_cast<int64_t>(sizes.size()) == view.rank && std::equal(sizes.begin(), sizes.end(), view.sizes) &&
                view.device == device && view.dtype >= 0,
            name);
    int64_t stride = 1;
    for (size_t axis = sizes.size(); axis-- > sizes.size() - dense; stride *= view.sizes[axis])
      require(view.strides[axis] == stride || view.sizes[axis] <= 1, name);
  }

  Device device;
};

// States of sequences, or pools of them: what has no tensor has no indices.
void readStates(const Reader &read, const Operands &x, int64_t sequences, const std::array<int64_t, 3> &sizes,
                gdn_forward_args &args) {
  args.initial_state = read.state("initial_state", x.initialState, x.readIndices ? -1 : sequences, sizes);
  int64_t slots = x.readIndices && x.initialState ? x.initialState.sizes[0] : x.writeIndices ? -1 : sequences;
  args.final_state = read.state("final_state", x.finalState, slots, sizes);
  args.read_indices = read.indices("read_indices", x.readIndices, sequences, args.state_indices_dtype);
  args.write_indices = read.indices("write_indices", x.writeIndices, sequences, args.state_indices_dtype);
  if (x.readIndices || (x.writeIndices && x.finalState))
    args.state_slots = slots < 0 ? x.finalState.sizes[0] : slots;
}

gdn_forward_args describe(const Operands &x) {
  Reader read(x.q);
  gdn_forward_args args = {};
  args.struct_size = sizeof args;
  int64_t batch = args.batch = x.q.sizes[0], tokens = args.tokens = x.q.sizes[1], heads = args.heads = x.q.sizes[2],
          keyDim = args.key_dim = x.q.sizes[3];
  int64_t headsV = args.heads_v = x.g.rank > 0 ? x.g.sizes[x.g.rank - 1] : 0,
          valueDim = args.value_dim = x.v.rank > 0 ? x.v.sizes[x.v.rank - 1] : 0,
          sequences = args.num_sequences = x.offsets ? read.offsets(x.offsets) - 1 : batch;
  args.q = read.tensor("q", x.q, {batch, tokens, heads, keyDim});
  args.k = read.tensor("k", x.k, {batch, tokens, heads, keyDim});
  args.v = read.tensor("v", x.v, {batch, tokens, headsV, valueDim});
  args.o = read.tensor("o", x.o, {batch, tokens, headsV, valueDim});
  args.g = read.tensor("g", x.g, {batch, tokens, headsV});
  args.beta = read.tensor("beta", x.beta, {batch, tokens, headsV});
  const std::array<int64_t, 3> states = {headsV, x.stateVFirst ? valueDim : keyDim, x.stateVFirst ? keyDim : valueDim};
  readStates(read, x, sequences, states, args);
  args.checkpoints = read.state("checkpoints", x.checkpoints, -1, states);
  args.checkpoint_rows = x.checkpoints ? x.checkpoints.sizes[0] : 0;
  args.checkpoint_every = x.checkpointEvery;
  args.checkpoint_starts =
      read.indices("checkpoint_starts", x.checkpointStarts, sequences, args.checkpoint_starts_dtype);
  args.state_layout = x.stateVFirst ? GDN_V_FIRST : GDN_K_FIRST;
  if (x.offsets) {
    args.cu_seqlens = x.offsets.data;
    args.cu_seqlens_dtype = x.offsets.dtype;
  }
  args.scale = static_cast<float>(x.scale);
  args.split = static_cast<uint32_t>(std::clamp<int64_t>(x.split, -1, INT32_MAX)); // none that is served, then
  args.flags = static_cast<uint32_t>(x.flags);
  args.a_log = read.headValues("A_log", x.aLog, headsV);
  args.dt_bias = read.headValues("dt_bias", x.dtBias, headsV);
  return args;
}

// Of torch's caching allocator, on the current device and for its current stream; not by a tensor, which takes longer.
struct Release {
  void operator()(void *data) const { aoti_torch_cuda_caching_allocator_raw_delete(data); }
};
std::unique_ptr<void, Release> allocate(size_t bytes) {
  void *data = nullptr;
  if (bytes > 0)
    TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_caching_allocator_raw_alloc(bytes, &data));
  return std::unique_ptr<void, Release>(data);
}

// A thread whose first use of a GPU this is has no context; any kernel of torch binds one.
void bindContext(int32_t device) {
  int64_t size = 1, stride = 1;
  AtenTensorHandle tensor;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, &size, &stride, aoti_torch_dtype_uint8(),
                                                  aoti_torch_device_type_cuda(), device, &tensor));
  AOTITorchError error = aoti_torch_zero_(tensor);
  aoti_torch_delete_tensor_object(tensor);
  TORCH_ERROR_CODE_CHECK(error);
}

// Calls a function of libgdn with so much workspace, on the device and its current stream.
void call(gdn_status (*function)(gdn_bundle *, const gdn_forward_args *), const Device &device,
          gdn_forward_args &args) {
  if (device.kind != Device::Cuda) {
    auto workspace = std::make_unique_for_overwrite<std::byte[]>(args.workspace_size);
    args.workspace = workspace.get();
    return check(function(bundle, &args));
  }
  torch::stable::accelerator::DeviceGuard guard(device.index);
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device.index, &args.stream));
  auto workspace = allocate(args.workspace_size);
  args.workspace = workspace.get();
  gdn_status status = function(bundle, &args);
  if (status == GDN_NO_CONTEXT) {
    bindContext(device.index);
    status = function(bundle, &args);
  }
  check(status);
}

} // namespace

void forward(const Operands &operands) {
  gdn_forward_args args = describe(operands);
  check(gdn_forward_workspace_size(bundle, &args, &args.workspace_size));
  call(gdn_forward, operands.q.device, args);
}

void check(const Operands &operands) {
  gdn_forward_args args = describe(operands);
  call(gdn_forward_check, operands.q.device, args);
}

} // namespace gdn::python

// The bundle whose kernels are launched, which stays open, and whether on the emulator, in the CPU's memory.
extern "C" GDN_API void gdn_torch_use(gdn_bundle *opened, bool onEmulator) {
  gdn::python::bundle = opened;
  gdn::python::emulated = onEmulator;
}
