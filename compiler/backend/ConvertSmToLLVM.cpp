// sm ops to LLVM: inline assembly for what has an effect beyond a thread's registers, LLVM's own ops for the rest.
#include "compiler/backend/Asm.h"
#include "compiler/backend/Passes.h"
#include "dialects/sm/Sm.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
using namespace mlir;
using namespace sm;

namespace gdnc {

#define GEN_PASS_DEF_CONVERTSMTOLLVM
#include "compiler/backend/Passes.h.inc"

namespace {

using Values = SmallVector<Value>;
constexpr unsigned sharedSpace = 3;

StringRef halfName(Half type) { return type == Half::BF16 ? "bf16" : "f16"; }

// Lowers the ops of one kernel. Each `lower` returns the values that replace the op's results.
class Lowering {
public:
  Lowering(Operation *op, Value zero) : b(op), loc(op->getLoc()), zero(zero) { b.setInsertionPoint(op); }

  // structure
  Values lower(SharedBaseOp op);
  Values lower(ThreadOp) { return special("tid.x"); }
  Values lower(BlockOp) { return read("mov.u32 ", b.getI32Type(), "%ctaid.x", Effect::Order); }
  Values lower(BlocksOp) { return read("mov.u32 ", b.getI32Type(), "%nctaid.x", Effect::Order); }
  Values lower(WarpOp op);
  Values lower(LaneOp) { return read("mov.u32 ", b.getI32Type(), "%laneid", Effect::Order); }
  Values lower(OpaqueOp op);
  Values lower(ClockOp) { return read("mov.u64 ", b.getI64Type(), "%clock64", Effect::Memory); }
  Values lower(TimerOp) { return read("mov.u64 ", b.getI64Type(), "%globaltimer", Effect::Memory); }
  Values lower(UndefOp op) { return {LLVM::UndefOp::create(b, loc, op.getType())}; }
  Values lower(MaxRegistersOp op);

  // synchronisation
  Values lower(MbarrierInitOp op);
  Values lower(FenceMbarrierInitOp) { return issue("fence.mbarrier_init.release.cluster;"); }
  Values lower(MbarrierArriveOp op);
  Values lower(MbarrierExpectOp op);
  Values lower(MbarrierWaitOp op);
  Values lower(BarSyncOp op) { return issue("bar.sync " + Twine(op.getId()) + ", " + Twine(op.getThreads()) + ";"); }
  Values lower(BarArriveOp op) {
    return issue("bar.arrive " + Twine(op.getId()) + ", " + Twine(op.getThreads()) + ";");
  }
  Values lower(WarpSyncOp) { return issue("bar.warp.sync -1;"); }
  Values lower(FenceAsyncOp) { return issue("fence.proxy.async.shared::cta;"); }

  // between blocks
  Values lower(FlagLoadOp op);
  Values lower(FlagWaitOp op);
  Values lower(FlagRaiseOp op);
  Values lower(AtomicAddOp op);
  Values lower(AtomicCasOp op);
  Values lower(GridWaitOp) { return issue("griddepcontrol.wait;"); }
  Values lower(FenceAsyncGlobalOp) { return issue("fence.proxy.async.global;"); }

  // bulk copies
  Values lower(BulkLoadOp op);
  Values lower(BulkCopyOp op);
  Values lower(BulkPrefetchOp op);
  Values lower(BulkStoreOp op);
  Values lower(BulkCommitOp) { return issue("cp.async.bulk.commit_group;"); }
  Values lower(BulkWaitOp op);

  // products
  Values lower(WgmmaFenceOp op) { return tied("wgmma.fence.sync.aligned;", op.getValues()); }
  Values lower(WgmmaOp op);
  Values lower(WgmmaCommitOp) { return issue("wgmma.commit_group.sync.aligned;"); }
  Values lower(WgmmaWaitOp op) {
    return tied("wgmma.wait_group.sync.aligned " + Twine(op.getLeaves()) + ";", op.getValues());
  }
  Values lower(MmaOp op);

  // a warp's registers
  Values lower(LdmatrixOp op);
  Values lower(StmatrixOp op);
  Values lower(MovmatrixOp op);
  Values lower(ShuffleOp op);
  Values lower(AnyOp op);
  Values lower(ElectOp op);

  // memory
  Values lower(LoadSharedOp op);
  Values lower(StoreSharedOp op);
  Values lower(LoadGlobalOp op);
  Values lower(StoreGlobalOp op);

  // arithmetic
  Values lower(PackOp op);
  Values lower(UnpackOp op);
  Values lower(Ex2Op op) { return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", b.getF32Type(), op.getValue()); }
  Values lower(RsqrtOp op) { return intrinsic("llvm.nvvm.rsqrt.approx.ftz.f", b.getF32Type(), op.getValue()); }

private:
  Asm assembly() { return Asm(b, loc); }
  Values issue(const Twine &text) { return assembly().emit(text, Effect::Memory); }
  Values tied(const Twine &text, ValueRange values);
  Values read(const Twine &instruction, Type type, const Twine &source, Effect effect);
  Values intrinsic(const Twine &name, Type type, ValueRange operands) {
    return {LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), operands).getResult(0)};
  }
  Values special(const Twine &name) { return intrinsic("llvm.nvvm.read.ptx.sreg." + name, b.getI32Type(), {}); }
  Value constant(int32_t value) { return LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }
  Value sharedPointer(Value address) {
    return LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace), address);
  }

  OpBuilder b;
  Location loc;
  Value zero;
};

//===-- structure -----------------------------------------------------------===//
Values Lowering::lower(SharedBaseOp op) {
  auto module = op->getParentOfType<ModuleOp>();
  StringRef name = "gdn_shared";
  if (!module.lookupSymbol(name)) {
    auto atTop = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(atTop, module.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
                           LLVM::Linkage::External, name, /*value=*/Attribute(), /*alignment=*/1024, sharedSpace);
  }
  Value pointer = LLVM::AddressOfOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), sharedSpace), name);
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
  // Aligned already. But ptxas keeps the bare address of a symbol in a vector register, from where every descriptor of
  // a product has to cross to a uniform one; a value that it computes stays uniform.
  Asm a = assembly();
  std::string result = a.out(b.getI32Type());
  return a.emit("and.b32 " + result + ", " + a.in(address) + ", -1024;", Effect::None);
}

Values Lowering::lower(WarpOp op) {
  Value thread = special("tid.x")[0];
  Value warp = LLVM::LShrOp::create(b, loc, thread, constant(5));
  Asm a = assembly();
  std::string result = a.out(b.getI32Type());
  return a.emit("shfl.sync.idx.b32 " + result + ", " + a.in(warp) + ", 0, 31, -1;", Effect::Order);
}

Values Lowering::lower(OpaqueOp op) {
  Asm a = assembly();
  a.inout(op.getValue());
  return a.emit("", Effect::Order);
}

Values Lowering::read(const Twine &instruction, Type type, const Twine &source, Effect effect) {
  Asm a = assembly();
  std::string result = a.out(type);
  return a.emit(instruction + result + ", " + source + ";", effect);
}

Values Lowering::lower(MaxRegistersOp op) {
  return assembly().emit(Twine("setmaxnreg.") + (op.getIncrease() ? "inc" : "dec") + ".sync.aligned.u32 " +
                             Twine(op.getCount()) + ";",
                         Effect::Order);
}

//===-- synchronisation -------------------------------------------------------===//
Values Lowering::lower(MbarrierInitOp op) {
  Asm a = assembly();
  return a.emit("mbarrier.init.shared::cta.b64 [" + a.in(op.getAddress()) + "], " + Twine(op.getCount()) + ";",
                Effect::Memory);
}

Values Lowering::lower(MbarrierArriveOp op) {
  Value address = op.getAddress();
  if (!op.getAfter().empty()) {
    Value any = op.getAfter().front();
    for (Value value : op.getAfter().drop_front())
      any = LLVM::OrOp::create(b, loc, any, value);
    address = LLVM::AddOp::create(b, loc, address, LLVM::AndOp::create(b, loc, any, zero));
  }
  Asm a = assembly();
  std::string guard = op.getPred() ? "@" + a.in(op.getPred()) + " " : "";
  return a.emit(guard + "mbarrier.arrive.shared::cta.b64 _, [" + a.in(address) + "];", Effect::Memory);
}

Values Lowering::lower(MbarrierExpectOp op) {
  Asm a = assembly();
  return a.emit("mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + a.in(op.getAddress()) + "], " +
                    Twine(op.getBytes()) + ";",
                Effect::Memory);
}

Values Lowering::lower(MbarrierWaitOp op) {
  Asm a = assembly();
  std::string address = a.in(op.getAddress()), parity = a.in(op.getParity());
  return a.emit("{\n.reg .pred done;\nwait_${:uid}:\nmbarrier.try_wait.parity.shared::cta.b64 done, [" + address +
                    "], " + parity + ";\n@!done bra wait_${:uid};\n}",
                Effect::Memory);
}

//===-- between blocks ----------------------------------------------------------===//
Values Lowering::lower(FlagLoadOp op) {
  Asm a = assembly();
  std::string value = a.out(op.getType(), /*early=*/true), guard = a.in(op.getPred());
  return a.emit("mov.b32 " + value + ", 0;\n@" + guard + " ld.acquire.gpu.global.u32 " + value + ", [" +
                    a.in(op.getAddress()) + "];",
                Effect::Memory);
}

Values Lowering::lower(FlagWaitOp op) {
  Asm a = assembly();
  std::string address = a.in(op.getAddress()), count = a.in(op.getCount());
  return a.emit("{\n.reg .pred more;\n.reg .b32 now;\nflag_${:uid}:\nld.acquire.gpu.global.u32 now, [" + address +
                    "];\nsetp.lt.u32 more, now, " + count + ";\n@more bra flag_${:uid};\n}",
                Effect::Memory);
}

Values Lowering::lower(FlagRaiseOp op) {
  Asm a = assembly();
  return a.emit("red.release.gpu.global.add.u32 [" + a.in(op.getAddress()) + "], 1;", Effect::Memory);
}

Values Lowering::lower(AtomicAddOp op) {
  Asm a = assembly();
  std::string old = a.out(op.getType()), address = a.in(op.getAddress());
  return a.emit("atom.relaxed.gpu.global.add.u32 " + old + ", [" + address + "], " + a.in(op.getValue()) + ";",
                Effect::Memory);
}

Values Lowering::lower(AtomicCasOp op) {
  Asm a = assembly();
  std::string old = a.out(op.getType()), address = a.in(op.getAddress()), expected = a.in(op.getExpected());
  return a.emit("atom.relaxed.gpu.global.cas.b32 " + old + ", [" + address + "], " + expected + ", " +
                    a.in(op.getDesired()) + ";",
                Effect::Memory);
}

//===-- bulk copies -------------------------------------------------------------===//
// The typed accessor insists on the type that the kernel's parameter had.
template <typename Op> Value mapOf(Op op) { return op.getMapMutable().get(); }

Values Lowering::lower(BulkLoadOp op) {
  Asm a = assembly();
  std::string to = a.in(op.getTo()), map = a.in(mapOf(op)), coords = a.ins(op.getCoords()),
              barrier = a.in(op.getBarrier());
  return a.emit("cp.async.bulk.tensor." + Twine(op.getCoords().size()) +
                    "d.shared::cluster.global.mbarrier::complete_tx::bytes [" + to + "], [" + map + ", {" + coords +
                    "}], [" + barrier + "];",
                Effect::Memory);
}

Values Lowering::lower(BulkCopyOp op) {
  Asm a = assembly();
  std::string to = a.in(op.getTo()), from = a.in(op.getAddress()), barrier = a.in(op.getBarrier());
  return a.emit("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" + to + "], [" + from + "], " +
                    Twine(op.getBytes()) + ", [" + barrier + "];",
                Effect::Memory);
}

Values Lowering::lower(BulkPrefetchOp op) {
  Asm a = assembly();
  std::string address = a.in(op.getAddress());
  return a.emit("cp.async.bulk.prefetch.L2.global [" + address + "], " + a.in(op.getBytes()) + ";", Effect::Order);
}

Values Lowering::lower(BulkStoreOp op) {
  Asm a = assembly();
  std::string map = a.in(mapOf(op)), coords = a.ins(op.getCoords()), from = a.in(op.getFrom());
  return a.emit("cp.async.bulk.tensor." + Twine(op.getCoords().size()) + "d.global.shared::cta.bulk_group [" + map +
                    ", {" + coords + "}], [" + from + "];",
                Effect::Memory);
}

Values Lowering::lower(BulkWaitOp op) {
  return issue(Twine("cp.async.bulk.wait_group") + (op.getRead() ? ".read " : " ") + Twine(op.getLeaves()) + ";");
}

//===-- products ------------------------------------------------------------------===//
Values Lowering::tied(const Twine &text, ValueRange values) {
  Asm a = assembly();
  a.inout(values);
  return a.emit(text, Effect::Memory);
}

Values Lowering::lower(WgmmaOp op) {
  // The high word of both descriptors: 1024 bytes (64 << 4) between groups of eight rows, 128-byte swizzle (PTX ISA,
  // "matrix descriptor").
  StringRef high = op.getUnswizzled() ? ", 0};\n" : ", 0x40000040};\n";
  Asm a = assembly();
  bool fresh = op.getAcc().empty();
  // A fresh product writes its results while operands are still read, and may not share registers with them.
  std::string d = fresh ? a.outs(op.getD().getTypes(), /*early=*/true) : a.inout(op.getAcc());
  std::string text = "{\n.reg .b64 db;\n", left, transA;
  if (op.getADesc()) {
    text += ".reg .b64 da;\nmov.b64 da, {" + a.in(op.getADesc()) + high.str();
    left = "da";
    transA = op.getTransA() ? ", 1" : ", 0";
  } else {
    left = "{" + a.ins(op.getA()) + "}";
  }
  text += "mov.b64 db, {" + a.in(op.getBDesc()) + high.str();
  std::string type = halfName(op.getType()).str();
  text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(op.getN()) + "k16.f32." + type + "." + type + " {" + d +
          "}, " + left + ", db, " + (fresh ? "0" : "1") + ", 1, 1" + transA + (op.getTransB() ? ", 1;\n}" : ", 0;\n}");
  return a.emit(text, Effect::Memory);
}

Values Lowering::lower(MmaOp op) {
  Asm a = assembly();
  std::string type = halfName(op.getType()).str();
  std::string d = a.outs(op.getResultTypes()), left = a.ins(op.getA()), right = a.ins(op.getB()), c = a.ins(op.getC());
  return a.emit("mma.sync.aligned.m16n8k" + Twine(op.getA().size() * 4) + ".row.col.f32." + type + "." + type +
                    ".f32 {" + d + "}, {" + left + "}, {" + right + "}, {" + c + "};",
                Effect::None);
}

//===-- a warp's registers ----------------------------------------------------------===//
Values Lowering::lower(LdmatrixOp op) {
  Asm a = assembly();
  std::string values = a.outs(op.getValues().getTypes());
  return a.emit("ldmatrix.sync.aligned.m8n8.x" + Twine(op.getValues().size()) + (op.getTrans() ? ".trans" : "") +
                    ".shared.b16 {" + values + "}, [" + a.in(op.getAddress()) + "];",
                Effect::Memory);
}

Values Lowering::lower(StmatrixOp op) {
  Asm a = assembly();
  std::string address = a.in(op.getAddress()), values = a.ins(op.getValues());
  return a.emit("stmatrix.sync.aligned.m8n8.x" + Twine(op.getValues().size()) + (op.getTrans() ? ".trans" : "") +
                    ".shared.b16 [" + address + "], {" + values + "};",
                Effect::Memory);
}

Values Lowering::lower(MovmatrixOp op) {
  Asm a = assembly();
  std::string result = a.out(op.getType());
  return a.emit("movmatrix.sync.aligned.m8n8.trans.b16 " + result + ", " + a.in(op.getValue()) + ";", Effect::None);
}

Values Lowering::lower(ShuffleOp op) {
  Asm a = assembly();
  std::string result = a.out(op.getType()), value = a.in(op.getValue()), lane = a.in(op.getLane());
  // `up` stops at the first lane of the warp, the others at its last (PTX ISA, "shfl.sync", operand c)
  StringRef bound = op.getMode() == ShuffleMode::Up ? "0" : "31";
  return a.emit("shfl.sync." + Twine(stringifyShuffleMode(op.getMode())) + ".b32 " + result + ", " + value + ", " +
                    lane + ", " + bound + ", -1;",
                Effect::Order);
}

Values Lowering::lower(AnyOp op) {
  Asm a = assembly();
  std::string result = a.out(op.getType());
  return a.emit("vote.sync.any.pred " + result + ", " + a.in(op.getValue()) + ", -1;", Effect::Order);
}
Values Lowering::lower(ElectOp op) {
  Asm a = assembly();
  std::string result = a.out(op.getType());
  return a.emit("elect.sync _|" + result + ", -1;", Effect::Order);
}

//===-- memory --------------------------------------------------------------------------===//
Values Lowering::lower(LoadSharedOp op) {
  Type type = op.getValues().front().getType();
  unsigned count = op.getValues().size();
  Value pointer = sharedPointer(op.getAddress());
  if (count == 1)
    return {LLVM::LoadOp::create(b, loc, type, pointer, /*alignment=*/4)};
  Value vector = LLVM::LoadOp::create(b, loc, VectorType::get(count, type), pointer, 4 * count);
  return llvm::map_to_vector(llvm::seq(count), [&](unsigned i) -> Value {
    return LLVM::ExtractElementOp::create(b, loc, vector, constant(i));
  });
}

Values Lowering::lower(StoreSharedOp op) {
  Value value = op.getValues().front();
  unsigned count = op.getValues().size(), bytes = 4 * count;
  if (op.getNarrow()) {
    value = LLVM::TruncOp::create(b, loc, b.getI16Type(), value);
    bytes = 2;
  } else if (count > 1) {
    auto type = VectorType::get(count, value.getType());
    Value vector = LLVM::UndefOp::create(b, loc, type);
    for (auto [i, element] : llvm::enumerate(op.getValues()))
      vector = LLVM::InsertElementOp::create(b, loc, vector, element, constant(i));
    value = vector;
  }
  LLVM::StoreOp::create(b, loc, value, sharedPointer(op.getAddress()), bytes);
  return {};
}

// The part of ld and st that says how much: ".v2.b32", or ".u16" for the low half of a 32-bit register.
std::string accessSize(TypeRange types, bool narrow) {
  if (narrow)
    return ".u16";
  std::string vector = types.size() > 1 ? ".v" + std::to_string(types.size()) : "";
  return vector + ".b" + std::to_string(types.front().getIntOrFloatBitWidth());
}

std::string accessList(const std::string &names, size_t count) { return count > 1 ? "{" + names + "}" : names; }

Values Lowering::lower(LoadGlobalOp op) {
  Asm a = assembly();
  TypeRange types = op.getValues().getTypes();
  // zeroed before the address is read
  SmallVector<std::string> names = llvm::map_to_vector(types, [&](Type t) { return a.out(t, /*early=*/true); });
  std::string text = "{\n";
  for (auto [name, type] : llvm::zip(names, types))
    text += "mov.b" + std::to_string(type.getIntOrFloatBitWidth()) + " " + name + ", 0;\n";
  std::string guard = a.in(op.getPred()), address = a.in(op.getAddress());
  text += "@" + guard + " ld.global" + accessSize(types, op.getNarrow()) + " " +
          accessList(llvm::join(names, ", "), types.size()) + ", [" + address + "];\n}";
  return a.emit(text, Effect::Order);
}

Values Lowering::lower(StoreGlobalOp op) {
  Asm a = assembly();
  std::string guard = a.in(op.getPred()), address = a.in(op.getAddress()), values = a.ins(op.getValues());
  return a.emit("@" + guard + " st.global" + accessSize(op.getValues().getTypes(), op.getNarrow()) + " [" + address +
                    "], " + accessList(values, op.getValues().size()) + ";",
                Effect::Order);
}

//===-- arithmetic -----------------------------------------------------------------------===//
Values Lowering::lower(PackOp op) {
  bool bf16 = op.getType() == Half::BF16;
  if (op.getSaturate()) {
    Asm a = assembly();
    std::string d = a.outs(op->getResultTypes()), hi = a.in(op.getHi()), lo = a.in(op.getLo());
    return a.emit("cvt.rn.satfinite." + halfName(op.getType()) + "x2.f32 " + d + ", " + hi + ", " + lo + ";",
                  Effect::None);
  }
  Type half = bf16 ? Type(b.getBF16Type()) : Type(b.getF16Type());
  // the first operand goes to the upper half
  Value pair = intrinsic(bf16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", VectorType::get(2, half),
                         {op.getHi(), op.getLo()})[0];
  return {LLVM::BitcastOp::create(b, loc, b.getI32Type(), pair)};
}

Values Lowering::lower(UnpackOp op) {
  Type f32 = b.getF32Type();
  if (op.getType() == Half::BF16) {
    Value lo = LLVM::ShlOp::create(b, loc, op.getValue(), constant(16));
    Value hi = LLVM::AndOp::create(b, loc, op.getValue(), constant(static_cast<int32_t>(0xffff0000)));
    return {LLVM::BitcastOp::create(b, loc, f32, lo), LLVM::BitcastOp::create(b, loc, f32, hi)};
  }
  Value pair = LLVM::BitcastOp::create(b, loc, VectorType::get(2, b.getF16Type()), op.getValue());
  auto half = [&](int i) -> Value {
    return LLVM::FPExtOp::create(b, loc, f32, LLVM::ExtractElementOp::create(b, loc, pair, constant(i)));
  };
  return {half(0), half(1)};
}

//===-- kernels --------------------------------------------------------------------------===//
// A register that is 0 in every launch, which neither LLVM nor ptxas can know: grids have one dimension. Adding the
// bits it lets through to an address makes the address wait for data.
Value opaqueZero(KernelOp kernel) {
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  return LLVM::CallIntrinsicOp::create(b, kernel.getLoc(), b.getI32Type(),
                                       b.getStringAttr("llvm.nvvm.read.ptx.sreg.ctaid.y"), ValueRange{})
      .getResult(0);
}

void lowerBody(KernelOp kernel) {
  Value zero = opaqueZero(kernel);
  kernel.walk([&](Operation *op) {
    auto replace = [&](auto concrete) {
      Values results = Lowering(op, zero).lower(concrete);
      op->replaceAllUsesWith(results);
      op->erase();
    };
    llvm::TypeSwitch<Operation *>(op)
        .Case<SharedBaseOp, ThreadOp, BlockOp, BlocksOp, WarpOp, LaneOp, OpaqueOp, ClockOp, TimerOp, UndefOp,
              MaxRegistersOp, MbarrierInitOp, FenceMbarrierInitOp, MbarrierArriveOp, MbarrierExpectOp, MbarrierWaitOp,
              BarSyncOp, BarArriveOp, WarpSyncOp, FenceAsyncOp, FlagLoadOp, FlagWaitOp, FlagRaiseOp, AtomicAddOp,
              AtomicCasOp, GridWaitOp, FenceAsyncGlobalOp, BulkLoadOp, BulkCopyOp, BulkPrefetchOp, BulkStoreOp,
              BulkCommitOp, BulkWaitOp, WgmmaFenceOp, WgmmaOp, WgmmaCommitOp, WgmmaWaitOp, MmaOp, LdmatrixOp,
              StmatrixOp, MovmatrixOp, ShuffleOp, AnyOp, ElectOp, LoadSharedOp, StoreSharedOp, LoadGlobalOp,
              StoreGlobalOp, PackOp, UnpackOp, Ex2Op, RsqrtOp>(replace);
  });
}

void lowerKernel(KernelOp kernel) {
  OpBuilder b(kernel);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  SmallVector<Type> types;
  SmallVector<Attribute> argumentAttributes;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    NamedAttrList attributes;
    if (isa<MapType>(argument.getType())) {
      argument.setType(pointer);
      attributes.set(LLVM::LLVMDialect::getByValAttrName(),
                     TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), 128)));
      attributes.set(LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
    }
    types.push_back(argument.getType());
    argumentAttributes.push_back(attributes.getDictionary(b.getContext()));
  }
  lowerBody(kernel);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types);
  auto function = LLVM::LLVMFuncOp::create(b, kernel.getLoc(), kernel.getSymName(), type, LLVM::Linkage::External,
                                           /*dsoLocal=*/false, LLVM::CConv::PTX_Kernel);
  function.setArgAttrsAttr(b.getArrayAttr(argumentAttributes));
  auto setting = [&](StringRef name, const Twine &value) -> Attribute {
    return b.getStrArrayAttr({name, value.str()});
  };
  // ptxas ignores setmaxnreg without the block's size (R5)
  function.setPassthroughAttr(
      b.getArrayAttr({setting("nvvm.maxntid", Twine(kernel.getThreads())), setting("nvvm.minctasm", "1")}));
  function.getBody().takeBody(kernel.getBody());
  OpBuilder atEnd = OpBuilder::atBlockEnd(&function.getBody().front());
  LLVM::ReturnOp::create(atEnd, kernel.getLoc(), ValueRange());
  kernel.erase();
}

struct ConvertSmToLLVM : impl::ConvertSmToLLVMBase<ConvertSmToLLVM> {
  void runOnOperation() override {
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      lowerKernel(kernel);
  }
};

} // namespace
} // namespace gdnc
