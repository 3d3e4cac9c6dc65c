// What a compiled kernel is: the contract between the compiler (which writes it), the bundle (which stores it), and the
// runtime and the emulator (which launch it). Plain C++, no dependencies.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace gdn {

enum class ElementType : uint8_t { F32 = 0, BF16 = 1, F16 = 2 };

// One parameter of a kernel's entry, in the order of the PTX signature. Names are those of the template's arguments: a
// view is a strided tensor of the caller, and one view may need several parameters.
struct KernelParam {
  enum class Kind : uint8_t {
    Map = 0,     // 128 bytes, aligned to 64: a tensor map over view `name`; see below
    Pointer = 1, // 8 bytes: base address of view `name`; 0 where the caller gave none: it then reads as zeros and is
                 // not written
    Stride = 2,  // 8 bytes: stride of axis `axis` of view `name`, in elements; an axis without one must have stride 1
    Element = 3, // 4 bytes: ElementType of view `name`; gates and states without one must be fp32
    Scalar = 4,  // 4 bytes, by `name`: `scale`, fp32, or `options`, bits of InputOption
    Batch = 5,   // a field of the packed batch, by `name`:
                 //   cu_seqlens  8 bytes: device address of sequences + 1 offsets; 0 for a dense batch
                 //   cu_wide     4 bytes: 1 where the offsets are int64, 0 where they are int32
                 //   sequences   4 bytes: N
                 //   length      4 bytes: tokens of each sequence of a dense batch
                 //   tokens      4 bytes: rows of the packed token axis, the padded tail included
                 //   heads       4 bytes: v-heads HV
                 //   ratio       4 bytes: v-heads per k-head, HV / H
                 //   work        8 bytes: device address of a work::Header (work.h), or 0: items are the tiles, in
                 //               the order of memory. With it go the views flags (int32 [slots, flagWords], pointer),
                 //               slots (fp32 [slots, V, K], pointer), m_hi and m_lo (io [matrices * K, 1, K], pointer
                 //               and map), which are where the plan's Header and Layout say
                 //   source_rows, sink_rows
    //               8 bytes: device addresses of a row of the initial and of the final state for each sequence; 0: its
    //               number. The latter is given where the former is
    //   wide_rows   4 bytes: 1 where these are int64, 0 where they are int32
    //   rows        4 bytes: how many rows the states then have
    //   starts      8 bytes: device address of the row of view h_out that each sequence's checkpoints begin at; 0 for a
    //               dense batch, whose sequences have as many
    //   wide_starts 4 bytes: 1 where these are int64, 0 where they are int32
    //   every       4 bytes: chunks from one checkpoint to the next
    //   checkpoints 4 bytes: rows of h_out
    //   skips       4 bytes: 1 if the state that a sequence begins with is none of its checkpoints, but that behind its
    //               last token may be one; 0 if it is the other way round
    //   blocks, key_dim, value_dim, columns, plan_flags
    //               4 bytes: P, K, V, V columns of a tile and work::Flags, which the planner takes
  };
  Kind kind;
  std::string name;
  uint8_t axis = 0; // of a Stride
  // Of a Map. The view is [token, head, column], columns contiguous. The map has rank 4, innermost first:
  //   dim 0: columns, all `columns` of them                     box `boxColumns` (64)
  //   dim 1: heads, stride = the view's head stride             box 1
  //   dim 2: `boxRows` rows, stride = the token stride          box `boxRows`
  //   dim 3: tokens + boxRows, stride = the token stride        box 1
  // on a base address moved back by boxRows tokens. Rows first .. first + valid - 1 are the box at
  // (column, head, boxRows - valid, first + valid): dim 2 ends exactly behind the last valid row, so that rows past a
  // sequence's end arrive as zeros and are never written. 128-byte swizzle, zero fill, no interleave, 256-byte L2
  // promotion.
  ElementType element = ElementType::BF16;
  uint32_t columns = 0;
  uint16_t boxColumns = 0, boxRows = 0;

  uint32_t size() const {
    if (kind == Kind::Map)
      return 128;
    bool isAddress = kind == Kind::Batch && (name == "cu_seqlens" || name == "work" || name == "source_rows" ||
                                             name == "sink_rows" || name == "starts");
    return kind == Kind::Pointer || kind == Kind::Stride || isAddress ? 8 : 4;
  }
  uint32_t alignment() const { return kind == Kind::Map ? 64 : size(); }
};

// What g and beta hold instead of log decays and write strengths: bits that the templates know by their numbers.
enum InputOption : uint32_t {
  DecayGiven = 1, // g is the decay itself
  GateRaw = 2,    // g is the input of -exp(A_log) softplus(g + dt_bias)
  BetaLogits = 4, // beta is logits of a sigmoid
  BetaDoubled = 8,
};

// What callers choose and what would cost too much to be decided at run time: bits of a kernel's features. A feature is
// a parameter of the template, of this name.
enum Feature : uint8_t { L2Norm = 1, Checkpoints = 2 };
inline constexpr std::array<const char *, 2> featureNames = {"l2norm", "checkpoints"};

// What selects a kernel among those of a bundle. Head counts, lengths, strides, scale and state dtype are run-time
// values.
struct KernelKey {
  std::string operation; // "forward", or "plan": the planner of all kernels of an architecture, with K = V = 1
  std::string arch;      // "sm_90a"
  uint32_t keyDim = 0, valueDim = 0; // K, V
  uint32_t chunk = 64;
  ElementType io = ElementType::BF16;
  bool stateVFirst = false; // layout of the states: [.., V, K] if set, else [.., K, V]
  uint32_t split = 1;       // blocks that share one head's V
  uint8_t features = 0;
  bool profile = false; // writes clock stamps

  auto operator<=>(const KernelKey &) const = default;
};

struct Kernel {
  KernelKey key;
  std::string entry; // name of the PTX entry
  std::vector<KernelParam> params;
  uint32_t threads = 0;     // block size; grid = min(SMs, sequences * HV * split), or with a plan the blocks that it is
                            // for: a persistent loop over items
  uint32_t sharedBytes = 0; // dynamic shared memory of a block
  uint32_t registers = 0;   // per thread at launch
  uint32_t spillBytes = 0, stackBytes = 0;
  std::string schedule;        // the parameters the template was instantiated with, "name=value name=value"
  uint32_t workspaceBytes = 0; // of workspace for each sequence and v-head: the caller's, given as Pointer "workspace"
  std::string cubin;           // ELF image for exactly key.arch
  std::string ptx;             // optional
};

} // namespace gdn
