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

// How often a role fills a ring in a block, or takes from it, as it does with a slot that it leaves unread.
namespace {
bool fills(Operation *op) { return isa<PutOp>(op) && !cast<PutOp>(op).getUnread(); }
struct Moves {
  Block *block;
  int64_t count = 0;
  bool operator==(const Moves &o) const { return block == o.block && count == o.count; }
};
struct Uses {
  SmallVector<Moves> moves;
  SmallVector<Operation *> ops;
  bool share = false;
};
} // namespace

// What is moved in the same blocks, in the same order, through rings of one depth shares a position: fewer registers
// around the loop. Where a role fills a ring that it takes from itself, what it takes counts.
void Lowering::findTracks(RoleOp r) {
  tracks.clear();
  putTracks.clear();
  getTracks.clear();
  llvm::MapVector<std::pair<Value, int>, Uses> rings; // by ring, and whether it is filled
  DenseSet<Value> taken;
  r.walk([&](GetOp op) { taken.insert(op.getRing()); });
  r.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<PutOp, GetOp, ReleaseOp>(op) || (fills(op) && taken.contains(op->getOperand(0))))
      return;
    Uses &u = rings[{op->getOperand(0), fills(op)}];
    Block *anchor = anchorOf(op);
    auto in = llvm::find_if(u.moves, [&](Moves &m) { return m.block == anchor; });
    Moves &m = in == u.moves.end() ? u.moves.emplace_back(Moves{anchor}) : *in;
    m.count += !isa<ReleaseOp>(op);
    u.ops.push_back(op);
    u.share |= inShare(op);
  });
  std::vector<SmallVector<Moves>> orders;
  for (auto &[use, uses] : rings) {
    auto [ring, puts] = use;
    int64_t depth = intOf(ringOf(ring).getDepth()), step = uses.share ? copies : 1;
    Track *track = nullptr;
    for (auto [t, order] : llvm::zip_equal(tracks, orders))
      if (t->depth == depth && t->step == step && order == uses.moves)
        track = t.get();
    if (!track) {
      tracks.push_back(std::make_unique<Track>());
      tracks.back()->depth = depth, tracks.back()->step = step;
      orders.push_back(uses.moves);
      track = tracks.back().get();
    }
    assert(step <= depth && "checked by tile-plan-memory");
    (puts ? putTracks : getTracks)[ring] = track;
    findEnds(*track, uses.ops);
  }
}

// Behind the last of its uses a slot is passed: of the n-th move of a block, where all rings of the track make theirs.
void Lowering::findEnds(Track &track, ArrayRef<Operation *> ops) {
  DenseMap<Block *, size_t> moves;
  for (Operation *op : ops) {
    Block *anchor = anchorOf(op);
    size_t &move = moves[anchor];
    move += !isa<ReleaseOp>(op);
    SmallVector<Operation *> &ends = track.ends[anchor];
    if (ends.size() < move)
      ends.push_back(nullptr);
    Operation *inAnchor = anchor->findAncestorOpInBlock(*op);
    if (!ends[move - 1] || ends[move - 1]->isBeforeInBlock(inAnchor))
      ends[move - 1] = inAnchor;
  }
}

// Copies that take turns start at their own slot. Where a step goes once around, the slot of a copy never changes.
void Lowering::startTracks() {
  for (auto &t : tracks)
    t->position = t->step > 1 && !t->wholeRounds() ? copyIndex() : i32(0);
}

Value Lowering::positionOf(Track *t) {
  Value &now = positionNow[t];
  return now ? now : now = ::sm::OpaqueOp::create(b, loc, t->position);
}

Value Lowering::stageOf(Track *t) {
  if (t->wholeRounds())
    return copyIndex();
  Value p = positionOf(t);
  if (llvm::isPowerOf2_64(t->depth))
    return andi(p, t->depth - 1);
  return select(cmp(arith::CmpIPredicate::sge, p, i32(t->depth)), add(p, -t->depth), p);
}

Value Lowering::parityOf(Track *t) {
  Value p = positionOf(t);
  if (t->wholeRounds())
    return p;
  return arith::ExtUIOp::create(b, loc, b.getI32Type(), cmp(arith::CmpIPredicate::sge, p, i32(t->depth)));
}

SmallVector<Value *> Lowering::movedIn(Operation *within) {
  SmallVector<Value *> places;
  for (auto &t : tracks)
    if (llvm::any_of(t->ends, [&](auto &entry) { return within->isAncestor(entry.first->getParentOp()); }))
      places.push_back(&t->position);
  return places;
}

void Lowering::advance(Operation *op) {
  for (auto &t : tracks) {
    auto it = t->ends.find(op->getBlock());
    if (it == t->ends.end() || !llvm::is_contained(it->second, op))
      continue;
    forgetLane();
    t->position = next(*t);
  }
}

Value Lowering::next(const Track &t) {
  if (t.wholeRounds())
    return xori(t.position, t.step / t.depth & 1);
  Value next = add(t.position, t.step);
  Value wraps = cmp(arith::CmpIPredicate::sge, next, i32(2 * t.depth));
  return select(wraps, add(next, -2 * t.depth), next);
}

// The slot that a put fills: in a ring that the role takes from itself, the one behind those that it holds.
Track *Lowering::trackOfPut(Value ring) {
  if (auto it = putTracks.find(ring); it != putTracks.end())
    return it->second;
  Track *track = getTracks.at(ring);
  if (!held.contains(ring))
    return track;
  tracks.push_back(std::make_unique<Track>());
  Track *ahead = tracks.back().get();
  ahead->depth = track->depth, ahead->step = track->step;
  ahead->position = next(*track);
  return ahead;
}

Value Lowering::slotBarrier(Value ring, Track *track, StringRef which) {
  return add(add(sharedBase(), attr(ringOf(ring), which)), shl(stageOf(track), 3));
}

void Lowering::bindSlot(Value ring, Track *track, ValueRange bufs) {
  int64_t offset = 0;
  for (Value buf : bufs) {
    buffers[buf] = {ring, track, {}, offset, 0};
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
  at = add(at, mul(stageOf(ref.track), slot));
  return ref.column ? add(at, mul(scalar(ref.column), ref.perColumn)) : at;
}

void Lowering::roleSync() {
  int64_t id = attr(role, "barrier");
  branchOnCopy([&](int64_t i) { ::sm::BarSyncOp::create(b, loc, id + i, warps * 32); });
  forgetLane();
}

LogicalResult Lowering::lowerPut(PutOp op) {
  Value ring = op.getRing();
  Track *track = trackOfPut(ring);
  Block &body = op.getBody().front();
  if (isPrivate(ring)) {
    if (intOf(ringOf(ring).getDepth()) == 1)
      awaitStores(0);
    // else the barrier of the store before it has said that the slot is free
    bindSlot(ring, track, body.getArguments());
    return lowerBlock(body);
  }
  forgetLane();
  bool bulk = attr(ringOf(ring), "bulk") != 0;
  Value full = slotBarrier(ring, track, "full"), empty = slotBarrier(ring, track, "empty");
  Value parity = xori(parityOf(track), 1);
  if (!bulk) {
    ::sm::MbarrierWaitOp::create(b, loc, empty, parity);
    bindSlot(ring, track, body.getArguments());
    if (failed(lowerBlock(body)))
      return failure();
    ::sm::WarpSyncOp::create(b, loc);
    forgetLane();
    ::sm::MbarrierArriveOp::create(b, loc, full, isLane0(), ValueRange{});
    if (op.getUnread())
      giveBack(empty, isLane0());
    return success();
  }
  // So that ptxas sees one thread at work: to others' coordinates it would come back in loops. It sees lane 0 where no
  // branch follows, an elected one where one does.
  bool branches = !body.getOps<scf::IfOp>().empty();
  auto issuer = scf::IfOp::create(b, loc, branches ? Value(::sm::ElectOp::create(b, loc)) : isLane0(), false);
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
    expectBytes(op, full);
    bindSlot(ring, track, body.getArguments());
    if (failed(lowerBlock(body)))
      return failure();
    if (op.getUnread())
      giveBack(empty, {});
  }
  ::sm::WarpSyncOp::create(b, loc);
  forgetLane();
  return success();
}

// For all warps of a copy, of which this one alone knows that the slot's phase is the current one.
void Lowering::giveBack(Value empty, Value by) {
  for (int64_t warp = 0; warp < warps; ++warp)
    ::sm::MbarrierArriveOp::create(b, loc, empty, by, ValueRange{});
}

// The bytes of the copies inside; what a side of a branch copies is expected only where it is taken.
void Lowering::expectBytes(PutOp op, Value barrier) {
  auto branches = op.getBody().getOps<scf::IfOp>();
  int64_t always = copiedBytes(op.getBody().front());
  if (branches.empty()) {
    ::sm::MbarrierExpectOp::create(b, loc, barrier, always);
    return;
  }
  scf::IfOp branch = *branches.begin();
  auto taken = scf::IfOp::create(b, loc, scalar(branch.getCondition()), true);
  OpBuilder::InsertionGuard guard(b);
  for (bool side : {true, false}) {
    Region &within = side ? branch.getThenRegion() : branch.getElseRegion();
    b.setInsertionPoint((side ? taken.thenBlock() : taken.elseBlock())->getTerminator());
    ::sm::MbarrierExpectOp::create(b, loc, barrier, always + (within.empty() ? 0 : copiedBytes(within.front())));
  }
}

// Until at most `pending` of a copy's stores still read their slots.
void Lowering::awaitStores(int64_t pending) {
  forgetLane();
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
}

void Lowering::lowerGet(GetOp op) {
  Value ring = op.getRing();
  Track *track = getTracks.at(ring);
  int64_t depth = intOf(ringOf(ring).getDepth());
  forgetLane();
  held[ring] = {};
  if (!isPrivate(ring))
    ::sm::MbarrierWaitOp::create(b, loc, slotBarrier(ring, track, "full"), parityOf(track));
  else if (depth == 1)
    roleSync();
  else // with at most depth - 2 older ones the slot of the next put is free, as this barrier tells all
    awaitStores(depth - 2);
  bindSlot(ring, track, op.getBufs());
}

void Lowering::lowerRelease(ReleaseOp op) {
  Value ring = op.getRing();
  if (isPrivate(ring)) { // the bulk group was closed with the store
    held.erase(ring);
    return;
  }
  Held &h = held[ring];
  if (h.generic)
    ::sm::WarpSyncOp::create(b, loc);
  SmallVector<Value> after;
  for (Value v : h.loaded) // loads of an inner region were used there
    if (v.getParentRegion()->isAncestor(b.getInsertionBlock()->getParent()))
      after.push_back(v);
  forgetLane();
  ::sm::MbarrierArriveOp::create(b, loc, slotBarrier(ring, getTracks.at(ring), "empty"), isLane0(), after);
  held.erase(ring);
}
