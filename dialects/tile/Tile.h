// The `tile` dialect: what kernels are written in.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/tile/TileDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/tile/TileOps.h.inc"

namespace tile {
// The value of a parameter expression after instantiation.
inline int64_t intOf(mlir::Attribute a) { return llvm::cast<mlir::IntegerAttr>(a).getInt(); }
} // namespace tile
