// One call of gdn_forward: how its tensors lie in device memory, and what came back.
#pragma once
#include "tests/device/gpu.h"
#include "tests/reference/problem.h"
#include <optional>

namespace gdn::device {

struct Storage {
  enum class Offsets { Dense, Int32, Int64 };
  Offsets offsets = Offsets::Int64;
  ElementType gates = ElementType::F32; // of g, beta, a_log and dt_bias
  ElementType initialState = ElementType::F32, finalState = ElementType::F32;
  bool wantsState = true;
  bool inPlace = false;    // the final state overwrites the initial one
  bool valueFirst = false; // states [.., V, K]
  bool projection = false; // q, k and v are views of one [tokens, columns] tensor, and o has gaps between its rows
  bool stateGaps = false;  // sequences and heads of the states lie apart
  bool aligned = false;    // addresses as an allocator gives them; else multiples of 16 bytes and of nothing more
  uint32_t split = 0;
  uint32_t cuts = GDN_CUT_AUTO; // bits of gdn_forward_args::flags
};

// A strided tensor [outer, heads, width] inside device memory of its own or of another tensor. What does not belong to
// the tensor, in front of it, behind it and between its rows, is all ones (NaN in every type), and must stay so.
class Tensor {
public:
  struct Shape {
    size_t outer, heads, width;
    size_t outerStride, headStride; // in elements
    size_t count() const { return outer * heads * width; }
  };
  static Shape contiguous(size_t outer, size_t heads, size_t width) {
    return {outer, heads, width, heads * width, width};
  }

  Tensor(const gpu::Gpu &gpu, ElementType type, Shape shape, bool aligned);

  // Writes the elements of outer rows below `used`, in order; the rows behind stay NaN. Tensors that share this one's
  // memory, at an offset in elements, are written along.
  struct Part {
    Shape shape;
    size_t offset;
    const std::vector<float> &values;
  };
  void upload(const std::vector<Part> &parts, size_t used);
  void upload(const std::vector<float> &values, size_t used) { upload({{shape, 0, values}}, used); }
  void poison() { memory.fill(0xff); }
  // Elements in order; `untouched` becomes false if anything beside them was written. `bytes` is the whole allocation.
  std::vector<float> download(bool &untouched, std::vector<std::byte> &bytes) const;

  void *pointer(size_t elements = 0) const;
  const Shape shape;
  const ElementType type;

private:
  size_t front; // bytes before the first element
  gpu::Memory memory;
};

struct Outcome {
  std::vector<float> output, state; // as in reference::Result
  std::vector<std::byte> bytes;     // all memory that the call may write, for bitwise comparison
  bool untouched = true;            // nothing beside the outputs was written
};

class Call {
public:
  Call(const gpu::Gpu &gpu, const gpu::Bundle &bundle, const reference::Problem &problem, const Storage &storage);

  // New inputs for the same shapes: as many tokens and sequences as before.
  void upload(const reference::Problem &problem);
  void poison(); // fills the outputs with NaN
  void launch(); // on the GPU's stream
  // Later launches write clock stamps there, as gdn.h describes them; null: none do.
  void setProfile(const gpu::Memory *stamps);
  Outcome collect() const;
  Outcome run() {
    poison();
    launch();
    return collect();
  }

private:
  void uploadOffsets(const std::vector<int64_t> &values);
  void fillArguments(const reference::Problem &problem);
  std::vector<float> transposed(const std::vector<float> &matrices, size_t rows, size_t columns) const;

  const gpu::Gpu &gpu;
  const gpu::Bundle &bundle;
  const Storage storage;
  const size_t keyDim, valueDim;
  Tensor query, key, value, gate, strength, output; // in a projection `query` holds q, k and v
  std::optional<Tensor> rate, bias;                 // a_log, dt_bias
  std::optional<Tensor> initial, final;
  std::vector<float> initialValues; // in memory order
  gpu::Memory offsets;
  std::optional<gpu::Memory> workspace;
  gdn_forward_args args = {};
};

} // namespace gdn::device
