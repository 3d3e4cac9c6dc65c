// Turns one instruction into threaded code: what the rows of the instruction table are written with.
#pragma once
#include "Program.h"
#include <initializer_list>
#include <map>

namespace gdn::emu {

class Decoder {
public:
  Decoder(const Image &image, const Function &fn, Program &program) : image(image), fn(fn), program(program) {}
  void run();

  const Instruction &source() const { return *in; }
  Inst &inst() { return program.code.back(); }
  [[noreturn]] void fail(const std::string &message) const;

  // Modifiers, in any order; what no one took is an error.
  bool take(std::string_view modifier);
  std::string takePrefix(std::string_view prefix);         // what begins with it; empty: nothing does
  int choose(std::initializer_list<const char *> of);      // -1: none of them
  int chooseFirst(std::initializer_list<const char *> of); // the one that is written first
  Type type();                                             // the next type
  Type peekType() const;                                   // None where there is none
  Space space();                                           // Generic where none is named

  // Operands, in the order in which the handler finds their slots.
  const Operand &operand(size_t n);
  size_t operands() const { return in->operands.size(); }
  void out(Type type, const Operand &o, bool loose = false);
  void use(Type type, const Operand &o, bool loose = false);
  void out(Type type, size_t n) { out(type, operand(n)); }
  void use(Type type, size_t n) { use(type, operand(n)); }
  void inout(Type type, const Operand &o);
  void address(const Operand &o); // one slot; sets imm, wide
  void uses(Type type, std::initializer_list<size_t> ns) {
    for (size_t n : ns)
      use(type, n);
  }
  unsigned width(const Operand &o) const;  // bytes of a register; 0: a literal or a sink
  int64_t integer(const Operand &o) const; // a literal
  void expectOperands(size_t least, size_t most);
  void finish(Run run, Unit unit);

  Slot constant(uint64_t bits, unsigned bytes);
  Program &result() { return program; }

private:
  void decodeOne(const Instruction &source);
  void layoutShared();
  void reference(const Operand &o, bool written);
  Slot symbol(const Operand &o, unsigned bytes);
  uint64_t literal(Type type, const Operand &o) const;

  const Image &image;
  const Function &fn;
  Program &program;
  const Instruction *in = nullptr;
  std::vector<std::string_view> modifiers;
  std::map<std::pair<uint64_t, unsigned>, Slot> pool;
  std::unordered_map<std::string, uint32_t> sharedAt, localAt;
};

// One row of the instruction table. Rows of all families together are the instruction set.
struct Row {
  const char *name;
  void (*decode)(Decoder &);
};
struct Family {
  const Row *rows;
  size_t count;
};
extern const Family integerFamily, arithmeticFamily, floatFamily, convertFamily, dataFamily, memoryFamily, warpFamily,
    controlFamily, barrierFamily, asyncFamily, matrixFamily, wgmmaFamily;
const Row *findRow(const std::string &name);

} // namespace gdn::emu
