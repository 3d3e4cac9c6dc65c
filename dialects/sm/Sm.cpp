// Types, syntax and verifiers of the `sm` dialect.
#include "dialects/sm/Sm.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSwitch.h"
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
  Region &body = *s.addRegion();
  if (p.parseRegion(body, args))
    return failure();
  if (body.empty())
    body.emplaceBlock(); // `{}` is a kernel that does nothing
  return success();
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
// The type that an argument of this entry of params has; null for an unknown kind or batch field.
static Type parameterType(StringRef kind, StringRef name, MLIRContext *context) {
  Builder b(context);
  Type word = b.getI32Type(), longWord = b.getI64Type();
  Type field = llvm::StringSwitch<Type>(name)
                   .Case("cu_seqlens", longWord)
                   .Cases({"cu_wide", "sequences", "length", "tokens", "heads", "ratio", "wide_rows", "rows",
                           "wide_starts", "every", "checkpoints", "skips"},
                          word)
                   .Cases({"work", "source_rows", "sink_rows", "starts"}, longWord)
                   .Default(Type());
  return llvm::StringSwitch<Type>(kind)
      .Case("map", MapType::get(context))
      .Cases({"pointer", "stride"}, longWord)
      .Case("element", word)
      .Case("scalar", name == "options" ? word : b.getF32Type())
      .Case("batch", field)
      .Default(Type());
}

// What the bundle records of a tensor map.
static LogicalResult verifyMap(KernelOp op, DictionaryAttr entry) {
  auto element = entry.getAs<StringAttr>("element");
  if (!element || !llvm::is_contained({"bf16", "f16", "f32"}, element.getValue()))
    return op.emitOpError("expected element bf16, f16 or f32 of a map, got ") << entry;
  for (StringRef key : {"columns", "box_columns", "box_rows"})
    if (auto value = entry.getAs<IntegerAttr>(key);
        !value || value.getInt() <= 0 || (key != "columns" && value.getInt() > 256))
      return op.emitOpError("expected ") << key << " of a map, in 1..256 for a box, got " << entry;
  return success();
}

static LogicalResult verifyParameter(KernelOp op, BlockArgument argument, Attribute attribute) {
  auto entry = dyn_cast<DictionaryAttr>(attribute);
  auto text = [&](StringRef key) { return entry ? entry.getAs<StringAttr>(key) : StringAttr(); };
  StringAttr kind = text("kind"), name = text("name");
  if (!kind || !name)
    return op.emitOpError("expected kind and name in an entry of params, got ") << attribute;
  Type type = parameterType(kind.getValue(), name.getValue(), op.getContext());
  if (!type)
    return op.emitOpError("expected a known kind or batch field in params, got ") << entry;
  if (type != argument.getType())
    return op.emitOpError("expected argument #")
           << argument.getArgNumber() << " of type " << type << " for " << entry << ", got " << argument.getType();
  if (kind.getValue() == "stride" && !entry.getAs<IntegerAttr>("axis"))
    return op.emitOpError("expected the axis of a stride, got ") << entry;
  return kind.getValue() == "map" ? verifyMap(op, entry) : success();
}

LogicalResult KernelOp::verifyRegions() {
  if (getParams().size() != getBody().getNumArguments())
    return emitOpError("expected one entry of params for each of ")
           << getBody().getNumArguments() << " arguments, got " << getParams().size();
  for (auto [argument, entry] : llvm::zip(getBody().getArguments(), getParams()))
    if (failed(verifyParameter(*this, argument, entry)))
      return failure();
  if (getThreads() % 128 || !getThreads() || getThreads() > 1024)
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
  if (id < 0 || id > 15)
    return op->emitOpError("expected a barrier in 0..15, got ") << id;
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
LogicalResult BulkStoreOp::verify() { return verifyRank(*this, getCoords().size()); }

//===-- products ----------------------------------------------------------------===//
LogicalResult WgmmaOp::verify() {
  int64_t n = getN();
  if (n % 8 || n < 8 || n > 256)
    return emitOpError("expected n a multiple of 8 up to 256, got ") << n;
  if (int64_t(getD().size()) != n / 2)
    return emitOpError("expected ") << n / 2 << " accumulator registers, got " << getD().size();
  if (!getAcc().empty() && getAcc().size() != getD().size())
    return emitOpError("expected an accumulator of ") << getD().size() << " registers, got " << getAcc().size();
  if (getADesc() ? !getA().empty() : getA().size() != 4)
    return emitOpError("expected A as four registers or as a descriptor");
  if (!getADesc() && getTransA())
    return emitOpError("cannot transpose an operand held in registers");
  return success();
}
LogicalResult MmaOp::verify() {
  if (!(getA().size() == 4 && getB().size() == 2) && !(getA().size() == 2 && getB().size() == 1))
    return emitOpError("expected 4 and 2 or 2 and 1 operand registers, got ")
           << getA().size() << " and " << getB().size();
  return getC().size() == 4 ? success() : emitOpError("expected 4 accumulator registers, got ") << getC().size();
}

//===-- memory --------------------------------------------------------------------===//
static LogicalResult verifyVector(Operation *op, TypeRange types, bool narrow = false) {
  size_t n = types.size();
  if (narrow) {
    if (n != 1 || !types[0].isInteger(32))
      return op->emitOpError("expected one i32 for a narrow access");
    return success();
  }
  if (n != 1 && n != 2 && n != 4)
    return op->emitOpError("expected 1, 2 or 4 registers, got ") << n;
  if (!llvm::all_equal(types))
    return op->emitOpError("expected registers of one type");
  if (n * types[0].getIntOrFloatBitWidth() > 128)
    return op->emitOpError("expected at most 16 bytes, got ") << n << " of " << types[0];
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
