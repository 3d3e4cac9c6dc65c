// gdn_forward as an operator of torch, through torch's stable ABI: one library for every torch from 2.10 on.
#define USE_CUDA // declares the functions that a torch without CUDA lacks; the one used here is weak
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

gdn_tensor describe(const Tensor &tensor) {
  return {tensor.data_ptr(), tensor.stride(0), tensor.stride(1), tensor.stride(2), dtypeOf(tensor)};
}

gdn_state describe(const std::optional<Tensor> &state) {
  if (!state)
    return {};
  return {state->data_ptr(), state->stride(0), state->stride(1), dtypeOf(*state)};
}

// What the kernel needs of memory; empty for none.
std::optional<Tensor> makeWorkspace(const Tensor &like, gdn_forward_args &args) {
  check(gdn_forward_workspace_size(bundle, &args, &args.workspace_size));
  if (args.workspace_size == 0)
    return std::nullopt;
  Tensor workspace = torch::stable::new_empty(like, {static_cast<int64_t>(args.workspace_size)}, ScalarType::Byte);
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

// The tensors are as gdnc.forward has checked them.
void forward(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &g, const Tensor &beta, const Tensor &o,
             std::optional<Tensor> initialState, std::optional<Tensor> finalState, std::optional<Tensor> offsets,
             double scale, bool stateVFirst, int64_t split) {
  gdn_forward_args args = {};
  args.struct_size = sizeof args;
  args.batch = q.size(0);
  args.tokens = q.size(1);
  args.heads = q.size(2);
  args.heads_v = v.size(2);
  args.key_dim = q.size(3);
  args.value_dim = v.size(3);
  args.q = describe(q);
  args.k = describe(k);
  args.v = describe(v);
  args.o = describe(o);
  args.g = describe(g);
  args.beta = describe(beta);
  args.initial_state = describe(initialState);
  args.final_state = describe(finalState);
  args.state_layout = stateVFirst ? GDN_V_FIRST : GDN_K_FIRST;
  if (offsets) {
    args.num_sequences = offsets->size(0) - 1;
    args.cu_seqlens = offsets->data_ptr();
    args.cu_seqlens_dtype = dtypeOf(*offsets);
  }
  args.scale = static_cast<float>(scale);
  args.split = static_cast<uint32_t>(split);
  std::optional<Tensor> workspace = makeWorkspace(q, args);
  if (q.is_cuda())
    launchOnGpu(q, args);
  else
    check(gdn_forward(bundle, &args));
}

} // namespace

// The bundle whose kernels are launched; it stays open.
extern "C" GDN_API void gdn_torch_use(gdn_bundle *opened) { bundle = opened; }

STABLE_TORCH_LIBRARY(gdnc, m) {
  m.def("forward(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor(a!) o, Tensor? initial_state, "
        "Tensor(b!)? final_state, Tensor? cu_seqlens, float scale, bool state_v_first, int split) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(gdnc, CUDA, m) { m.impl("forward", TORCH_BOX(&forward)); }

STABLE_TORCH_LIBRARY_IMPL(gdnc, CPU, m) { m.impl("forward", TORCH_BOX(&forward)); } // on the emulator
