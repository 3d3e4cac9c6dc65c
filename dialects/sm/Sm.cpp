// Types, syntax and verifiers of the `sm` dialect.
#include "dialects/sm/Sm.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
using namespace mlir;
using namespace sm;

//===-- structure -----------------------------------------------------------===//
ParseResult KernelOp::parse(OpAsmParser &p, OperationState &s) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (p.parseSymbolName(name, "sym_name", s.attributes) ||
      p.parseArgumentList(args, AsmParser::Delimiter::Paren, /*allowType=*/true) ||
      p.parseOptionalAttrDictWithKeyword(s.attributes))
    return failure();
  return p.parseRegion(*s.addRegion(), args);
}
void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  p << '(';
  llvm::interleaveComma(getBody().getArguments(), p, [&](BlockArgument a) { p.printRegionArgument(a); });
  p << ")";
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"sym_name"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
LogicalResult KernelOp::verifyRegions() {
  if (getParams().size() != getBody().getNumArguments())
    return emitOpError("expected one entry of params for each of ")
           << getBody().getNumArguments() << " arguments, got " << getParams().size();
  if (getThreads() % 128 || getThreads() > 1024)
    return emitOpError("expected whole warpgroups, at most 1024 threads, got ") << getThreads();
  return success();
}
LogicalResult MaxRegistersOp::verify() {
  if (getCount() % 8 || getCount() < 24 || getCount() > 256)
    return emitOpError("expected a multiple of 8 in 24..256, got ") << getCount();
  return success();
}

//===-- synchronisation -------------------------------------------------------===//
static LogicalResult verifyNamedBarrier(Operation *op, int64_t id, int64_t threads) {
  if (id < 0 || id > 15) return op->emitOpError("expected a barrier in 0..15, got ") << id;
  if (threads % 32 || threads <= 0 || threads > 1024)
    return op->emitOpError("expected whole warps, at most 1024 threads, got ") << threads;
  return success();
}
LogicalResult BarSyncOp::verify() { return verifyNamedBarrier(*this, getId(), getThreads()); }
LogicalResult BarArriveOp::verify() { return verifyNamedBarrier(*this, getId(), getThreads()); }

static LogicalResult verifyRank(Operation *op, size_t rank) {
  return rank >= 1 && rank <= 5 ? success() : op->emitOpError("expected 1 to 5 coordinates, got ") << rank;
}
LogicalResult BulkLoadOp::verify() { return verifyRank(*this, getCoords().size()); }
LogicalResult BulkPrefetchOp::verify() { return verifyRank(*this, getCoords().size()); }
LogicalResult BulkStoreOp::verify() { return verifyRank(*this, getCoords().size()); }

//===-- products ----------------------------------------------------------------===//
LogicalResult WgmmaOp::verify() {
  int64_t n = getN();
  if (n % 8 || n < 8 || n > 256) return emitOpError("expected n a multiple of 8 up to 256, got ") << n;
  if (int64_t(getD().size()) != n / 2)
    return emitOpError("expected ") << n / 2 << " accumulator registers, got " << getD().size();
  if (!getAcc().empty() && getAcc().size() != getD().size())
    return emitOpError("expected an accumulator of ") << getD().size() << " registers, got " << getAcc().size();
  if (getADesc() ? !getA().empty() : getA().size() != 4)
    return emitOpError("expected A as four registers or as a descriptor");
  if (!getADesc() && getTransA()) return emitOpError("cannot transpose an operand held in registers");
  return success();
}
LogicalResult MmaOp::verify() {
  if (!(getA().size() == 4 && getB().size() == 2) && !(getA().size() == 2 && getB().size() == 1))
    return emitOpError("expected 4 and 2 or 2 and 1 operand registers, got ") << getA().size() << " and " << getB().size();
  return getC().size() == 4 ? success() : emitOpError("expected 4 accumulator registers, got ") << getC().size();
}

//===-- memory --------------------------------------------------------------------===//
static LogicalResult verifyVector(Operation *op, TypeRange types, bool narrow = false) {
  size_t n = types.size();
  if (narrow) {
    if (n != 1 || !types[0].isInteger(32)) return op->emitOpError("expected one i32 for a narrow access");
    return success();
  }
  if (n != 1 && n != 2 && n != 4) return op->emitOpError("expected 1, 2 or 4 registers, got ") << n;
  if (!llvm::all_equal(types)) return op->emitOpError("expected registers of one type");
  return success();
}
LogicalResult LdmatrixOp::verify() { return verifyVector(*this, getValues().getTypes()); }
LogicalResult StmatrixOp::verify() { return verifyVector(*this, getValues().getTypes()); }
LogicalResult LoadSharedOp::verify() { return verifyVector(*this, getValues().getTypes()); }
LogicalResult StoreSharedOp::verify() { return verifyVector(*this, getValues().getTypes(), getNarrow()); }
LogicalResult LoadGlobalOp::verify() { return verifyVector(*this, getValues().getTypes(), getNarrow()); }
LogicalResult StoreGlobalOp::verify() { return verifyVector(*this, getValues().getTypes(), getNarrow()); }

//===-- dialect ---------------------------------------------------------------------===//
#include "dialects/sm/SmDialect.cpp.inc"
#include "dialects/sm/SmEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/sm/SmAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/sm/SmTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/sm/SmOps.cpp.inc"
void SmDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/sm/SmAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/sm/SmTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/sm/SmOps.cpp.inc"
      >();
}
