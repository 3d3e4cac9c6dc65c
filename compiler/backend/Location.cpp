#include "compiler/backend/Location.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Path.h"
#include <algorithm>
using namespace mlir;

namespace gdnc {

// "file:line", without folders so that output does not depend on where a file lies; empty where unknown.
static std::string locationText(Location loc) {
  FileLineColLoc place;
  loc->walk([&](Location l) {
    place = dyn_cast<FileLineColLoc>(l);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!place)
    return "";
  return (llvm::sys::path::filename(place.getFilename().getValue()) + ":" + llvm::Twine(place.getLine())).str();
}

std::string locationComment(Location loc) {
  std::string text = locationText(loc);
  if (text.empty())
    return "";
  // inline assembly gives these characters a meaning
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '$' || c == '{' || c == '|' || c == '}' || c == '\n'; }, '_');
  return "// " + text + "\n";
}

} // namespace gdnc
