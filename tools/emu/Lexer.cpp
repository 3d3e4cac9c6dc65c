#include "Lexer.h"
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace gdn::emu {
namespace {
bool isWordStart(char c) { return std::isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.'; }
bool isWord(char c) { return std::isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%'; }
} // namespace

void Lexer::fail(const std::string &message) const {
  throw Error("line " + std::to_string(token.line) + ": " + message);
}

void Lexer::skipSpace() {
  while (at < text.size()) {
    if (text[at] == '\n') {
      line++, at++;
    } else if (std::isspace((unsigned char)text[at]) || text[at] == '\0') {
      at++;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      if (end == text.npos)
        throw Error("line " + std::to_string(line) + ": comment without an end");
      for (; at < end + 2; at++)
        line += text[at] == '\n';
    } else {
      return;
    }
  }
}

void Lexer::lexNumber() {
  size_t start = at;
  auto hex = [&](unsigned digits, Token::Kind kind) {
    std::string s(text.substr(at + 2, digits));
    char *end;
    token.bits = std::strtoull(s.c_str(), &end, 16);
    if (s.size() != digits || end != s.c_str() + digits)
      throw Error("line " + std::to_string(line) + ": expected " + std::to_string(digits) +
                  " hexadecimal digits in a floating-point literal, got '" + s + "'");
    at += 2 + digits;
    token.kind = kind;
  };
  std::string_view head = text.substr(at, 2);
  if (head == "0f" || head == "0F") {
    hex(8, Token::Kind::Float);
  } else if (head == "0d" || head == "0D") {
    hex(16, Token::Kind::Double);
  } else {
    // strtoull and strtod need a terminator: literals are short.
    std::string s(text.substr(at, 64));
    char *end;
    token.kind = Token::Kind::Integer;
    if (head == "0b" || head == "0B") {
      token.bits = std::strtoull(s.c_str() + 2, &end, 2);
    } else {
      token.bits = std::strtoull(s.c_str(), &end, 0);
      if (*end == '.' || ((*end == 'e' || *end == 'E') && head != "0x")) {
        double value = std::strtod(s.c_str(), &end);
        std::memcpy(&token.bits, &value, 8);
        token.kind = Token::Kind::Double;
      }
    }
    at += end - s.c_str();
    if (at < text.size() && (text[at] == 'U' || text[at] == 'u'))
      at++;
  }
  token.text = text.substr(start, at - start);
}

void Lexer::advance() {
  for (;;) {
    skipSpace();
    token = {};
    token.line = line;
    if (at >= text.size())
      return;
    char c = text[at];
    if (std::isdigit((unsigned char)c))
      return lexNumber();
    size_t start = at;
    if (c == '"') {
      size_t end = text.find('"', at + 1);
      if (end == text.npos)
        throw Error("line " + std::to_string(line) + ": string without an end");
      token.kind = Token::Kind::String;
      token.text = text.substr(at + 1, end - at - 1);
      at = end + 1;
      return;
    }
    if (isWordStart(c)) {
      // '::' belongs to a word, a single ':' ends a label.
      while (at < text.size() && (isWord(text[at]) || text.substr(at, 2) == "::"))
        at += text[at] == ':' ? 2 : 1;
      token.kind = Token::Kind::Word;
      token.text = text.substr(start, at - start);
      if (token.text != ".loc" && token.text != ".file")
        return;
      at = std::min(text.find('\n', at), text.size()); // debug information, one line
      continue;
    }
    at++;
    token.kind = Token::Kind::Punct;
    token.text = text.substr(start, 1);
    return;
  }
}

Token Lexer::next() {
  Token taken = token;
  advance();
  return taken;
}

bool Lexer::accept(char c) {
  if (!token.is(c))
    return false;
  advance();
  return true;
}

void Lexer::expect(char c) {
  if (!accept(c))
    fail(std::string("expected '") + c + "', got '" + std::string(token.text) + "'");
}

Token Lexer::word(const char *what) {
  if (token.kind != Token::Kind::Word)
    fail(std::string("expected ") + what + ", got '" + std::string(token.text) + "'");
  return next();
}

uint64_t Lexer::integer() {
  if (token.kind != Token::Kind::Integer)
    fail("expected an integer, got '" + std::string(token.text) + "'");
  return next().bits;
}

void Lexer::skipBraces() {
  expect('{');
  for (unsigned depth = 1; depth;) {
    Token t = next();
    if (t.kind == Token::Kind::End)
      fail("expected '}', got the end of the file");
    depth += t.is('{');
    depth -= t.is('}');
  }
}

void Lexer::skipTo(char c) {
  while (!token.is(c)) {
    if (token.kind == Token::Kind::End)
      fail(std::string("expected '") + c + "', got the end of the file");
    advance();
  }
}

} // namespace gdn::emu
