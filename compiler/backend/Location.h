// Where in a template something comes from.
#pragma once
#include "mlir/IR/Location.h"
#include <string>

namespace gdnc {

// "file:line", without folders so that output does not depend on where a file lies; empty where unknown.
std::string locationText(mlir::Location loc);

// A comment line that leads inline assembly, from which a line of PTX can be traced back; empty where unknown.
std::string locationComment(mlir::Location loc);

} // namespace gdnc
