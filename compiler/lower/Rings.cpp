// convert-tile-to-sm: rings become mbarriers, stages and parities; rings of one role, named barriers and bulk groups.
#include "compiler/lower/Lowering.h"
using namespace mlir;
using namespace tile;

namespace {
int64_t attr(Operation *op, StringRef name) { return op->getAttrOfType<IntegerAttr>(name).getInt(); }
RingOp ringOf(Value ring) { return ring.getDefiningOp<RingOp>(); }
bool isPrivate(Value ring) { return isa<RoleOp>(ringOf(ring)->getParentOp()); }

// The block in whose execution a use of a ring moves it: what lies between is executed exactly as often.
Block *anchorOf(Operation *op) {
  while (isa<OneWarpOp, TurnOp, PerWarpOp, PutOp>(op->getParentOp()))
    op = op->getParentOp();
  return op->getBlock();
}
bool inShare(Operation *op) {
  for (auto f = op->getParentOfType<scf::ForOp>(); f; f = f->getParentOfType<scf::ForOp>())
    if (f.getLowerBound().getDefiningOp<ShareOp>())
      return true;
  return false;
}
} // namespace

// Rings of one depth that are moved in the same blocks, in the same order, share a position: fewer registers around the
// loop.
void Lowering::findTracks(RoleOp r) {
  tracks.clear();
  trackOf.clear();
  struct Uses {
    SmallVector<Block *> order;
    SmallVector<Operation *> ops;
    bool share = false;
  };
  llvm::MapVector<Value, Uses> rings;
  r.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<PutOp, GetOp, ReleaseOp>(op))
      return;
    Uses &u = rings[op->getOperand(0)];
    Block *anchor = anchorOf(op);
    if (!llvm::is_contained(u.order, anchor))
      u.order.push_back(anchor);
    u.ops.push_back(op);
    u.share |= inShare(op);
  });
  std::vector<SmallVector<Block *>> orders;
  for (auto &[ring, uses] : rings) {
    int64_t depth = intOf(ringOf(ring).getDepth()), step = uses.share ? copies : 1;
    Track *track = nullptr;
    for (auto [t, order] : llvm::zip_equal(tracks, orders))
      if (t->depth == depth && t->step == step && order == uses.order)
        track = t.get();
    if (!track) {
      tracks.push_back(std::make_unique<Track>());
      tracks.back()->depth = depth, tracks.back()->step = step;
      orders.push_back(uses.order);
      track = tracks.back().get();
    }
    assert(step <= depth && "checked by tile-plan-memory");
    trackOf[ring] = track;
    for (Operation *op : uses.ops) {
      Block *anchor = anchorOf(op);
      Operation *&last = track->last[anchor];
      Operation *inAnchor = anchor->findAncestorOpInBlock(*op);
      if (!last || last->isBeforeInBlock(inAnchor))
        last = inAnchor;
    }
  }
}

// Copies that take turns start at their own slot. Where a step goes once around, the slot of a copy never changes.
void Lowering::startTracks() {
  for (auto &t : tracks) {
    t->stage = t->step > 1 ? copyIndex() : i32(0);
    t->parity = i32(0);
  }
}

Value Lowering::stageOf(Track *t) {
  if (t->step > 1 && t->step % t->depth == 0)
    return copyIndex();
  Value &now = stageNow[t];
  return now ? now : now = ::sm::OpaqueOp::create(b, loc, t->stage);
}

SmallVector<Value *> Lowering::movedIn(Operation *within) {
  SmallVector<Value *> places;
  for (auto &t : tracks)
    for (auto &[block, op] : t->last)
      if (within->isAncestor(block->getParentOp())) {
        if (t->step % t->depth)
          places.push_back(&t->stage);
        places.push_back(&t->parity);
        break;
      }
  return places;
}

void Lowering::advance(Operation *op) {
  for (auto &t : tracks) {
    auto it = t->last.find(op->getBlock());
    if (it == t->last.end() || it->second != op)
      continue;
    forgetLane();
    int64_t whole = t->step / t->depth, rest = t->step % t->depth;
    if (rest) {
      Value next = add(t->stage, rest);
      Value wraps = cmp(arith::CmpIPredicate::sge, next, i32(t->depth));
      t->stage = select(wraps, add(next, -t->depth), next);
      t->parity = xori(t->parity, Value(arith::ExtUIOp::create(b, loc, b.getI32Type(), wraps)));
    }
    t->parity = xori(t->parity, whole & 1);
  }
}

Value Lowering::slotBarrier(Value ring, StringRef which) {
  return add(add(sharedBase(), attr(ringOf(ring), which)), shl(stageOf(trackOf.at(ring)), 3));
}

void Lowering::bindSlot(Value ring, ValueRange bufs) {
  int64_t offset = 0;
  for (Value buf : bufs) {
    buffers[buf] = {ring, {}, offset, 0};
    offset += bufferBytes(cast<BufType>(buf.getType()));
  }
}

Value Lowering::addressOf(Value buf) {
  const BufferRef &ref = buffers.at(buf);
  RingOp ring = ringOf(ref.ring);
  int64_t slot = attr(ring, "slot");
  Value at = add(sharedBase(), attr(ring, "offset") + ref.offset);
  if (isPrivate(ref.ring))
    at = add(at, mul(copyIndex(), intOf(ring.getDepth()) * slot));
  at = add(at, mul(stageOf(trackOf.at(ref.ring)), slot));
  return ref.column ? add(at, mul(scalar(ref.column), ref.perColumn)) : at;
}

void Lowering::roleSync() {
  int64_t id = attr(role, "barrier");
  branchOnCopy([&](int64_t i) { ::sm::BarSyncOp::create(b, loc, id + i, warps * 32); });
  forgetLane();
}

LogicalResult Lowering::lowerPut(PutOp op) {
  Value ring = op.getRing();
  Block &body = op.getBody().front();
  if (isPrivate(ring)) { // the barrier of the store before it has said that the slot is free
    bindSlot(ring, body.getArguments());
    return lowerBlock(body);
  }
  forgetLane();
  bool bulk = attr(ringOf(ring), "bytes") != 0;
  Value full = slotBarrier(ring, "full"), empty = slotBarrier(ring, "empty");
  Value parity = xori(trackOf.at(ring)->parity, 1);
  if (!bulk) {
    ::sm::MbarrierWaitOp::create(b, loc, empty, parity);
    bindSlot(ring, body.getArguments());
    if (failed(lowerBlock(body)))
      return failure();
    ::sm::WarpSyncOp::create(b, loc);
    forgetLane();
    ::sm::MbarrierArriveOp::create(b, loc, full, isLane0(), ValueRange{});
    return success();
  }
  auto issuer = scf::IfOp::create(b, loc, isLane0(), false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(issuer.thenBlock()->getTerminator());
    // Where to copy from is known before the slot is free.
    for (auto copy : body.getOps<CopyInOp>()) {
      rowsOf(copy.getChunk());
      for (Value i : copy.getIndex())
        scalar(i);
    }
    ::sm::MbarrierWaitOp::create(b, loc, empty, parity);
    ::sm::MbarrierExpectOp::create(b, loc, full, attr(ringOf(ring), "bytes"));
    bindSlot(ring, body.getArguments());
    if (failed(lowerBlock(body)))
      return failure();
  }
  ::sm::WarpSyncOp::create(b, loc);
  forgetLane();
  return success();
}

void Lowering::lowerGet(GetOp op) {
  Value ring = op.getRing();
  forgetLane();
  held[ring] = {};
  if (isPrivate(ring)) {
    // With depth d, at most d - 2 older stores may still read: then the slot of the next put is free, as this barrier
    // tells all.
    int64_t pending = std::max<int64_t>(intOf(ringOf(ring).getDepth()) - 2, 0);
    auto issuer = scf::IfOp::create(b, loc, eq(warpInCopy(), 0), false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(issuer.thenBlock()->getTerminator());
      auto first = scf::IfOp::create(b, loc, isLane0(), false);
      b.setInsertionPoint(first.thenBlock()->getTerminator());
      ::sm::BulkWaitOp::create(b, loc, pending, true);
    }
    forgetLane();
    roleSync();
  } else {
    ::sm::MbarrierWaitOp::create(b, loc, slotBarrier(ring, "full"), trackOf.at(ring)->parity);
  }
  bindSlot(ring, op.getBufs());
}

void Lowering::lowerRelease(ReleaseOp op) {
  Value ring = op.getRing();
  if (isPrivate(ring))
    return; // the bulk group was closed with the store
  Held &h = held[ring];
  if (h.generic)
    ::sm::WarpSyncOp::create(b, loc);
  SmallVector<Value> after;
  for (Value v : h.loaded) // loads of an inner region were used there
    if (v.getParentRegion()->isAncestor(b.getInsertionBlock()->getParent()))
      after.push_back(v);
  forgetLane();
  ::sm::MbarrierArriveOp::create(b, loc, slotBarrier(ring, "empty"), isLane0(), after);
  held.erase(ring);
}
