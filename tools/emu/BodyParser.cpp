#include "Parser.h"
#include <algorithm>
#include <cctype>
#include <utility>

namespace gdn::emu {

void BodyParser::parse() {
  scopes.emplace_back();
  lex.expect('{');
  scope();
}

void BodyParser::scope() {
  while (!lex.accept('}')) {
    if (lex.peek().kind == Token::Kind::End)
      lex.fail("expected '}', got the end of the file");
    if (lex.accept('{')) {
      if (scopes.size() > 64)
        lex.fail("scopes nested too deeply");
      scopes.emplace_back();
      scope();
    } else {
      statement();
    }
  }
  closeScope();
}

bool BodyParser::resolve(Scope &s, uint32_t inst, const std::string &label) {
  auto &targets = fn.code[inst].targets;
  if (auto table = s.tables.find(label); table != s.tables.end()) {
    for (auto &name : table->second) {
      auto it = s.labels.find(name);
      if (it == s.labels.end())
        throw Error("line " + std::to_string(fn.code[inst].line) + ": unknown label '" + name + "'");
      targets.push_back(it->second);
    }
    return true;
  }
  auto it = s.labels.find(label);
  if (it == s.labels.end())
    return false;
  targets.push_back(it->second);
  return true;
}

// Labels of a scope are known at its end; what it does not hold may be a label of the scope around it.
void BodyParser::closeScope() {
  Scope s = std::move(scopes.back());
  scopes.pop_back();
  for (auto &[inst, label] : s.branches)
    if (!resolve(s, inst, label)) {
      if (scopes.empty())
        throw Error("line " + std::to_string(fn.code[inst].line) + ": unknown label '" + label + "'");
      scopes.back().branches.emplace_back(inst, label);
    }
}

void BodyParser::statement() {
  int guard = -1;
  bool negated = false;
  if (lex.accept('@')) {
    negated = lex.accept('!');
    guard = guardRegister();
  }
  Token word = lex.word("an instruction");
  if (word.text[0] == '.')
    return directive(word);
  if (lex.accept(':')) {
    std::string name(word.text);
    if (lex.peek().text == ".branchtargets") {
      lex.next();
      auto &table = scopes.back().tables[name];
      do
        table.emplace_back(lex.word("a label").text);
      while (lex.accept(','));
      return lex.expect(';');
    }
    if (!scopes.back().labels.emplace(name, uint32_t(fn.code.size())).second)
      lex.fail("label '" + name + "' is defined twice");
    return;
  }
  instruction(word, guard, negated);
}

int BodyParser::guardRegister() {
  Token word = lex.word("a predicate");
  int reg = findRegister(word.text);
  if (reg < 0 || fn.registers[reg].type != Type::Pred)
    lex.fail("expected a predicate, got '" + std::string(word.text) + "'");
  return reg;
}

void BodyParser::directive(const Token &word) {
  if (word.text == ".reg")
    return declareRegisters();
  if (word.text == ".shared" || word.text == ".local") {
    auto &list = word.text == ".shared" ? fn.shared : fn.local;
    do
      list.push_back(parseVariable(lex));
    while (lex.accept(','));
    return lex.expect(';');
  }
  if (word.text != ".pragma")
    lex.fail("unknown directive '" + std::string(word.text) + "'");
  lex.skipTo(';');
  lex.next();
}

void BodyParser::declareRegisters() {
  Token word = lex.word("a type");
  Type type = typeNamed(word.text.substr(1));
  if (type == Type::None)
    lex.fail("expected a type, got '" + std::string(word.text) + "'");
  do {
    std::string name(lex.word("a register").text);
    if (lex.accept('<')) {
      uint64_t count = lex.integer();
      if (count > 10'000'000)
        lex.fail("too many registers: " + std::to_string(count));
      lex.expect('>');
      scopes.back().ranges[name] = {int(fn.registers.size()), count};
      for (uint64_t i = 0; i < count; i++)
        fn.registers.push_back({name + std::to_string(i), type});
    } else {
      scopes.back().registers[name] = int(fn.registers.size());
      fn.registers.push_back({name, type});
    }
  } while (lex.accept(','));
  lex.expect(';');
}

int BodyParser::findRegister(std::string_view name) const {
  size_t digits = name.size();
  while (digits && std::isdigit((unsigned char)name[digits - 1]))
    digits--;
  std::string whole(name), prefix(name.substr(0, digits));
  bool numbered = digits < name.size() && name.size() - digits < 9;
  uint64_t number = numbered ? std::stoull(std::string(name.substr(digits))) : 0;
  for (auto s = scopes.rbegin(); s != scopes.rend(); ++s) {
    if (auto it = s->registers.find(whole); it != s->registers.end())
      return it->second;
    if (auto it = s->ranges.find(prefix); numbered && it != s->ranges.end() && number < it->second.count)
      return it->second.base + int(number);
  }
  return -1;
}

void BodyParser::branch(Instruction &inst) {
  std::string label;
  if (inst.name == "brx") {
    inst.operands.push_back(operand());
    lex.expect(',');
  }
  label = lex.word("a label").text;
  scopes.back().branches.emplace_back(uint32_t(fn.code.size()), label);
}

void BodyParser::instruction(Token word, int guard, bool negated) {
  Instruction inst;
  inst.line = word.line;
  inst.guard = guard;
  inst.guardNegated = negated;
  size_t dot = word.text.find('.');
  inst.name = word.text.substr(0, dot);
  while (dot != word.text.npos) {
    size_t end = word.text.find('.', dot + 1);
    inst.modifiers.push_back(word.text.substr(dot + 1, end == word.text.npos ? end : end - dot - 1));
    dot = end;
  }
  if (inst.name == "bra" || inst.name == "brx") {
    branch(inst);
  } else if (!lex.peek().is(';')) {
    do
      inst.operands.push_back(operand());
    while (lex.accept(','));
  }
  lex.expect(';');
  fn.code.push_back(std::move(inst));
}

Operand BodyParser::simple() {
  Operand o;
  o.negated = lex.accept('!');
  bool minus = lex.accept('-');
  Token t = lex.next();
  switch (t.kind) {
  case Token::Kind::Integer:
  case Token::Kind::Float:
  case Token::Kind::Double:
    o.kind = t.kind == Token::Kind::Integer ? Operand::Kind::Integer
             : t.kind == Token::Kind::Float ? Operand::Kind::Float
                                            : Operand::Kind::Double;
    o.bits = !minus                           ? t.bits
             : t.kind == Token::Kind::Integer ? -t.bits
             : t.kind == Token::Kind::Float   ? t.bits ^ 0x80000000u
                                              : t.bits ^ (uint64_t(1) << 63);
    break;
  case Token::Kind::Word:
    o.name = t.text;
    o.reg = findRegister(t.text);
    o.kind = o.reg >= 0         ? Operand::Kind::Register
             : t.text == "_"    ? Operand::Kind::Sink
             : t.text[0] == '%' ? Operand::Kind::Special
                                : Operand::Kind::Symbol;
    break;
  default:
    lex.fail("expected an operand, got '" + std::string(t.text) + "'");
  }
  // name + 4: the offset may carry its own sign
  while (o.kind != Operand::Kind::Integer && (lex.peek().is('+') || lex.peek().is('-'))) {
    bool negative = lex.next().is('-');
    negative ^= lex.accept('-');
    uint64_t value = lex.integer();
    o.offset += int64_t(negative ? -value : value);
  }
  return o;
}

Operand BodyParser::address() {
  Operand o;
  o.kind = Operand::Kind::Address;
  do {
    if (lex.peek().is('{')) {
      o.items.push_back(operand());
      continue;
    }
    Operand part = simple();
    if (o.items.empty())
      o.offset = std::exchange(part.offset, 0);
    o.items.push_back(std::move(part));
  } while (lex.accept(','));
  lex.expect(']');
  return o;
}

Operand BodyParser::operand() {
  if (lex.accept('['))
    return address();
  if (lex.accept('{')) {
    Operand o;
    o.kind = Operand::Kind::Vector;
    while (!lex.accept('}')) {
      o.items.push_back(simple());
      lex.accept(',');
    }
    return o;
  }
  Operand first = simple();
  if (!lex.accept('|'))
    return first;
  Operand o;
  o.kind = Operand::Kind::Pair;
  o.items.push_back(std::move(first));
  o.items.push_back(simple());
  return o;
}

} // namespace gdn::emu
