#include "compiler/driver/Dialects.h"
#include "dialects/sm/Sm.h"
#include "dialects/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdnc {

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<tile::TileDialect, sm::SmDialect, mlir::arith::ArithDialect, mlir::scf::SCFDialect,
                  mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect>();
}

} // namespace gdnc
