// Threaded code: what the decoder makes of one entry and a warp executes.
#pragma once
#include "Ptx.h"
#include <memory>

namespace gdn::emu {

struct Warp;
struct Inst;
using Run = void (*)(Warp &, const Inst &);

// Where the 32 lanes of an operand lie: bits 31..30 name the area, the rest is a byte offset in it. A predicate is one
// 32-bit word with a bit a lane.
using Slot = uint32_t;
enum Area : uint32_t { Registers = 0, Constants = 1, Specials = 2 };
constexpr unsigned areaShift = 30;
constexpr uint32_t offsetMask = (1u << areaShift) - 1;
constexpr Slot noSlot = ~0u; // a sink

// Special registers, each 32 words in the specials area; the parameter buffer's address follows them, 32 double words.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NWarpId,
  SmId,
  NSmId,
  GridId,
  MaskEq,
  MaskLe,
  MaskLt,
  MaskGe,
  MaskGt,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NClusterIdX,
  NClusterIdY,
  NClusterIdZ,
  ClusterCtaIdX,
  ClusterCtaIdY,
  ClusterCtaIdZ,
  ClusterNCtaIdX,
  ClusterNCtaIdY,
  ClusterNCtaIdZ,
  ClusterCtaRank,
  ClusterNCtaRank,
  ExplicitCluster,
  DynamicShared,
  TotalShared,
  ParamBase,
};
constexpr uint32_t specialBytes = unsigned(Special::ParamBase) * 128 + 256;
constexpr Slot slotOf(Special s) { return (Specials << areaShift) | unsigned(s) * 128; }

// What an instruction costs: the unit that executes it on the device.
enum class Unit : uint8_t {
  Control,
  Alu,
  Fma,
  Half,
  Double,
  Special,
  Convert,
  Memory,
  Shared,
  Warp,
  Barrier,
  Async,
  Tensor,
  Wgmma
};

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Constant };

struct Inst {
  Run run = nullptr;
  const Slot *a = nullptr; // destinations, then sources
  Slot guard = 0;          // a constant of ones where the instruction has no guard
  uint32_t guardFlip = 0;  // ~0: the guard is negated
  uint32_t line = 0;
  uint32_t target = 0; // of a branch
  int64_t imm = 0;     // an address' offset; otherwise the instruction's own
  uint16_t count = 0;  // of vector elements, registers ...
  uint8_t size = 0;    // bytes of an element in memory
  Space space = Space::Generic;
  bool wide = false;    // the address is 64 bits
  bool watched = false; // touches a register that hazards are tracked for
  Unit unit = Unit::Control;
  uint8_t flags = 0; // the instruction's own
  uint32_t aux = 0;  // the instruction's own
};

// A register that an instruction reads or writes, until the allocator gives it a slot.
struct Reference {
  uint32_t inst, slot; // indices into Program::code and Program::slots
  int reg;
  bool written;
};

struct Program {
  const Function *fn = nullptr;
  std::vector<Inst> code;
  std::vector<const Instruction *> source; // of each element of code; null for the final ret
  std::vector<Slot> slots;
  std::vector<Reference> references;         // in order of instructions
  std::vector<std::vector<uint32_t>> tables; // of brx
  std::vector<uint64_t> constants;           // 8 bytes each, in units of 32
  uint32_t registerBytes = 0;
  uint32_t sharedStatic = 0;  // bytes of static shared memory, from sharedBase on
  uint32_t dynamicAlign = 16; // of the dynamic shared memory behind it
  uint32_t localBytes = 0;    // a thread's
  // Registers with a slot of their own: those a wgmma touches, and those that may be read before they are written.
  struct Watch {
    int reg;
    Slot slot;
    bool mayBeUnset, ofWgmma;
  };
  std::vector<Watch> watches;
};

// Shared memory begins behind the kilobyte that the system reserves on sm_90, so that address 0 stays invalid.
constexpr uint32_t sharedBase = 1024;
// The generic windows of shared and local memory lie where no host pointer does; the rest is global.
constexpr uint64_t sharedWindow = uint64_t(1) << 60, localWindow = uint64_t(2) << 60, windowMask = ~(uint64_t(3) << 60);

// Memory of a module's .global and .const variables, and where its entries' shared variables lie.
struct Image {
  Module module;
  std::unordered_map<std::string, std::unique_ptr<uint8_t[]>> variables;
  std::unordered_map<std::string, uint64_t> variableBytes;
  std::unordered_map<std::string, std::unique_ptr<Program>> programs; // decoded on first use
};

std::unique_ptr<Program> decode(const Image &image, const Function &fn);
// Liveness, slots, watches: the last step of decode.
void allocateRegisters(Program &program);

} // namespace gdn::emu
