// Types, printing and verifiers of the `tile` dialect.
#include "dialects/tile/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
using namespace mlir;
using namespace tile;

//===-- parameter expressions -----------------------------------------------===//
static ExprAttr makeExpr(MLIRContext *ctx, StringRef op, ArrayRef<Attribute> args) {
  return ExprAttr::get(ctx, StringAttr::get(ctx, op), args);
}

static ParseResult parseExprAtom(AsmParser &p, Attribute &e);
static ParseResult parseExpr(AsmParser &p, Attribute &e);

// Precedence climbing; `min` is the weakest binding operator to accept.
static ParseResult parseExprFrom(AsmParser &p, Attribute &e, int min) {
  if (parseExprAtom(p, e))
    return failure();
  auto accept = [&](int level) -> StringRef {
    switch (level) {
    case 1:
      return succeeded(p.parseOptionalKeyword("or")) ? "or" : "";
    case 2:
      return succeeded(p.parseOptionalKeyword("and")) ? "and" : "";
    case 3:
      for (StringRef k : {"eq", "ne", "le", "ge"})
        if (succeeded(p.parseOptionalKeyword(k)))
          return k;
      return "";
    case 4:
      if (succeeded(p.parseOptionalPlus()))
        return "+";
      return succeeded(p.parseOptionalMinus()) ? "-" : "";
    default:
      if (succeeded(p.parseOptionalStar()))
        return "*";
      if (succeeded(p.parseOptionalSlash()))
        return "/";
      return succeeded(p.parseOptionalKeyword("mod")) ? "mod" : "";
    }
  };
  for (int level = 5; level >= min; --level)
    for (StringRef op = accept(level); !op.empty(); op = accept(level)) {
      Attribute rhs;
      if (parseExprFrom(p, rhs, level + 1))
        return failure();
      e = makeExpr(p.getContext(), op, {e, rhs});
    }
  return success();
}

static ParseResult parseExprAtom(AsmParser &p, Attribute &e) {
  MLIRContext *ctx = p.getContext();
  int64_t value = 0;
  if (OptionalParseResult r = p.parseOptionalInteger(value); r.has_value()) {
    e = IntegerAttr::get(IntegerType::get(ctx, 64), value);
    return *r;
  }
  if (succeeded(p.parseOptionalLParen()))
    return failure(parseExpr(p, e) || p.parseRParen());
  if (succeeded(p.parseOptionalKeyword("not"))) {
    if (parseExprAtom(p, e))
      return failure();
    e = makeExpr(ctx, "not", {e});
    return success();
  }
  StringRef name;
  if (p.parseKeyword(&name))
    return failure();
  e = makeExpr(ctx, "ref", {StringAttr::get(ctx, name)});
  return success();
}

static ParseResult parseExpr(AsmParser &p, Attribute &e) {
  if (parseExprFrom(p, e, 1))
    return failure();
  if (failed(p.parseOptionalQuestion()))
    return success();
  Attribute then, otherwise;
  if (parseExprFrom(p, then, 1) || p.parseColon() || parseExprFrom(p, otherwise, 1))
    return failure();
  e = makeExpr(p.getContext(), "?", {e, then, otherwise});
  return success();
}

static void printExpr(AsmPrinter &p, Attribute e, bool nested = false) {
  if (auto i = dyn_cast<IntegerAttr>(e)) {
    p << i.getInt();
    return;
  }
  auto x = cast<ExprAttr>(e);
  StringRef op = x.getOp();
  if (op == "ref") {
    p << cast<StringAttr>(x.getArgs()[0]).getValue();
  } else if (op == "not") {
    p << "not ";
    printExpr(p, x.getArgs()[0], true);
  } else {
    p << (nested ? "(" : "");
    printExpr(p, x.getArgs()[0], true);
    p << ' ' << op << ' ';
    printExpr(p, x.getArgs()[1], true);
    if (op == "?") {
      p << " : ";
      printExpr(p, x.getArgs()[2], true);
    }
    p << (nested ? ")" : "");
  }
}
static void printExpr(OpAsmPrinter &p, Operation *, Attribute e) { printExpr(static_cast<AsmPrinter &>(p), e); }

Attribute ExprAttr::parse(AsmParser &p, Type) {
  Attribute e;
  if (p.parseLess() || parseExpr(p, e) || p.parseGreater())
    return {};
  return e;
}
void ExprAttr::print(AsmPrinter &p) const {
  p << '<';
  printExpr(p, *this);
  p << '>';
}

//===-- shaped types -----------------------------------------------------------===//
static ParseResult parseShape(AsmParser &p, SmallVector<Attribute> &dims, Type &element) {
  auto dim = [&]() -> ParseResult {
    if (succeeded(p.parseOptionalQuestion()))
      return dims.push_back(UnitAttr::get(p.getContext())), success();
    return parseExpr(p, dims.emplace_back());
  };
  if (p.parseCommaSeparatedList(AsmParser::Delimiter::Square, dim) || p.parseComma())
    return failure();
  if (OptionalParseResult r = p.parseOptionalType(element); r.has_value())
    return *r;
  StringRef name;
  if (p.parseKeyword(&name))
    return failure();
  element = name == "any" ? Type(AnyFloatType::get(p.getContext()))
                          : DTypeType::get(p.getContext(), StringAttr::get(p.getContext(), name));
  return success();
}
static void printShape(AsmPrinter &p, ArrayRef<Attribute> dims, Type element) {
  p << '[';
  llvm::interleaveComma(dims, p.getStream(), [&](Attribute d) {
    if (isa<UnitAttr>(d))
      p << '?';
    else
      printExpr(p, d);
  });
  p << "], ";
  if (auto d = dyn_cast<DTypeType>(element))
    p << d.getName().getValue();
  else if (isa<AnyFloatType>(element))
    p << "any";
  else
    p << element;
}
Type FragType::parse(AsmParser &p) {
  SmallVector<Attribute> dims;
  Type element;
  bool lanes = false;
  if (p.parseLess() || parseShape(p, dims, element))
    return {};
  if (succeeded(p.parseOptionalComma())) {
    if (p.parseKeyword("lanes"))
      return {};
    lanes = true;
  }
  if (p.parseGreater())
    return {};
  return getChecked([&] { return p.emitError(p.getNameLoc()); }, p.getContext(), dims, element, lanes);
}
void FragType::print(AsmPrinter &p) const {
  p << '<';
  printShape(p, getDims(), getElement());
  p << (getLanes() ? ", lanes>" : ">");
}
Type ItemsType::parse(AsmParser &p) {
  Attribute split, columns;
  if (p.parseLess() || parseExpr(p, split) || p.parseComma() || parseExpr(p, columns) || p.parseGreater())
    return {};
  return get(p.getContext(), split, columns);
}
void ItemsType::print(AsmPrinter &p) const {
  p << '<';
  printExpr(p, getSplit());
  p << ", ";
  printExpr(p, getColumns());
  p << '>';
}
Type ViewType::parse(AsmParser &p) {
  SmallVector<Attribute> dims;
  Type element;
  if (p.parseLess() || parseShape(p, dims, element))
    return {};
  Attribute unit = IntegerAttr::get(IntegerType::get(p.getContext(), 64), dims.size() - 1);
  bool packed = false;
  if (succeeded(p.parseOptionalComma())) {
    packed = succeeded(p.parseOptionalKeyword("packed"));
    if (!packed && (p.parseKeyword("unit") || parseExpr(p, unit)))
      return {};
  }
  return p.parseGreater() ? Type() : get(p.getContext(), dims, element, unit, packed);
}
void ViewType::print(AsmPrinter &p) const {
  p << '<';
  printShape(p, getDims(), getElement());
  auto n = dyn_cast<IntegerAttr>(getUnit());
  if (getPacked()) {
    p << ", packed";
  } else if (!n || n.getInt() + 1 != int64_t(getDims().size())) {
    p << ", unit ";
    printExpr(p, getUnit());
  }
  p << '>';
}
Type BufType::parse(AsmParser &p) {
  SmallVector<Attribute> dims;
  Type element;
  bool tensor = false;
  if (p.parseLess() || parseShape(p, dims, element))
    return {};
  if (succeeded(p.parseOptionalComma())) {
    if (p.parseKeyword("tensor"))
      return {};
    tensor = true;
  }
  if (p.parseGreater())
    return {};
  return getChecked([&] { return p.emitError(p.getNameLoc()); }, p.getContext(), dims, element, tensor);
}
void BufType::print(AsmPrinter &p) const {
  p << '<';
  printShape(p, getDims(), getElement());
  p << (getTensor() ? ", tensor>" : ">");
}

//===-- shape rules ---------------------------------------------------------------===//
static Attribute one(MLIRContext *ctx) { return IntegerAttr::get(IntegerType::get(ctx, 64), 1); }
static bool isOne(Attribute d) { return isa<IntegerAttr>(d) && cast<IntegerAttr>(d).getInt() == 1; }

static LogicalResult inferBroadcast(std::optional<Location> loc, Type l, Type r, SmallVectorImpl<Type> &out) {
  auto a = cast<FragType>(l), b = cast<FragType>(r);
  if (a.getElement() != b.getElement())
    return emitOptionalError(loc, "expected equal element types, got ", a, " and ", b);
  SmallVector<Attribute> dims;
  for (auto [x, y] : llvm::zip(a.getDims(), b.getDims())) {
    if (x != y && !isOne(x) && !isOne(y))
      return emitOptionalError(loc, "cannot broadcast ", a, " with ", b);
    dims.push_back(isOne(x) ? y : x);
  }
  auto meets = [](FragType lanes, FragType other) {
    return lanes.getLanes() && !other.getLanes() && !isOne(other.getDims()[1]);
  };
  if (meets(a, b) || meets(b, a))
    return emitOptionalError(loc, "one operand is spread over the lanes of a warp, the other over its columns: ", a,
                             " and ", b);
  out.push_back(FragType::get(l.getContext(), dims, a.getElement(), a.getLanes() || b.getLanes()));
  return success();
}
#define BINARY(OP)                                                                                                     \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a,                            \
                                     SmallVectorImpl<Type> &out) {                                                     \
    return inferBroadcast(loc, a.getLhs().getType(), a.getRhs().getType(), out);                                       \
  }
BINARY(AddOp)
BINARY(SubFOp)
BINARY(MulOp)
#undef BINARY

static std::pair<SmallVector<Attribute>, Type> shapeOf(Type t) {
  if (auto p = dyn_cast<PendingType>(t))
    t = p.getValue();
  if (auto f = dyn_cast<FragType>(t))
    return {llvm::to_vector(f.getDims()), f.getElement()};
  auto b = cast<BufType>(t);
  return {llvm::to_vector(b.getDims()), b.getElement()};
}
static FragType f32Frag(MLIRContext *ctx, ArrayRef<Attribute> dims) {
  return FragType::get(ctx, dims, Float32Type::get(ctx));
}

LogicalResult MmaOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location> loc, Adaptor op,
                                      SmallVectorImpl<Type> &out) {
  if (op.getC() && isa<BufType>(op.getC().getType())) { // accumulate in place, in tensor memory
    out.push_back(PendingType::get(ctx, op.getC().getType()));
    return success();
  }
  auto a = shapeOf(op.getA().getType()).first, b = shapeOf(op.getB().getType()).first;
  out.push_back(PendingType::get(ctx, f32Frag(ctx, {a[op.getTransA()], b[!op.getTransB()]})));
  return success();
}
MmaOp MmaOp::behind() {
  auto user = getD().hasOneUse() ? dyn_cast<MmaOp>(*getD().getUsers().begin()) : MmaOp();
  return user && user.before() == *this ? user : MmaOp();
}
LogicalResult MmaOp::verify() {
  auto [a, ta] = shapeOf(getA().getType());
  auto [b, tb] = shapeOf(getB().getType());
  Attribute ka = a[!getTransA()], kb = b[getTransB()];
  if (ka != kb)
    return emitOpError("contracts unequal dimensions: ") << getA().getType() << " and " << getB().getType();
  if (ta != tb)
    return emitOpError("expected operands of one element type, got ") << ta << " and " << tb;
  if (isa<FragType>(getA().getType()) && getTransA())
    return emitOpError("cannot transpose an operand held in registers");
  if (before() && (before()->getBlock() != (*this)->getBlock() || before().behind() != *this))
    return emitOpError("adds to a product that others use, or of another region");
  if (getC() && shapeOf(getC().getType()).first != shapeOf(getD().getType()).first)
    return emitOpError("expected an accumulator of shape ") << getD().getType() << ", got " << getC().getType();
  return success();
}
LogicalResult WaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, SmallVectorImpl<Type> &out) {
  out.push_back(cast<PendingType>(op.getPending().getType()).getValue());
  return success();
}
LogicalResult ReadyOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                        SmallVectorImpl<Type> &out) {
  out.push_back(PendingType::get(ctx, op.getValue().getType()));
  return success();
}
LogicalResult BlockMmaOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                           SmallVectorImpl<Type> &out) {
  out.push_back(f32Frag(ctx, shapeOf(op.getA().getType()).first));
  return success();
}
LogicalResult BlockMmaOp::verify() {
  if (isa<FragType>(getB().getType()) && getI() != 0)
    return emitOpError("reads block rows of other warps, which needs the right operand in a buffer");
  return success();
}
LogicalResult SolveBlocksOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                              SmallVectorImpl<Type> &out) {
  Attribute w = IntegerAttr::get(IntegerType::get(ctx, 64), 16);
  out.push_back(f32Frag(ctx, {shapeOf(op.getA().getType()).first[0], w}));
  return success();
}
LogicalResult SolveBlocksOp::verify() {
  if (!getFactor() || (getFactor().getType().getDims()[0] == getA().getType().getDims()[0] &&
                       isOne(getFactor().getType().getDims()[1])))
    return success();
  return emitOpError("expected a column of factors, one for each row of ")
         << getA().getType() << ", got " << getFactor().getType();
}
LogicalResult DiagOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                       SmallVectorImpl<Type> &out) {
  auto [dims, element] = shapeOf(op.getValue().getType());
  out.push_back(FragType::get(ctx, {dims[0], one(ctx)}, element));
  return success();
}
LogicalResult DiagOp::verify() {
  FragType type = getValue().getType();
  return type.getDims()[0] == type.getDims()[1] ? success() : emitOpError("expected a square fragment, got ") << type;
}
LogicalResult RowSquaresOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                             SmallVectorImpl<Type> &out) {
  out.push_back(f32Frag(ctx, {shapeOf(op.getBuf().getType()).first[0], one(ctx)}));
  return success();
}
LogicalResult ReadOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                       SmallVectorImpl<Type> &out) {
  auto [d, e] = shapeOf(op.getBuf().getType());
  if (op.getTrans())
    std::swap(d[0], d[1]);
  out.push_back(FragType::get(ctx, d, e));
  return success();
}
LogicalResult WriteOp::verify() {
  auto d = shapeOf(getFrag().getType()).first, b = shapeOf(getBuf().getType()).first;
  if (getTrans())
    std::swap(b[0], b[1]);
  return d == b ? success() : emitOpError("shapes differ: ") << getFrag().getType() << " and " << getBuf().getType();
}
LogicalResult ConvertOp::verify() {
  return getValue().getType().getDims() == getType().getDims() ? success() : emitOpError("must keep the shape");
}
LogicalResult LastOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                       SmallVectorImpl<Type> &out) {
  out.push_back(FragType::get(ctx, {one(ctx), one(ctx)}, shapeOf(op.getValue().getType()).second));
  return success();
}
LogicalResult GetOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, SmallVectorImpl<Type> &out) {
  llvm::append_range(out, cast<RingType>(op.getRing().getType()).getSlot());
  return success();
}

//===-- regions ---------------------------------------------------------------------===//
static ParseResult parseBody(OpAsmParser &p, OperationState &s, ArrayRef<OpAsmParser::Argument> args) {
  return failure(p.parseRegion(*s.addRegion(), args) || p.parseOptionalAttrDict(s.attributes));
}
static void printBody(OpAsmPrinter &p, Operation *op) {
  p.printRegion(op->getRegion(0), /*printEntryBlockArgs=*/false);
  SmallVector<NamedAttribute> attrs = llvm::to_vector(op->getDiscardableAttrs());
  if (auto kernel = dyn_cast<KernelOp>(op))
    attrs.emplace_back("names", kernel.getNames());
  p.printOptionalAttrDict(attrs);
}
static void printArgs(OpAsmPrinter &p, Region &r, bool types = true) {
  p << '(';
  llvm::interleaveComma(r.getArguments(), p, [&](BlockArgument a) {
    if (types)
      p.printRegionArgument(a);
    else
      p << a;
  });
  p << ") ";
}
static ParseResult parseNamed(OpAsmParser &p, OperationState &s, bool keepNames) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (p.parseSymbolName(name, "sym_name", s.attributes) ||
      p.parseArgumentList(args, AsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  if (parseBody(p, s, args))
    return failure();
  if (!keepNames || s.attributes.get("names"))
    return success();
  SmallVector<StringRef> names; // of the text: they are the contract with the runtime
  for (auto &a : args)
    names.push_back(a.ssaName.name.drop_front());
  s.addAttribute("names", p.getBuilder().getStrArrayAttr(names));
  return success();
}
ParseResult KernelOp::parse(OpAsmParser &p, OperationState &s) { return parseNamed(p, s, true); }
ParseResult ProcOp::parse(OpAsmParser &p, OperationState &s) { return parseNamed(p, s, false); }
#define NAMED(OP)                                                                                                      \
  void OP::print(OpAsmPrinter &p) {                                                                                    \
    p << ' ';                                                                                                          \
    p.printSymbolName(getSymName());                                                                                   \
    printArgs(p, getBody());                                                                                           \
    printBody(p, *this);                                                                                               \
  }
NAMED(KernelOp)
NAMED(ProcOp)
#undef NAMED

ParseResult RoleOp::parse(OpAsmParser &p, OperationState &s) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  Attribute copies = one(p.getContext());
  auto clause = [&](StringRef key, StringRef attr) -> ParseResult {
    Attribute e;
    if (p.parseKeyword(key) || p.parseLParen() || parseExpr(p, e) || p.parseRParen())
      return failure();
    s.addAttribute(attr, e);
    return success();
  };
  if (p.parseSymbolName(name, "name", s.attributes) || clause("warps", "warps") || clause("registers", "registers"))
    return failure();
  if (succeeded(p.parseOptionalKeyword("copies"))) {
    if (p.parseLParen() || parseExpr(p, copies) || p.parseRParen())
      return failure();
    if (succeeded(p.parseOptionalKeyword("as"))) {
      if (p.parseArgument(args.emplace_back()))
        return failure();
      args.back().type = p.getBuilder().getI32Type();
    }
  }
  s.addAttribute("copies", copies);
  return parseBody(p, s, args);
}
void RoleOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getName());
  auto clause = [&](StringRef key, Attribute e) {
    p << ' ' << key << '(';
    printExpr(p, nullptr, e);
    p << ')';
  };
  clause("warps", getWarps());
  clause("registers", getRegisters());
  if (!isOne(getCopies()))
    clause("copies", getCopies());
  if (getBody().getNumArguments()) {
    if (isOne(getCopies()))
      clause("copies", getCopies());
    p << " as " << getBody().getArgument(0);
  }
  p << ' ';
  printBody(p, *this);
}
// Of whole tiles, or of pieces of them.
static SmallVector<Type> itemFields(MLIRContext *ctx, bool pieces) {
  SmallVector<Type> fields(pieces ? ForeachOp::pieceFields : ForeachOp::tileFields, IntegerType::get(ctx, 32));
  fields[0] = SpanType::get(ctx);
  return fields;
}
ParseResult ForeachOp::parse(OpAsmParser &p, OperationState &s) {
  OpAsmParser::UnresolvedOperand items;
  Type type;
  SmallVector<OpAsmParser::Argument> args;
  if (p.parseArgumentList(args, AsmParser::Delimiter::Paren) || p.parseKeyword("in") || p.parseOperand(items) ||
      p.parseColonType(type) || p.resolveOperand(items, type, s.operands))
    return failure();
  SmallVector<Type> fields = itemFields(p.getContext(), args.size() > tileFields);
  if (fields.size() != args.size())
    return p.emitError(p.getNameLoc(), "expected ")
           << tileFields << " names, one for each field of an item, or " << pieceFields << " for pieces of them";
  for (auto [arg, t] : llvm::zip(args, fields))
    arg.type = t;
  return parseBody(p, s, args);
}
void ForeachOp::print(OpAsmPrinter &p) {
  p << ' ';
  printArgs(p, getBody(), false);
  p << "in " << getItems() << " : " << getItems().getType() << ' ';
  printBody(p, *this);
}
LogicalResult ForeachOp::verify() {
  if (!llvm::equal(getBody().getArgumentTypes(), itemFields(getContext(), hasPieces())))
    return emitOpError("expected the fields of an item, got ") << getBody().getArgumentTypes();
  return success();
}
ParseResult PutOp::parse(OpAsmParser &p, OperationState &s) {
  OpAsmParser::UnresolvedOperand ring;
  Type type;
  SmallVector<OpAsmParser::Argument> args;
  if (succeeded(p.parseOptionalKeyword("unread")))
    s.addAttribute("unread", p.getBuilder().getUnitAttr());
  if (p.parseOperand(ring) || p.parseKeyword("as") || p.parseArgumentList(args, AsmParser::Delimiter::Paren) ||
      p.parseColonType(type) || p.resolveOperand(ring, type, s.operands))
    return failure();
  auto slot = dyn_cast<RingType>(type);
  if (!slot || slot.getSlot().size() != args.size())
    return p.emitError(p.getNameLoc(), "expected one name for each buffer of ") << type;
  for (auto [arg, t] : llvm::zip(args, slot.getSlot()))
    arg.type = t;
  return parseBody(p, s, args);
}
void PutOp::print(OpAsmPrinter &p) {
  p << (getUnread() ? " unread " : " ") << getRing() << " as ";
  printArgs(p, getBody(), false);
  p << ": " << getRing().getType() << ' ';
  printBody(p, *this);
}
ParseResult IfOp::parse(OpAsmParser &p, OperationState &s) {
  Attribute cond;
  if (parseExpr(p, cond) || p.parseOptionalArrowTypeList(s.types))
    return failure();
  s.addAttribute("cond", cond);
  Region *then = s.addRegion(), *otherwise = s.addRegion();
  if (p.parseRegion(*then))
    return failure();
  ensureTerminator(*then, p.getBuilder(), s.location);
  if (succeeded(p.parseOptionalKeyword("else"))) {
    if (p.parseRegion(*otherwise))
      return failure();
    ensureTerminator(*otherwise, p.getBuilder(), s.location);
  }
  return success();
}
void IfOp::print(OpAsmPrinter &p) {
  p << ' ';
  printExpr(p, nullptr, getCond());
  p.printOptionalArrowTypeList(getResultTypes());
  p << ' ';
  p.printRegion(getThen(), false, /*printBlockTerminators=*/getNumResults() != 0);
  if (!getOtherwise().empty()) {
    p << " else ";
    p.printRegion(getOtherwise(), false, getNumResults() != 0);
  }
}
LogicalResult IfOp::verify() {
  if (getOtherwise().empty() && getNumResults())
    return emitOpError("with results needs an else");
  for (Region *r : getRegions())
    if (!r->empty() && r->front().getTerminator()->getOperandTypes() != getResultTypes())
      return emitOpError("expected both sides to yield the results");
  return success();
}

//===-- dialect ---------------------------------------------------------------------------===//
#include "dialects/tile/TileDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/tile/TileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/tile/TileOps.cpp.inc"
void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tile/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tile/TileOps.cpp.inc"
      >();
}
