#pragma once
#include "Lexer.h"

namespace gdn::emu {

// The body of one entry: registers and labels are local to the braces they are declared in.
class BodyParser {
public:
  BodyParser(Lexer &lex, Function &function) : lex(lex), fn(function) {}
  void parse();

private:
  struct Scope {
    struct Range {
      int base;
      uint64_t count;
    };
    std::unordered_map<std::string, int> registers;
    std::unordered_map<std::string, Range> ranges; // .reg .f32 %f<100>
    std::unordered_map<std::string, uint32_t> labels;
    std::unordered_map<std::string, std::vector<std::string>> tables; // of brx.idx
    std::vector<std::pair<uint32_t, std::string>> branches;           // instruction, label or table
  };
  void scope();
  void statement();
  void directive(const Token &word);
  void declareRegisters();
  void instruction(Token name, int guard, bool negated);
  void branch(Instruction &inst);
  void closeScope();
  bool resolve(Scope &scope, uint32_t inst, const std::string &label);
  int findRegister(std::string_view name) const;
  int guardRegister();
  Operand operand();
  Operand address();
  Operand simple();

  Lexer &lex;
  Function &fn;
  std::vector<Scope> scopes;
};

// One variable after its state space: ".align 16 .b8 name[640] = {...}".
Variable parseVariable(Lexer &lex);

} // namespace gdn::emu
