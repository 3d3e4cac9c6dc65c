// Passes on the `tile` dialect.
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace tile {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/tile/Passes.h.inc"
} // namespace tile
