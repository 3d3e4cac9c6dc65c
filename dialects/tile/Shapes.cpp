// Verifiers of types and of the ops that move data: ranks, element types, extents. Dimensions that are still
// expressions are compared once they are numbers.
#include "dialects/tile/Tile.h"
using namespace mlir;
using namespace tile;

static bool isElement(Type t) { return t.isF32() || t.isBF16() || t.isF16() || isa<DTypeType>(t); }
static bool isOne(Attribute d) { return isa<IntegerAttr>(d) && intOf(d) == 1; }
// Where both are numbers.
static bool exceeds(Attribute a, Attribute b) {
  return isa<IntegerAttr>(a) && isa<IntegerAttr>(b) && intOf(a) > intOf(b);
}
static bool differ(Type a, Type b) { return a != b && !isa<DTypeType>(a) && !isa<DTypeType>(b); }

//===-- types -----------------------------------------------------------------===//
static LogicalResult verifyMatrix(function_ref<InFlightDiagnostic()> emit, ArrayRef<Attribute> dims, Type element,
                                  bool orBits) {
  if (dims.size() != 2)
    return emit() << "expected two dimensions, got " << dims.size();
  for (Attribute d : dims)
    if (isa<UnitAttr>(d) || (isa<IntegerAttr>(d) && intOf(d) < 1))
      return emit() << "expected dimensions of at least 1 that are known, got " << d;
  if (!isElement(element) && !(orBits && isa<AnyFloatType>(element)))
    return emit() << "expected elements f32, bf16, f16 or a parameter, got " << element;
  return success();
}
LogicalResult FragType::verify(function_ref<InFlightDiagnostic()> emit, ArrayRef<Attribute> dims, Type element, bool) {
  return verifyMatrix(emit, dims, element, true);
}
LogicalResult BufType::verify(function_ref<InFlightDiagnostic()> emit, ArrayRef<Attribute> dims, Type element, bool) {
  return verifyMatrix(emit, dims, element, false);
}
LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emit, ArrayRef<Type> slot) {
  for (Type t : slot)
    if (!isa<BufType>(t))
      return emit() << "expected buffers in the slots of a ring, got " << t;
  return success();
}
LogicalResult PendingType::verify(function_ref<InFlightDiagnostic()> emit, Type value) {
  return isa<FragType, BufType>(value) ? success()
                                       : emit() << "expected a product of fragments or buffers, got " << value;
}

//===-- rings and boxes ---------------------------------------------------------===//
LogicalResult RingOp::verify() {
  if (isa<IntegerAttr>(getDepth()) && intOf(getDepth()) < 1)
    return emitOpError("expected a depth of at least 1, got ") << intOf(getDepth());
  return success();
}
LogicalResult SubOp::verify() {
  BufType whole = getBuf().getType(), box = getBox().getType();
  if (getOffsets().size() != 2)
    return emitOpError("expected an offset for rows and one for columns, got ") << getOffsets().size();
  if (differ(whole.getElement(), box.getElement()) || exceeds(box.getDims()[0], whole.getDims()[0]) ||
      exceeds(box.getDims()[1], whole.getDims()[1]))
    return emitOpError("expected a box of ") << whole << ", got " << box;
  return success();
}

//===-- global memory -------------------------------------------------------------===//
// A chunk's rows, at a head and from a column on, or rows of a matrix, from a column on.
static LogicalResult verifyCopy(Operation *op, ViewType view, ValueRange index, Value chunk, BufType buf) {
  size_t rank = view.getDims().size();
  bool tokens = rank == 3 && !index.empty() && index.size() <= 2, rows = rank == 2 && index.size() <= 1;
  if (!(tokens || rows) || !chunk)
    return op->emitOpError("expected a chunk of a view [tokens, heads, columns] at a head and a column, or of a view "
                           "[rows, columns], got ")
           << index.size() << " indices of " << view;
  if (differ(view.getElement(), buf.getElement()) || exceeds(buf.getDims()[1], view.getDims().back()))
    return op->emitOpError("expected rows of ") << view << ", got " << buf;
  return success();
}
LogicalResult CopyInOp::verify() {
  if (!(*this)->getParentOfType<PutOp>())
    return emitOpError("expects parent op 'tile.put'");
  ViewType view = getView().getType();
  if (view.getPacked() && (getChunk() || getIndex().size() != view.getDims().size()))
    return emitOpError("expected an index for each axis of ") << view << ", got " << getIndex().size();
  if (view.getPacked())
    return success();
  return verifyCopy(*this, getView().getType(), getIndex(), getChunk(), getBuf().getType());
}
LogicalResult CopyOutOp::verify() {
  return verifyCopy(*this, getView().getType(), getIndex(), getChunk(), getBuf().getType());
}

LogicalResult UnpackOp::verify() {
  auto bits = [](auto type) {
    int64_t n = type.getElement().isF32() ? 32 : 16;
    for (Attribute dim : type.getDims())
      n *= isa<IntegerAttr>(dim) ? intOf(dim) : 0;
    return n;
  };
  int64_t have = 0, wanted = bits(getFrag().getType());
  for (Value buf : getBufs())
    have += bits(cast<BufType>(buf.getType()));
  if (have == wanted || !have || !wanted) // 0: of parameters
    return success();
  return emitOpError("expected buffers of ")
         << wanted / 8 << " bytes for " << getFrag().getType() << ", got " << have / 8;
}

static bool isMatrix(ViewType view, ValueRange index, FragType frag) {
  return view.getDims().size() >= 2 && index.size() == view.getDims().size() && !isOne(frag.getDims()[0]) &&
         (!view.getPacked() || view.getDims().back() == frag.getDims()[1]);
}
LogicalResult LoadOp::verify() {
  ViewType view = getView().getType();
  FragType frag = getFrag().getType();
  bool row = view.getDims().size() == 2 && getIndex().size() == 1 && isOne(frag.getDims()[0]);
  bool one =
      view.getDims().size() == 1 && getIndex().size() == 1 && isOne(frag.getDims()[0]) && isOne(frag.getDims()[1]);
  if (getChunk() ? row : one || isMatrix(view, getIndex(), frag))
    return success();
  return emitOpError("expected a chunk's row [1, n] of a view [tokens, heads], a matrix at an index for each axis, or "
                     "an element "
                     "[1, 1] of a view with one axis, got ")
         << frag << " at " << getIndex().size() << " indices of " << view;
}
LogicalResult StoreOp::verify() {
  if (isMatrix(getView().getType(), getIndex(), getFrag().getType()))
    return success();
  return emitOpError("expected a matrix at an index for each axis, got ")
         << getFrag().getType() << " at " << getIndex().size() << " indices of " << getView().getType();
}
LogicalResult ClearOp::verify() {
  if (getView().getType().getDims().size() != 3)
    return emitOpError("expected a view [tokens, heads, columns], got ") << getView().getType();
  return success();
}

//===-- rows -----------------------------------------------------------------------===//
static LogicalResult verifyRow(Operation *op, FragType frag) {
  return isOne(frag.getDims()[0]) ? success() : op->emitOpError("expected a row [1, n], got ") << frag;
}
LogicalResult CumsumOp::verify() { return verifyRow(*this, getValue().getType()); }
LogicalResult PadOp::verify() { return verifyRow(*this, getValue().getType()); }
LogicalResult LastOp::verify() { return verifyRow(*this, getValue().getType()); }

//===-- bits ----------------------------------------------------------------------===//
LogicalResult WidenOp::inferReturnTypes(MLIRContext *ctx, std::optional<Location>, Adaptor op,
                                        SmallVectorImpl<Type> &out) {
  auto bits = cast<FragType>(op.getBits().getType());
  out.push_back(FragType::get(ctx, bits.getDims(), Float32Type::get(ctx), bits.getLanes()));
  return success();
}
LogicalResult WidenOp::verify() {
  if (isa<AnyFloatType>(getBits().getType().getElement()) && isa<AnyFloatType>(getView().getType().getElement()))
    return success();
  return emitOpError("expected bits of a view of any element type, got ")
         << getBits().getType() << " of " << getView().getType();
}

//===-- columns ------------------------------------------------------------------===//
LogicalResult ColumnsOp::verify() {
  FragType from = getValue().getType(), to = getType();
  auto rows = dyn_cast<IntegerAttr>(from.getDims()[0]), kept = dyn_cast<IntegerAttr>(to.getDims()[0]);
  if ((rows && kept && rows != kept) || from.getElement() != to.getElement())
    return emitOpError("must keep rows and element type, got ") << from << " and " << to;
  auto columns = dyn_cast<IntegerAttr>(from.getDims()[1]), taken = dyn_cast<IntegerAttr>(to.getDims()[1]);
  if (columns && taken && (getFirst() % 16 || int64_t(getFirst()) + taken.getInt() > columns.getInt()))
    return emitOpError("expected columns from a multiple of 16 on, ") << to << " inside " << from;
  return success();
}
