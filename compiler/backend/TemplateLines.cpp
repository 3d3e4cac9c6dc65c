#include "compiler/backend/TemplateLines.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/DebugInfo/DWARF/DWARFDebugLine.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Path.h"
#include <map>
using namespace llvm;

namespace gdnc {

static SmallVector<StringRef> linesOf(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  return lines;
}

// "file:line" of a comment that says so; else empty.
static StringRef placeIn(StringRef line) {
  StringRef text = line.trim();
  StringRef number = text.rsplit(':').second;
  return text.consume_front("// ") && !number.empty() && all_of(number, isDigit) ? text : StringRef();
}

// What follows a directive of this name, blanks cut off; none where it is another line.
static std::optional<StringRef> afterDirective(StringRef line, StringRef name) {
  StringRef text = line.trim();
  return text.consume_front(name) ? std::optional(text.ltrim()) : std::nullopt;
}

static unsigned takeNumber(StringRef &text) {
  unsigned number = 0;
  text.consumeInteger(10, number);
  text = text.ltrim();
  return number;
}

std::string commentLines(std::string_view ptx) {
  DenseMap<unsigned, StringRef> files;
  for (StringRef line : linesOf(ptx))
    if (auto rest = afterDirective(line, ".file"))
      files[takeNumber(*rest)] = sys::path::filename(rest->trim('"'));
  std::string result, place;
  for (StringRef line : linesOf(StringRef(ptx).rtrim('\n'))) {
    bool label = line.starts_with("$L__tmp") || line.starts_with("$L__func_");
    if (label || afterDirective(line, ".file") || afterDirective(line, ".section"))
      continue;
    std::string next = placeIn(line).str();
    if (auto rest = afterDirective(line, ".loc")) {
      StringRef file = files.lookup(takeNumber(*rest));
      next = (file + ":" + Twine(takeNumber(*rest))).str();
    } else if (next.empty()) {
      result += (line + "\n").str();
    }
    if (!next.empty() && next != place) {
      result += "\t// " + next + "\n";
      place = next;
    }
  }
  return result;
}

std::vector<std::string> templateLines(std::string_view ptx) {
  std::vector<std::string> places;
  StringRef place;
  for (StringRef line : linesOf(ptx)) {
    if (StringRef next = placeIn(line); !next.empty())
      place = next.ends_with(":0") ? StringRef() : next; // line 0: LLVM merged code of several lines
    places.push_back(place.str());
  }
  return places;
}

std::vector<std::string> linesOfInstruction(std::string_view ptx, std::string_view instruction) {
  std::vector<std::string> places = templateLines(ptx), found;
  for (auto [line, place] : zip(linesOf(ptx), places))
    if (line.trim().starts_with(instruction) && !place.empty() && !is_contained(found, place))
      found.push_back(place);
  return found;
}

// Addresses of the instructions that load from or store to the stack. NVIDIA documents no encodings; these two have
// been the same since sm_70.
static std::vector<uint64_t> stackAccesses(StringRef code) {
  constexpr uint64_t bytes = 16, opcode = 0xfff, loadLocal = 0x983, storeLocal = 0x387;
  std::vector<uint64_t> found;
  for (uint64_t at = 0; at + bytes <= code.size(); at += bytes)
    if (uint64_t op = support::endian::read64le(code.data() + at) & opcode; op == loadLocal || op == storeLocal)
      found.push_back(at);
  return found;
}

std::vector<std::string> linesOfStackUse(std::string_view cubin, std::string_view ptx) {
  auto ignore = [](Error error) { consumeError(std::move(error)); };
  auto object = object::ObjectFile::createObjectFile(MemoryBufferRef(cubin, "cubin"));
  if (!object) {
    ignore(object.takeError());
    return {};
  }
  StringRef code, table; // of PTX's lines, in the form of a .debug_line
  for (const object::SectionRef &section : (*object)->sections()) {
    StringRef name = cantFail(section.getName());
    if (name.starts_with(".text."))
      code = cantFail(section.getContents());
    else if (name == ".nv_debug_line_sass")
      table = cantFail(section.getContents());
  }
  std::unique_ptr<DWARFContext> context = DWARFContext::create(**object);
  DWARFDataExtractor data(table, /*IsLittleEndian=*/true, /*AddressSize=*/8);
  auto lines = DWARFDebugLine::SectionParser(data, *context, context->info_section_units()).parseNext(ignore, ignore);
  std::vector<std::string> places = templateLines(ptx);
  std::map<std::string, int> uses;
  for (uint64_t at : stackAccesses(code))
    if (uint32_t row = lines.lookupAddress({at}); row != lines.UnknownRowIndex && lines.Rows[row].Line <= places.size())
      ++uses[places[lines.Rows[row].Line - 1]];
  std::vector<std::string> found;
  for (auto &[place, count] : uses)
    if (!place.empty())
      found.push_back(place);
  stable_sort(found, [&](const std::string &a, const std::string &b) { return uses[a] > uses[b]; });
  return found;
}

} // namespace gdnc
