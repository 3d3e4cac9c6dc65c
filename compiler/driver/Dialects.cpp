#include "compiler/driver/Dialects.h"
#include "dialects/sm/Sm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#ifdef GDNC_TILE
#include "dialects/tile/Tile.h"
#endif

namespace gdnc {

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<sm::SmDialect, mlir::arith::ArithDialect, mlir::scf::SCFDialect, mlir::cf::ControlFlowDialect,
                  mlir::LLVM::LLVMDialect>();
#ifdef GDNC_TILE
  registry.insert<tile::TileDialect>();
#endif
}

} // namespace gdnc
