// Tokens of PTX. Comments, .loc and .file lines are skipped here.
#pragma once
#include "Ptx.h"

namespace gdn::emu {

struct Token {
  // Word: identifier, register, special register or directive, dots included: "mul.lo.s32", "%tid.x", ".reg"
  enum class Kind : uint8_t { End, Word, Integer, Float, Double, String, Punct } kind = Kind::End;
  std::string_view text;
  uint64_t bits = 0;
  uint32_t line = 0;
  bool is(char c) const { return kind == Kind::Punct && text[0] == c; }
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { advance(); }
  const Token &peek() const { return token; }
  Token next();
  bool accept(char c);
  void expect(char c);
  Token word(const char *what);
  uint64_t integer();
  [[noreturn]] void fail(const std::string &message) const;
  // For a construct that is skipped whole; the current token is its opening brace.
  void skipBraces();
  void skipTo(char c);

private:
  void advance();
  void skipSpace();
  void lexNumber();
  std::string_view text;
  size_t at = 0;
  uint32_t line = 1;
  Token token;
};

} // namespace gdn::emu
