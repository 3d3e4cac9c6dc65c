// The syntax of a PTX module: what the parser reads and the decoder turns into threaded code.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gdn::emu {

// Anything wrong with the PTX or with what it does. Thrown inside the library, returned by its interface.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F32,
  F64,
  BF16,
  TF32,
  F16X2,
  BF16X2,
  F32X2,
  E4M3X2,
  E5M2X2,
};
unsigned sizeOf(Type type); // bytes; of a predicate's storage: 4, one bit a lane
bool isSigned(Type type);
bool isFloat(Type type);
const char *nameOf(Type type);
Type typeNamed(std::string_view name); // None where there is no such type

struct Operand {
  enum class Kind : uint8_t { Register, Special, Integer, Float, Double, Symbol, Vector, Pair, Address, Sink };
  Kind kind = Kind::Sink;
  bool negated = false;       // !%p
  int reg = -1;               // Register: index into Function::registers
  uint64_t bits = 0;          // of a literal
  int64_t offset = 0;         // Symbol and Address: added to it
  std::string name;           // Special and Symbol
  std::vector<Operand> items; // Vector, Pair; Address: the base, then what follows a comma in the brackets
};

struct Instruction {
  uint32_t line = 0;
  int guard = -1; // predicate register
  bool guardNegated = false;
  std::string name;                        // "mul"
  std::vector<std::string_view> modifiers; // "lo", "s32": views of the module's text
  std::vector<Operand> operands;
  std::vector<uint32_t> targets; // of bra and brx: indices of instructions
};

struct Variable {
  std::string name;
  uint64_t bytes = 0, align = 1;
  bool unsized = false;      // extern array: dynamic shared memory
  uint64_t offset = 0;       // in the parameter buffer, or in its space
  std::vector<uint8_t> init; // global and constant variables
};

struct Register {
  std::string name;
  Type type;
};

struct Function {
  std::string name;
  uint32_t line = 0;
  std::vector<Variable> params, shared, local;
  uint64_t paramBytes = 0;
  uint32_t maxThreads = 0; // of .reqntid or .maxntid; 0: none given
  uint32_t cluster[3] = {1, 1, 1};
  std::vector<Register> registers;
  std::vector<Instruction> code;
};

struct Module {
  std::string text; // modifiers are views of it
  std::string target;
  std::vector<Variable> global, constant, shared;
  std::vector<Function> entries;
  std::string skipped; // names of device functions, which are not called by what we run
};

// `text` is moved into the module. Throws Error("line N: ...").
void parsePtx(std::string text, Module &module);

// "line 20", and where the compiler says in a comment above what that was made from, "line 20 (forward.mlir:124)".
std::string describeLine(const Module &module, uint32_t line);

} // namespace gdn::emu
