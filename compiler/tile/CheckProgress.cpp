// tile-check-progress: plays the rings of a kernel for long, short, odd, even and empty items, with and without hops
// and chunks for the state alone.
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_CHECKPROGRESSPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
// What one copy of a role does to rings, in program order, for given chunk counts per item.
struct Event {
  enum Kind { Begin, Publish, Get, Release, Enter, Leave } kind;
  Value ring; // none for a turn
  Operation *op;
};
struct Piece {
  int64_t chunks, warm, hops;
};
struct Player {
  RoleOp role;
  int64_t copy;
  std::vector<Event> events;
  DenseSet<Value> puts, gets, shared; // shared: this copy moves every `copies`-th slot only
  size_t next = 0;
  Operation *misplaced = nullptr;                 // a put out of step with the gets of its own role
  std::map<std::pair<int, void *>, int64_t> done; // moves by kind, and ring or turn

  int64_t copies() { return cast<IntegerAttr>(role.getCopies()).getInt(); }
  int64_t slot(Value ring, int64_t n) { return shared.contains(ring) ? copy + n * copies() : n; }
  // Whether this copy is done with slot s of a ring, having moved n of its own.
  bool past(Value ring, int64_t s, int64_t n) {
    if (!shared.contains(ring))
      return n > s;
    return s % copies() != copy || n > s / copies();
  }
};

struct CheckProgress : tile::impl::CheckProgressPassBase<CheckProgress> {
  DenseMap<Value, int64_t> scalars;
  ArrayRef<Piece> items;

  static int64_t binary(Operation &op, int64_t a, int64_t b) {
    if (auto c = dyn_cast<arith::CmpIOp>(op))
      return arith::applyCmpPredicate(c.getPredicate(), APInt(64, a, true), APInt(64, b, true));
    if (isa<arith::AddIOp>(op))
      return a + b;
    if (isa<arith::SubIOp>(op))
      return a - b;
    if (isa<arith::MulIOp>(op))
      return a * b;
    if (isa<arith::MinSIOp>(op))
      return std::min(a, b);
    if (b == 0)
      return 0; // of an op that the player does not follow
    return isa<arith::RemSIOp>(op) ? a % b : (a + b - 1) / b;
  }

  void record(Block &block, Player &p, int64_t chunks, int64_t before) {
    std::vector<Event> &out = p.events;
    for (Operation &op : block) {
      if (auto c = dyn_cast<arith::ConstantOp>(op)) {
        if (auto i = dyn_cast<IntegerAttr>(c.getValue()))
          scalars[c] = i.getInt();
      } else if (auto c = dyn_cast<ChunksOp>(op)) {
        scalars[c] = chunks;
      } else if (auto share = dyn_cast<ShareOp>(op)) {
        scalars[share.getStep()] = p.copies();
        scalars[share.getFirst()] = ((p.copy - before) % p.copies() + p.copies()) % p.copies();
      } else if (isa<arith::CmpIOp, arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::CeilDivSIOp, arith::RemSIOp,
                     arith::MinSIOp>(op)) {
        scalars[op.getResult(0)] = binary(op, scalars[op.getOperand(0)], scalars[op.getOperand(1)]);
      } else if (auto f = dyn_cast<ForeachOp>(op)) {
        int64_t sum = 0;
        for (const Piece &item : items) {
          if (f.hasPieces())
            scalars[f.getWarm()] = item.warm, scalars[f.getHops()] = item.hops;
          record(f.getBody().front(), p, item.chunks, sum);
          sum += item.chunks;
        }
      } else if (auto f = dyn_cast<scf::ForOp>(op)) {
        for (int64_t i = scalars[f.getLowerBound()]; i < scalars[f.getUpperBound()]; i += scalars[f.getStep()]) {
          scalars[f.getInductionVar()] = i;
          record(*f.getBody(), p, chunks, before);
        }
      } else if (auto i = dyn_cast<scf::IfOp>(op)) {
        if (scalars[i.getCondition()])
          record(*i.thenBlock(), p, chunks, before);
        else if (i.elseBlock())
          record(*i.elseBlock(), p, chunks, before);
      } else if (auto put = dyn_cast<PutOp>(op)) {
        out.push_back({Event::Begin, put.getRing(), &op});
        record(put.getBody().front(), p, chunks, before);
        out.push_back({Event::Publish, put.getRing(), &op});
        if (put.getUnread()) {
          out.push_back({Event::Get, put.getRing(), &op});
          out.push_back({Event::Release, put.getRing(), &op});
        }
      } else if (auto turn = dyn_cast<TurnOp>(op)) {
        out.push_back({Event::Enter, {}, &op});
        record(turn.getBody().front(), p, chunks, before);
        out.push_back({Event::Leave, {}, &op});
      } else if (auto warp = dyn_cast<OneWarpOp>(op)) {
        record(warp.getBody().front(), p, chunks, before);
      } else if (auto get = dyn_cast<GetOp>(op)) {
        out.push_back({Event::Get, get.getRing(), &op});
      } else if (auto release = dyn_cast<ReleaseOp>(op)) {
        out.push_back({Event::Release, release.getRing(), &op});
      }
    }
  }

  // Rings that a role puts, gets, and moves by turns of its copies.
  static void classify(Player &p) {
    auto inShare = [](Operation *op) {
      for (auto f = op->getParentOfType<scf::ForOp>(); f; f = f->getParentOfType<scf::ForOp>())
        if (f.getLowerBound().getDefiningOp<ShareOp>())
          return true;
      return false;
    };
    p.role.walk([&](Operation *op) {
      if (!isa<PutOp, GetOp>(op))
        return;
      (isa<PutOp>(op) ? p.puts : p.gets).insert(op->getOperand(0));
      if (inShare(op))
        p.shared.insert(op->getOperand(0));
    });
  }

  // Makes the next move of a copy, unless another one has to move before.
  static bool step(Player &p, std::vector<Player> &players) {
    Event &e = p.events[p.next];
    void *r = e.ring ? e.ring.getAsOpaquePointer() : e.op;
    auto done = [&](Player &o, Event::Kind kind) { return o.done[{kind, r}]; };
    auto all = [&](auto pred) {
      bool own = e.ring && isa<RoleOp>(e.ring.getDefiningOp()->getParentOp()); // each copy has one of its own
      return llvm::all_of(players, [&](Player &o) { return (own && &o != &p) || pred(o); });
    };
    if (e.kind == Event::Begin) {
      if (p.gets.contains(e.ring) && done(p, Event::Begin) != done(p, Event::Get)) {
        p.misplaced = e.op;
        return false;
      }
      int64_t depth = cast<IntegerAttr>(e.ring.getDefiningOp<RingOp>().getDepth()).getInt();
      int64_t s = p.slot(e.ring, done(p, Event::Begin)) - depth;
      auto released = [&](Player &o) { return !o.gets.contains(e.ring) || o.past(e.ring, s, done(o, Event::Release)); };
      if (s >= 0 && !all(released))
        return false;
    } else if (e.kind == Event::Get) {
      int64_t s = p.slot(e.ring, done(p, Event::Get));
      auto put = [&](Player &o) { return !o.puts.contains(e.ring) || o.past(e.ring, s, done(o, Event::Publish)); };
      if (!all(put))
        return false;
    } else if (e.kind == Event::Enter) { // after the copy before it, the first one after the last one's turn before
      int64_t n = done(p, Event::Enter);
      auto passed = [&](Player &o) { return o.role != p.role || done(o, Event::Leave) >= n + (o.copy < p.copy); };
      if (!all(passed))
        return false;
    }
    ++p.done[{e.kind, r}];
    ++p.next;
    return true;
  }

  // Whoever uses a ring has moved the same number of slots in the end; copies that share it, together.
  static LogicalResult checkBalance(RingOp ring, std::vector<Player> &players, Diagnostic &diag) {
    std::map<std::pair<Operation *, bool>, int64_t> total;
    for (Player &p : players)
      for (bool put : {true, false}) {
        if (!(put ? p.puts : p.gets).contains(ring.getRing()))
          continue;
        int64_t n = p.done[{put ? Event::Publish : Event::Release, ring.getRing().getAsOpaquePointer()}];
        int64_t &t = total[{p.role, put}];
        t = p.shared.contains(ring.getRing()) ? t + n : n;
      }
    for (auto &[who, n] : total)
      if (n != total.begin()->second) {
        diag.attachNote(ring.getLoc()) << "its users move " << n << " and " << total.begin()->second << " slots";
        return failure();
      }
    return success();
  }

  LogicalResult play(KernelOp kernel, ArrayRef<Piece> pieces) {
    items = pieces;
    std::vector<Player> players(1);
    record(kernel.getBody().front(), players[0], 0, 0); // scalars of the kernel's own body
    players.clear();
    for (auto role : kernel.getBody().getOps<RoleOp>())
      for (int64_t i = 0; i < cast<IntegerAttr>(role.getCopies()).getInt(); ++i) {
        Player &p = players.emplace_back();
        p.role = role, p.copy = i;
        classify(p);
        record(role.getBody().front(), p, 0, 0);
      }
    for (bool moved = true; moved;) {
      moved = false;
      for (Player &p : players)
        while (p.next < p.events.size() && step(p, players))
          moved = true;
    }
    for (Player &p : players)
      if (p.misplaced)
        return p.misplaced->emitError("expected a role that fills a ring which it takes from to put one slot for each "
                                      "get, and the first behind those that it holds");
    bool stuck = false;
    InFlightDiagnostic diag = kernel.emitError("roles stop with work left, for items of ");
    auto list = [&](int64_t Piece::*count) {
      llvm::interleaveComma(pieces, diag, [&](const Piece &piece) { diag << piece.*count; });
    };
    list(&Piece::chunks);
    diag << " chunks";
    if (llvm::any_of(pieces, [](const Piece &piece) { return piece.hops > 0; })) {
      diag << ", of which ";
      list(&Piece::warm);
      diag << " for the state alone, behind ";
      list(&Piece::hops);
      diag << " hops";
    }
    for (Player &p : players)
      if (p.next < p.events.size()) {
        stuck = true;
        Event &e = p.events[p.next];
        diag.attachNote(e.op->getLoc()) << "copy " << p.copy << " of role '" << p.role.getName() << "' waits for "
                                        << (e.kind == Event::Get     ? "a slot to be published"
                                            : e.kind == Event::Begin ? "a slot to be released"
                                                                     : "its turn");
      }
    if (stuck)
      return failure();
    WalkResult balanced = kernel.walk(
        [&](RingOp ring) { return WalkResult(checkBalance(ring, players, *diag.getUnderlyingDiagnostic())); });
    if (balanced.wasInterrupted())
      return failure();
    diag.abandon();
    return success();
  }
  void runOnOperation() override {
    const std::vector<std::vector<int64_t>> chunks = {{9},          {8},          {0, 1, 0, 2},      {1, 1, 1, 1, 1, 1},
                                                      {5, 0, 3, 7}, {4, 2, 0, 6}, {1, 4, 3, 2, 0, 1}};
    for (auto kernel : getOperation().getOps<KernelOp>())
      for (bool plain : {true, false})
        for (ArrayRef<int64_t> lengths : chunks) {
          SmallVector<Piece> pieces;
          for (auto [i, n] : llvm::enumerate(lengths))
            pieces.push_back({n, plain ? 0 : n / 2, plain ? 0 : int64_t(i + lengths.size()) % 4});
          if (failed(play(kernel, pieces)))
            return signalPassFailure();
        }
  }
};
} // namespace
