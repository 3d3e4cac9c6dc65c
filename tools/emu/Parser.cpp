#include "Parser.h"
#include <cstring>
#include <regex>
#include <sstream>

namespace gdn::emu {
namespace {

void initialise(Lexer &lex, Variable &v, Type type) {
  auto one = [&] {
    bool minus = lex.accept('-');
    Token t = lex.next();
    uint64_t bits = minus ? -t.bits : t.bits;
    if (t.kind == Token::Kind::Double && type == Type::F32) {
      double wide;
      std::memcpy(&wide, &bits, 8);
      float narrow = float(wide);
      bits = 0;
      std::memcpy(&bits, &narrow, 4);
    } else if (t.kind != Token::Kind::Integer && t.kind != Token::Kind::Float && t.kind != Token::Kind::Double) {
      lex.fail("expected a number in an initialiser, got '" + std::string(t.text) + "'");
    }
    for (unsigned i = 0; i < sizeOf(type); i++)
      v.init.push_back(uint8_t(bits >> 8 * i));
  };
  if (!lex.accept('{'))
    return one();
  while (!lex.accept('}')) {
    one();
    lex.accept(',');
  }
}

void parseParams(Lexer &lex, Function &fn) {
  if (!lex.accept('('))
    return;
  while (!lex.accept(')')) {
    if (lex.word("'.param'").text != ".param")
      lex.fail("expected '.param'");
    Variable v = parseVariable(lex);
    fn.paramBytes = (fn.paramBytes + v.align - 1) / v.align * v.align;
    v.offset = fn.paramBytes;
    fn.paramBytes += v.bytes;
    fn.params.push_back(std::move(v));
    lex.accept(',');
  }
}

void parseEntry(Lexer &lex, Module &module) {
  Function fn;
  fn.line = lex.peek().line;
  fn.name = lex.word("the name of an entry").text;
  parseParams(lex, fn);
  while (!lex.peek().is('{')) {
    std::string_view name = lex.word("a directive or '{'").text;
    uint64_t values[3] = {1, 1, 1};
    unsigned n = 0;
    while (lex.peek().kind == Token::Kind::Integer && n < 3) {
      values[n++] = lex.integer();
      lex.accept(',');
    }
    if (name == ".maxntid" || name == ".reqntid")
      fn.maxThreads = values[0] * values[1] * values[2];
    else if (name == ".reqnctapercluster")
      for (unsigned i = 0; i < 3; i++)
        fn.cluster[i] = values[i];
    else if (name != ".minnctapersm" && name != ".maxnreg" && name != ".maxclusterrank" && name != ".explicitcluster" &&
             name != ".blocksareclusters" && name != ".noreturn")
      lex.fail("unknown directive '" + std::string(name) + "'");
  }
  BodyParser(lex, fn).parse();
  module.entries.push_back(std::move(fn));
}

void skipFunction(Lexer &lex, Module &module) {
  if (lex.peek().is('('))
    lex.skipTo(')'), lex.next();
  module.skipped += std::string(lex.word("the name of a function").text) + " ";
  while (!lex.peek().is('{') && !lex.peek().is(';'))
    lex.next();
  if (lex.peek().is('{'))
    lex.skipBraces();
  else
    lex.expect(';');
}

void parseTopLevel(Lexer &lex, Module &module) {
  std::string_view word = lex.word("a directive").text;
  if (word == ".version" || word == ".address_size") {
    lex.next();
  } else if (word == ".target") {
    module.target = lex.word("a target").text;
    while (lex.accept(','))
      lex.word("a target");
  } else if (word == ".visible" || word == ".weak" || word == ".extern" || word == ".common") {
    // linkage means nothing to a module run alone
  } else if (word == ".entry") {
    parseEntry(lex, module);
  } else if (word == ".func") {
    skipFunction(lex, module);
  } else if (word == ".global" || word == ".const" || word == ".shared") {
    auto &list = word == ".global" ? module.global : word == ".const" ? module.constant : module.shared;
    do
      list.push_back(parseVariable(lex));
    while (lex.accept(','));
    lex.expect(';');
  } else if (word == ".section") {
    lex.word("a section");
    lex.skipBraces();
  } else if (word == ".pragma" || word == ".alias") {
    lex.skipTo(';');
    lex.next();
  } else {
    lex.fail("unknown directive '" + std::string(word) + "'");
  }
}

} // namespace

Variable parseVariable(Lexer &lex) {
  Variable v;
  Type type = Type::None;
  uint64_t lanes = 1;
  for (;;) {
    std::string_view word = lex.word("a variable").text;
    if (word == ".align") {
      v.align = lex.integer();
      if (!v.align || v.align & (v.align - 1) || v.align > 65536)
        lex.fail("expected an alignment that is a power of two, got " + std::to_string(v.align));
    } else if (word == ".v2" || word == ".v4") {
      lanes = word[2] - '0';
    } else if (word == ".ptr") {
      // ".param .u64 .ptr .global .align 16 name": describes the pointer, not the parameter
      while (lex.peek().kind == Token::Kind::Word && lex.peek().text[0] == '.')
        if (lex.next().text == ".align")
          lex.integer();
    } else if (word[0] == '.') {
      type = typeNamed(word.substr(1));
      if (type == Type::None && word != ".attribute")
        lex.fail("expected a type, got '" + std::string(word) + "'");
    } else {
      v.name = word;
      break;
    }
  }
  if (type == Type::None)
    lex.fail("'" + v.name + "' has no type");
  v.align = std::max<uint64_t>(v.align, sizeOf(type));
  v.bytes = sizeOf(type) * lanes;
  while (lex.accept('[')) {
    if (lex.peek().is(']'))
      v.unsized = true;
    else
      v.bytes *= lex.integer();
    lex.expect(']');
  }
  if (v.bytes > (uint64_t(1) << 32))
    lex.fail("'" + v.name + "' is too large");
  if (v.unsized)
    v.bytes = 0;
  if (lex.accept('='))
    initialise(lex, v, type);
  if (v.init.size() > v.bytes)
    lex.fail("more initialisers than '" + v.name + "' has elements");
  return v;
}

void parsePtx(std::string text, Module &module) {
  module.text = std::move(text);
  Lexer lex(module.text);
  while (lex.peek().kind != Token::Kind::End)
    parseTopLevel(lex, module);
  if (module.target.empty())
    lex.fail("expected PTX, got a text without '.target'");
}

std::string describeLine(const Module &module, uint32_t line) {
  static const std::regex comment("\\s*// (\\S+:\\d+)");
  std::istringstream text(module.text);
  std::string place, words;
  std::smatch match;
  for (uint32_t n = 1; n < line && std::getline(text, words); n++)
    if (words.find("//") != words.npos && std::regex_match(words, match, comment))
      place = " (" + match[1].str() + ")";
  return "line " + std::to_string(line) + place;
}

} // namespace gdn::emu
