// The `sm` dialect: what one architecture executes.
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/sm/SmDialect.h.inc"
#include "dialects/sm/SmEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/sm/SmAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/sm/SmTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/sm/SmOps.h.inc"
