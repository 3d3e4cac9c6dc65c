// Where in a template something comes from.
#pragma once
#include "mlir/IR/Location.h"
#include <string>

namespace gdnc {

// A comment line that leads inline assembly: the PTX tells the template's line, and LLVM merges no assembly of
// different lines. Empty where unknown.
std::string locationComment(mlir::Location loc);

} // namespace gdnc
