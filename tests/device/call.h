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
  bool reads = false;      // states lie in pools, which are read by indices of the width of `offsets`,
  bool writes = false;     // or written, in slots of others
  bool holes = false;      // some indices are outside the pools, some first rows of checkpoints are no rows
  ElementType checkpoints = ElementType::F32;
  bool follow = false;  // the checkpoints of sequences follow each other; else they lie at rows of their own
  bool cramped = false; // there is a row too few
  bool aligned = false; // addresses as an allocator gives them; else multiples of 16 bytes and of nothing more
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
  void poison();
  // Elements in order; `untouched` becomes false if anything beside them, or of outer rows that are not `rows`, is no
  // longer as it was uploaded. `bytes` is the whole allocation.
  std::vector<float> download(const std::vector<size_t> &rows, bool &untouched, std::vector<std::byte> &bytes) const;

  void *pointer(size_t elements = 0) const;
  const Shape shape;
  const ElementType type;

private:
  size_t front; // bytes before the first element
  gpu::Memory memory;
  std::vector<std::byte> before; // what was uploaded
};

struct Outcome {
  std::vector<float> output, state; // as in reference::Result, but only states that were to be written
  std::vector<size_t> sequences;    // whose they are
  std::vector<float> checkpoints;   // as in reference::Result, those that were to be written
  std::vector<size_t> rows;         // their numbers there
  std::vector<std::byte> bytes;     // all memory that the call may write, for bitwise comparison
  bool untouched = true;            // nothing beside the outputs was written
};

// Whether a call with such states gives a sequence its initial state, and takes its final one.
bool isRead(const Storage &storage, size_t sequence);
bool isWritten(const Storage &storage, const reference::Problem &problem, size_t sequence);

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
  void uploadIntegers(gpu::Memory &memory, const std::vector<int64_t> &values);
  void uploadStates(const reference::Problem &problem);
  void placeCheckpoints(const reference::Problem &problem);
  std::vector<float> states(const Tensor &tensor, const std::vector<size_t> &rows, Outcome &outcome) const;
  void fillArguments(const reference::Problem &problem);
  std::vector<float> transposed(const std::vector<float> &matrices, size_t rows, size_t columns) const;

  const gpu::Gpu &gpu;
  const gpu::Bundle &bundle;
  const Storage storage;
  const size_t keyDim, valueDim;
  Tensor query, key, value, gate, strength, output; // in a projection `query` holds q, k and v
  std::optional<Tensor> rate, bias;                 // a_log, dt_bias
  std::optional<Tensor> initial, final;
  std::vector<float> initialValues;       // in memory order
  std::vector<size_t> sequences, written; // whose final state is written, and the row where
  std::vector<size_t> rows, placed;       // the same of checkpoints
  std::optional<Tensor> between;          // checkpoints
  gpu::Memory offsets, readIndices, writeIndices, starts;
  std::optional<gpu::Memory> workspace;
  gdn_forward_args args = {};
};

} // namespace gdn::device
