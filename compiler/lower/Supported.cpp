#include "compiler/lower/Supported.h"
#include "compiler/tile/Layout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
using namespace mlir;
using namespace tile;

namespace {
constexpr int64_t lanesWide = 64; // two tokens a lane

bool isSharedTile(BufType t) { return isTile(t) && !t.getElement().isF32() && !t.getTensor(); }
bool isF32Row(BufType t) { return isRowBuffer(t) && t.getElement().isF32(); }
bool isBits(Type t) { return isa<FragType>(t) && isa<AnyFloatType>(cast<FragType>(t).getElement()); }
bool isF32(Value v) { return cast<FragType>(v.getType()).getElement().isF32(); }

bool canLoad(FragType frag, ViewType view) {
  bool any = isa<AnyFloatType>(view.getElement());
  if (frag.dim(0) == 1 && frag.dim(1) > 1)
    return any && isBits(frag) && frag.dim(1) == lanesWide;
  return frag.getElement().isF32() && (any || (frag.dim(0) > 1 && view.getElement().isF32()));
}
bool canStore(FragType frag, ViewType view) {
  return canLoad(frag, view) ||
         (frag.dim(0) > 1 && !view.getPacked() && !frag.getElement().isF32() &&
          frag.getElement() == view.getElement() && intOf(view.getUnit()) + 1 == int64_t(view.getDims().size()));
}
bool canWrite(FragType frag, BufType buf) {
  if (isRowBuffer(buf))
    return isF32Row(buf) && frag.getElement().isF32() &&
           (frag.dim(0) > 1 || (frag.getLanes() && frag.dim(1) == lanesWide));
  if (frag.getElement().isF32())
    return isSharedTile(buf);
  return frag.getElement() == buf.getElement() && buf.dim(1) == 16;
}
bool isBox(SubOp op) {
  return isSharedTile(op.getBuf().getType()) && isSharedTile(op.getBox().getType()) &&
         matchPattern(op.getOffsets()[0], m_Zero());
}
bool keepsHalves(ConvertOp op) {
  Type from = op.getValue().getType().getElement(), to = op.getType().getElement();
  return from == to || from.isF32() || to.isF32();
}

// Why an op has no lowering; null where it has one, or is none of those that may have none.
const char *reason(Operation &op, bool perWarp) {
  auto unless = [](bool fine, const char *text) { return fine ? nullptr : text; };
  const char *copies = "expected a tile of 16-bit elements at least 64 columns wide";
  const char *global =
      "expected a matrix or one element in fp32, or 64 tokens of a row as bits, and a view of any element type, or of "
      "the fragment's";
  return llvm::TypeSwitch<Operation *, const char *>(&op)
      .Case([&](CopyInOp o) { return unless(isSharedTile(o.getBuf().getType()), copies); })
      .Case([&](CopyOutOp o) { return unless(isSharedTile(o.getBuf().getType()), copies); })
      .Case([&](LoadOp o) { return unless(canLoad(o.getFrag().getType(), o.getView().getType()), global); })
      .Case([&](StoreOp o) { return unless(canStore(o.getFrag().getType(), o.getView().getType()), global); })
      .Case([&](ReadOp o) {
        BufType buf = o.getBuf().getType();
        return unless(isF32Row(buf) || (isSharedTile(buf) && o.getTrans()),
                      "expected a row of fp32, or a tile, transposed");
      })
      .Case([&](UnpackOp o) { return unless(isF32(o.getFrag()), "expected fp32"); })
      .Case([&](WriteOp o) {
        return unless(
            canWrite(o.getFrag().getType(), o.getBuf().getType()),
            "expected a row of 64 tokens over the lanes, a column to a row, fp32 to a tile, or 16-bit elements to "
            "scratch");
      })
      .Case([&](SubOp o) { return unless(isBox(o), "expected whole rows of a tile, whole boxes of 64 columns"); })
      .Case([&](ConvertOp o) { return unless(keepsHalves(o), "expected fp32 on one side"); })
      .Case([&](CumsumOp o) {
        FragType t = o.getValue().getType();
        return unless(t.getLanes() && t.dim(1) == lanesWide, "expected 64 tokens over the lanes of a warp");
      })
      .Case([&](PadOp o) {
        FragType t = o.getValue().getType();
        return unless(isF32(o.getValue()) && t.getLanes() && t.dim(1) == lanesWide,
                      "expected 64 tokens over the lanes of a warp");
      })
      .Case([&](SolveBlocksOp o) {
        return unless(isF32(o.getA()) && isF32Row(o.getBeta().getType()), "expected fp32, and a row of fp32 for beta");
      })
      .Case([&](DiagOp o) { return unless(isF32(o.getValue()), "expected fp32"); })
      .Case([&](RowSquaresOp o) { return unless(isSharedTile(o.getBuf().getType()), copies); })
      .Case<BlockMmaOp, WriteBlocksOp>([&](auto) { return unless(perWarp, "expected tile.per_warp around it"); })
      .Case<AddOp, SubFOp, MulOp, Exp2Op, SigmoidOp, SoftplusOp, Log2Op, RsqrtOp, ScaleOp, AtLeastOp, LowerOp>(
          [&](auto o) { return unless(isF32(o->getOperand(0)), "expected fp32"); })
      .Default(nullptr);
}
} // namespace

LogicalResult tile::checkSupported(Operation &op, int64_t warps, bool perWarp) {
  for (Type t : op.getResultTypes())
    if (auto f = dyn_cast<FragType>(t);
        f && ((f.dim(0) != 1 && f.dim(0) != 16 * warps) || (f.dim(1) != 1 && f.dim(1) % 16)))
      return op.emitOpError("expected 1 row or 16 a warp, and 1 column or a multiple of 16, got ") << f;
  bool moves = isa<LoadOp, WidenOp, UndefOp, OneWarpOp, scf::IfOp>(op);
  if (!moves && (llvm::any_of(op.getOperandTypes(), isBits) || llvm::any_of(op.getResultTypes(), isBits)))
    return op.emitOpError("expected fp32, which tile.widen makes of bits");
  const char *text = reason(op, perWarp);
  return text ? op.emitOpError(text) : success();
}
