// gdn_forward as an operator of torch, through torch's stable ABI: one library for every torch from 2.10 on.
#include "call.h"
#include <gdn/gdn.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace gdn::python {
namespace {

int32_t dtypeOf(const Tensor &tensor) {
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
    return -1;
  }
}

View view(const Tensor &x) {
  auto kind = x.is_cuda() ? Device::Cuda : x.is_cpu() ? Device::Cpu : Device::Other;
  void *data = kind == Device::Other ? nullptr : x.data_ptr(); // which may be none
  return {data,
          x.sizes().data(),
          x.strides().data(),
          static_cast<int32_t>(x.dim()),
          dtypeOf(x),
          {kind, x.get_device_index()}};
}

View view(const std::optional<Tensor> &x) { return x ? view(*x) : View{}; }

void run(const Tensor &q, const Tensor &k, const Tensor &v, const Tensor &g, const Tensor &beta, const Tensor &o,
         std::optional<Tensor> initialState, std::optional<Tensor> finalState, std::optional<Tensor> offsets,
         double scale, bool stateVFirst, int64_t split, int64_t flags, std::optional<Tensor> aLog,
         std::optional<Tensor> dtBias, std::optional<Tensor> readIndices, std::optional<Tensor> writeIndices,
         std::optional<Tensor> checkpoints, int64_t checkpointEvery, std::optional<Tensor> checkpointStarts) {
  forward({view(q),
           view(k),
           view(v),
           view(g),
           view(beta),
           view(o),
           view(initialState),
           view(finalState),
           view(offsets),
           view(aLog),
           view(dtBias),
           view(readIndices),
           view(writeIndices),
           view(checkpoints),
           view(checkpointStarts),
           scale,
           stateVFirst,
           split,
           flags,
           checkpointEvery});
}

} // namespace
} // namespace gdn::python

STABLE_TORCH_LIBRARY(gdnc, m) {
  m.def("forward(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor(a!) o, Tensor? initial_state, "
        "Tensor(b!)? final_state, Tensor? cu_seqlens, float scale, bool state_v_first, int split, int flags, "
        "Tensor? A_log, Tensor? dt_bias, Tensor? read_indices=None, Tensor? write_indices=None, "
        "Tensor(c!)? checkpoints=None, int checkpoint_every=0, Tensor? checkpoint_starts=None) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(gdnc, CUDA, m) { m.impl("forward", TORCH_BOX(&gdn::python::run)); }

STABLE_TORCH_LIBRARY_IMPL(gdnc, CPU, m) { m.impl("forward", TORCH_BOX(&gdn::python::run)); } // on the emulator
