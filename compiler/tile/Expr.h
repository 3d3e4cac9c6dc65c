// Parameter expressions: what a size or a condition of a template is for given parameters.
#pragma once
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Types.h"
#include <map>
#include <string>

namespace tile {
using Values = std::map<std::string, mlir::Attribute>; // integers, and element types as TypeAttr

// bf16, f16 or f32; null for any other name.
mlir::Type elementType(llvm::StringRef name, mlir::MLIRContext *ctx);
// Fails for an undeclared name and for a division that leaves a rest: a size that does not divide is a mistake.
mlir::FailureOr<int64_t> evaluate(mlir::Attribute expr, const Values &values);
} // namespace tile
