// convert-tile-to-sm, one kernel at a time. The walk follows the text: what it emits stands in the order of the
// template.
#pragma once
#include "compiler/tile/Layout.h"
#include "dialects/sm/Sm.h"
#include "dialects/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include <memory>
#include <optional>
#include <vector>

namespace tile {
using mlir::Block;
using mlir::DenseMap;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::SmallVector;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

struct ViewRef {
  Value map, pointer, element; // parameters; null where the kernel does not use them
  SmallVector<Value> strides;  // by axis; null for the unit axis
};

// Position in rings that a role moves in step, through two rounds: index of the slot, and the parity of its use, in one
// register around loops. Where a step goes once around, the parity alone.
struct Track {
  int64_t depth, step;
  DenseMap<Block *, SmallVector<Operation *>>
      ends; // in each block that moves the rings, the ops behind which the position advances
  Value position;
  bool wholeRounds() const { return step > 1 && step % depth == 0; }
};

// Where a buffer lies: in a slot of a ring, and there at a column. Its address is computed where it is used.
struct BufferRef {
  Value ring;
  Track *track;
  Value column; // a template scalar, a multiple of 64, or null
  int64_t offset, perColumn;
};

// A slot held by a get, and the registers its reads filled: the release must not overtake them.
struct Held {
  SmallVector<Value> loaded;
  bool generic = false;
};

struct InFlight {
  Value product;               // the tile.mma's result
  SmallVector<Value> operands; // A, where it is a fragment
};

// The values at places that a loop or branch carries.
inline SmallVector<Value> load(llvm::ArrayRef<Value *> places) {
  return llvm::map_to_vector(places, [](Value *p) { return *p; });
}
inline void store(llvm::ArrayRef<Value *> places, ValueRange values) {
  for (auto [p, v] : llvm::zip_equal(places, values))
    *p = v;
}

class Lowering {
public:
  Lowering(KernelOp kernel) : kernel(kernel), b(kernel.getContext()), loc(kernel.getLoc()) {}
  LogicalResult run();

private:
  // ConvertTileToSm.cpp: structure
  LogicalResult lowerBlock(Block &block);
  LogicalResult lowerOp(Operation &op);
  void declareArguments(SmallVector<mlir::NamedAttribute> &attrs);
  void prologue();
  LogicalResult lowerRole(RoleOp role);
  LogicalResult lowerRoles();
  // Control.cpp: loops, branches, regions
  void writeRecord(int64_t word, ValueRange values);
  Value itemSlot(Value number);
  Value itemBarrier(Value number, bool full);
  SmallVector<Value> parameters(Value items);
  mlir::ValueRange slotWords(Value slot, size_t offset, size_t n);
  void writeKeyHead(Value ratio, Value slot);
  std::pair<Value, SmallVector<Value>> takeItem(ForeachOp op);
  void drawItem(ForeachOp op, Value number);
  void writeTile(ForeachOp op, ValueRange work, Value slot, Value number);
  void writeDrawn(Value plan, ValueRange header, Value slot, Value number);
  Value ready(Value flags, Value item);
  void lookUpRows(ValueRange work, Value slot);
  bool hasCheckpoints(Value items);
  void lookUpCheckpoints(ValueRange work, Value slot);
  Value wideOrNot(Value array, Value index, Value isWide);
  Value sequenceOffset(ValueRange work, Value index);
  LogicalResult lowerForeach(ForeachOp op);
  LogicalResult lowerFor(mlir::scf::ForOp op);
  LogicalResult lowerIf(mlir::scf::IfOp op);
  LogicalResult lowerPerWarp(PerWarpOp op);
  LogicalResult lowerOneWarp(OneWarpOp op);
  LogicalResult lowerTurn(TurnOp op);
  LogicalResult lowerShare(ShareOp op);
  void lowerClear(ClearOp op);
  void branchOnCopy(llvm::function_ref<void(int64_t copy)> body);
  // Rings.cpp
  void findTracks(RoleOp role);
  void findEnds(Track &track, llvm::ArrayRef<Operation *> ops);
  void startTracks();
  Value next(const Track &track); // position
  Track *trackOfPut(Value ring);
  void advance(Operation *op);
  SmallVector<Value *> movedIn(Operation *within);
  LogicalResult lowerPut(PutOp op);
  void expectBytes(PutOp op, Value barrier);
  void giveBack(Value empty, Value by);
  void lowerGet(GetOp op);
  void lowerRelease(ReleaseOp op);
  void bindSlot(Value ring, Track *track, ValueRange bufs);
  Value slotBarrier(Value ring, Track *track, llvm::StringRef which);
  void awaitStores(int64_t pending);
  void roleSync();
  // Memory.cpp: shared memory
  void lowerRead(ReadOp op);
  Value quadOffset();
  int64_t quadBytes();
  Value quadAddress(Value view, ValueRange index);
  void lowerUnpack(UnpackOp op);
  void lowerWrite(WriteOp op);
  void lowerWriteBlocks(WriteBlocksOp op);
  void lowerAny(AnyOp op);
  void lowerSub(SubOp op);
  Value blockAddress(Value buf, Value rowBlock, int64_t columnBlock);
  Value transposedAddress(Value buf, int64_t tokenBlock);
  Value scratchAddress(Value rowBlock, int64_t offset);
  Value blockOffset();
  Value columnAddress(Value rowBuf);
  // Global.cpp: global memory
  void lowerCopyIn(CopyInOp op);
  void lowerCopyOut(CopyOutOp op);
  void lowerLoad(LoadOp op);
  void lowerWiden(WidenOp op);
  void lowerStore(StoreOp op);
  Value stampRow(Value view);
  void lowerStamp(StampOp op);
  void lowerRecord(RecordOp op);
  void clearStamps(ForeachOp op, bool ends);
  void lowerPrefetch(PrefetchOp op);
  void lowerAwait(AwaitOp op);
  void lowerSignal(SignalOp op);
  std::pair<Value, Value> headAndColumn(Value view, ValueRange index);
  SmallVector<Value> coordinates(Value column, Value head, Value chunk);
  Value elementOffset(Value view, ValueRange index, llvm::ArrayRef<Value> inner);
  Value elementAddress(Value view, ValueRange index, llvm::ArrayRef<Value> inner, int64_t bytes);
  SmallVector<Value> loadRow(LoadOp op);
  SmallVector<Value> loadElement(LoadOp op);
  SmallVector<Value> loadMatrix(LoadOp op);
  void forEachAddress(Value view, ValueRange index, FragType type, int64_t bytes, bool pairs,
                      llvm::function_ref<void(int64_t r, Value at)> visit);
  SmallVector<Value> ifWide(Value view, mlir::TypeRange types, llvm::function_ref<SmallVector<Value>(bool wide)> body);
  Value widen(Value bits, Value element, bool high);
  // Products.cpp
  LogicalResult lowerMma(MmaOp op);
  LogicalResult lowerWait(WaitOp op);
  void lowerPrime(PrimeOp op);
  void lowerBlockMma(BlockMmaOp op);
  Value descriptor(Value buf, bool transposed);
  SmallVector<Value> liveAcross(WaitOp op);
  // Elementwise.cpp
  LogicalResult lowerElementwise(Operation &op);
  void lowerLower(LowerOp op);
  void lowerPad(PadOp op);
  void lowerCumsum(CumsumOp op);
  void lowerLast(LastOp op);
  void lowerConvert(ConvertOp op);
  void lowerColumns(ColumnsOp op);
  void lowerDiagonal(DiagonalOp op);
  // Functions.cpp
  Value sigmoid(Value x);
  Value softplus(Value x);
  Value log2(Value x);
  Value log2OnePlus(Value x);
  // Diagonal.cpp
  SmallVector<Value> blockDiagonal(SmallVector<Value> block);
  SmallVector<Value> ownBlock(Value square);
  void lowerDiag(DiagOp op);
  void lowerRowSquares(RowSquaresOp op);
  // Inverse.cpp
  std::pair<llvm::SmallVector<mlir::Value>, llvm::SmallVector<mlir::Value>> diagonalBlock(SolveBlocksOp op);
  llvm::SmallVector<mlir::Value> substitute(mlir::Value from, mlir::Value column);
  void lowerSolveBlocks(SolveBlocksOp op);

  // Fragments: registers a thread holds.
  int64_t registersOf(FragType t) const;
  unsigned widthOf(Type t) const;
  SmallVector<Type> typesOf(Type t) const;
  SmallVector<Value> flat(ValueRange values);
  void bind(ValueRange values, ValueRange flat);
  Value canonical(Value pending);
  void give(Value to, Value from) { // a copy first: an insertion moves the map
    SmallVector<Value> r = regs.at(from);
    regs[to] = std::move(r);
  }

  // Scalars.
  Value i32(int64_t v) { return mlir::arith::ConstantIntOp::create(b, loc, v, 32); }
  Value i64(int64_t v) { return mlir::arith::ConstantIntOp::create(b, loc, v, 64); }
  Value f32(float v) { return mlir::arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(v)); }
  Value yes() { return mlir::arith::ConstantIntOp::create(b, loc, 1, 1); }
  Value add(Value x, Value y) { return mlir::arith::AddIOp::create(b, loc, x, y); }
  Value add(Value x, int64_t y) { return y ? add(x, x.getType().isInteger(64) ? i64(y) : i32(y)) : x; }
  Value sub(Value x, Value y) { return mlir::arith::SubIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulIOp::create(b, loc, x, y); }
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, x.getType().isInteger(64) ? i64(y) : i32(y)); }
  Value shl(Value x, int64_t y) { return y ? Value(mlir::arith::ShLIOp::create(b, loc, x, i32(y))) : x; }
  Value shr(Value x, int64_t y) { return mlir::arith::ShRUIOp::create(b, loc, x, i32(y)); }
  Value andi(Value x, int64_t y) { return mlir::arith::AndIOp::create(b, loc, x, i32(y)); }
  Value ori(Value x, Value y) { return mlir::arith::OrIOp::create(b, loc, x, y); }
  Value xori(Value x, Value y) { return mlir::arith::XOrIOp::create(b, loc, x, y); }
  Value xori(Value x, int64_t y) { return y ? xori(x, i32(y)) : x; }
  Value cmp(mlir::arith::CmpIPredicate p, Value x, Value y) { return mlir::arith::CmpIOp::create(b, loc, p, x, y); }
  Value eq(Value x, int64_t y) {
    return cmp(mlir::arith::CmpIPredicate::eq, x, x.getType().isInteger(64) ? i64(y) : i32(y));
  }
  // The first lane's value, in all of them: ptxas then knows that it is the same.
  Value uniform(Value x) { return ::sm::ShuffleOp::create(b, loc, ::sm::ShuffleMode::Idx, x, i32(0)); }
  Value select(Value c, Value x, Value y) { return mlir::arith::SelectOp::create(b, loc, c, x, y); }
  Value wide(Value x) { return mlir::arith::ExtSIOp::create(b, loc, b.getI64Type(), x); }
  Value asInt(Value x) {
    return x.getType().isF32() ? Value(mlir::arith::BitcastOp::create(b, loc, b.getI32Type(), x)) : x;
  }
  Value asFloat(Value x) { return mlir::arith::BitcastOp::create(b, loc, b.getF32Type(), x); }

  // The thread's place in its role and in shared memory. Read afresh in each stretch of straight code: at 64 registers
  // an address that LLVM keeps around the loop is a spill.
  Value lane();
  Value warpInBlock();
  Value sharedBase();
  Value warpInCopy();
  Value copyIndex();
  Value stageOf(Track *track);
  Value parityOf(Track *track);
  Value positionOf(Track *track);
  Value addressOf(Value buf);
  Value field(int64_t i); // of the item in work
  Value isLane0() { return eq(lane(), 0); }
  Value isRolesFirstThread();
  Value isFirstThread() { return mlir::arith::AndIOp::create(b, loc, eq(warpInCopy(), 0), isLane0()); }
  void forgetLane() {
    laneNow = warpNow = baseNow = chunksNow = {};
    positionNow.clear();
    scalarNow.clear();
    rowsNow.clear();
  }
  // A scalar of the template, computed afresh from loop variables, the item's record and parameters.
  Value scalar(Value v);
  // First token and valid rows of a chunk.
  std::pair<Value, Value> rowsOf(Value chunk);
  Value computeScalar(Value v);
  Value chunksOfItem();

  static ::sm::Half half(Type t) { return t.isF16() ? ::sm::Half::F16 : ::sm::Half::BF16; }
  Value pack(Type t, Value lo, Value hi) { return ::sm::PackOp::create(b, loc, half(t), lo, hi, false); }
  // As an operand of a product: what is too large for fp16 stays finite, so that it meets no zero as an infinity.
  Value packOperand(Type t, Value lo, Value hi) { return ::sm::PackOp::create(b, loc, half(t), lo, hi, t.isF16()); }
  std::pair<Value, Value> unpack(Type t, Value v) {
    auto op = ::sm::UnpackOp::create(b, loc, half(t), v);
    return {op.getLo(), op.getHi()};
  }

  KernelOp kernel;
  mlir::OpBuilder b;
  mlir::Location loc;
  int64_t chunk = 0; // tokens
  Value base;        // of shared memory
  Value warp;        // in the block
  // Of the role being lowered.
  RoleOp role;
  int64_t copies = 1, warps = 4;
  std::optional<int64_t> staticWarp; // inside per_warp
  Value laneNow, warpNow, baseNow, chunksNow;
  DenseMap<Track *, Value> positionNow;
  DenseMap<Value, Value> scalarNow;
  DenseMap<Value, std::pair<Value, Value>> rowsNow;
  std::vector<std::unique_ptr<Track>> tracks;
  DenseMap<Value, Track *> putTracks, getTracks; // by ring
  SmallVector<InFlight> inFlight;
  // What the template's values have become.
  DenseMap<Value, SmallVector<Value>> regs; // loop variables, fragments, chunks (their index), products
  DenseMap<Value, int64_t> fields;          // of the item: their word in the record, or behind it in the item's slot
  DenseMap<Value, BufferRef> buffers;
  DenseMap<Value, ViewRef> views;
  DenseMap<Value, SmallVector<Value>> work; // items: cu_seqlens, cu_wide, sequences, length, tokens, heads, ratio,
                                            // plan, source_rows, sink_rows, wide_rows, rows; starts,
                                            // wide_starts, every, checkpoints, skips
  DenseMap<Value, Value> alias;             // products that left a turn
  DenseMap<Value, Held> held;               // by ring
};
} // namespace tile
