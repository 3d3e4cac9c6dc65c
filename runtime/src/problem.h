// What one call asks for, checked: the caller's struct in the terms of the kernels.
#pragma once
#include "driver/driver.h"
#include "format/kernel.h"
#include "format/work.h"
#include "status.h"
#include <array>

namespace gdn {

// The tensors that a kernel may take; their names in a bundle are those of viewNames.
enum class ViewId : uint8_t {
  Q,
  K,
  V,
  G,
  Beta,
  StateIn,
  O,
  StateOut,
  Clocks,
  Workspace,
  ALog,
  DtBias,
  CheckpointsOut,
  Flags,
  Slots,
  MHigh,
  MLow
};
inline constexpr std::array<const char *, 17> viewNames = {
    "q_in",      "k_in",  "v_in",    "g_in",  "beta_in", "s_in",  "o_out", "s_out", "clocks",
    "workspace", "A_log", "dt_bias", "h_out", "flags",   "slots", "m_hi",  "m_lo"};

struct View {
  void *data = nullptr;
  // In elements. Of q, k, v, o, g, beta: token, head. Of states: sequence or row, v-head. Of clocks: SM. Of what a
  // plan's items leave for each other: flags: slot; m_hi and m_lo: row, head. What lies behind each other has none.
  std::array<int64_t, 2> strides{};
  ElementType element = ElementType::F32;
};

// How work may be cut: GDN_CUT_AUTO to GDN_CUT_FAST.
enum class Mode : uint8_t { Auto, Off, Exact, Fast };

// What decides which kernels of a bundle serve a call.
struct Shape {
  int64_t sequences = 0, length = 0, tokens = 0; // length: of each sequence of a dense batch; tokens: of all
  int64_t heads = 0, headsV = 0;
  uint32_t keyDim = 0, valueDim = 0, split = 0; // split 0: any
  ElementType io = ElementType::BF16;
  bool stateVFirst = false, profile = false, packed = false;
  Mode mode = Mode::Auto;
  bool invariant = false, normalised = false;
  uint8_t features = 0;
};

struct Problem {
  Shape shape;
  std::array<View, viewNames.size()> views;
  const void *offsets = nullptr; // cu_seqlens
  bool wideOffsets = false;
  // Rows of the initial and of the final state, by sequence; null: its number. `rows`: how many the states have then.
  const void *sourceRows = nullptr, *sinkRows = nullptr;
  bool wideRows = false;
  int64_t rows = 0;
  // Checkpoints: the first row of each sequence, null in a dense batch; chunks from one to the next; rows; whether the
  // state that a sequence begins with is none.
  const void *starts = nullptr;
  bool wideStarts = false, skips = false;
  int64_t every = 0, checkpoints = 0;
  float scale = 0;
  uint32_t options = 0; // InputOption
  // Of a kernel that can follow a plan.
  bool planned = false;
  work::Shape plan{};
  void *planAddress = nullptr;
  int64_t matrixRows = 0; // of m_hi and m_lo

  const View &operator[](ViewId id) const { return views[static_cast<size_t>(id)]; }
  View &operator[](ViewId id) { return views[static_cast<size_t>(id)]; }
  // Without tokens there is work only where states pass through.
  bool empty() const { return shape.sequences == 0 || (shape.tokens == 0 && !(*this)[ViewId::StateOut].data); }
};

// The caller's struct as one of this version: what an older one lacks is zero.
gdn_status readArgs(const gdn_forward_args *given, gdn_forward_args &args);
// Checks the dimensions.
gdn_status readShape(const gdn_forward_args &args, Shape &shape);
// Checks the tensors and the rest, once `problem.shape` is read.
gdn_status readTensors(const gdn_forward_args &args, Problem &problem);

} // namespace gdn
