// Named barriers, fences, mbarriers and the barrier of a cluster.
#include "Detector.h"
#include "Ops.h"
#include <algorithm>

namespace gdn::emu {
namespace {

void nothing(Warp &, const Inst &) {}
void proxyFence(Warp &w, const Inst &) {
  if (w.block->detector)
    w.block->detector->proxyFence(w);
}
void syncWarp(Warp &w, const Inst &i) {
  const uint32_t *m = w.at<uint32_t>(i.a[0]);
  uint32_t need = 0;
  for (uint32_t e = w.exec; e; e &= e - 1)
    need |= m[std::countr_zero(e)];
  w.converge(i, need);
}

// a: the barrier, its threads (0: all of the block). flags: 1 waits.
void namedBarrier(Warp &w, const Inst &i) {
  if (!w.converge(i, w.live))
    return;
  w.block->barrierArrive(w, *w.at<uint32_t>(i.a[0]), *w.at<uint32_t>(i.a[1]), i.flags);
}

void clusterBarrier(Warp &w, const Inst &i) {
  if (!w.converge(i, w.live))
    return;
  Cluster &c = w.block->cluster;
  Detector *detector = w.block->detector.get();
  if (i.flags) { // wait
    if (detector)
      detector->leave(w, detector->clusterClock);
    if (w.clusterPhase < c.phase)
      return;
    w.waitPhase = w.clusterPhase;
    return w.wait(Status::ClusterBarrier, false);
  }
  w.clusterPhase = c.phase;
  if (detector)
    detector->arrive(w, detector->clusterClock);
  uint32_t expected = 0;
  for (auto &b : c.blocks)
    for (auto &other : b->warps)
      expected += other.status != Status::Done;
  if (++c.arrived >= expected)
    c.arrived = 0, c.phase++;
}

void decodeBar(Decoder &d) {
  if (d.take("warp")) {
    d.take("sync");
    d.use(Type::B32, 0);
    return d.finish(syncWarp, Unit::Barrier);
  }
  if (d.take("cluster")) {
    d.take("aligned"), d.take("acquire"), d.take("release"), d.take("relaxed");
    int what = d.choose({"arrive", "wait"});
    if (what < 0)
      d.fail("expected '.arrive' or '.wait'");
    d.inst().flags = what;
    return d.finish(clusterBarrier, Unit::Barrier);
  }
  d.take("cta"), d.take("aligned");
  int what = d.choose({"arrive", "sync"});
  if (what < 0)
    d.fail("expected '.sync' or '.arrive'");
  d.inst().flags = what;
  d.expectOperands(what ? 1 : 2, 2);
  d.use(Type::U32, 0);
  Operand everyone;
  everyone.kind = Operand::Kind::Integer;
  d.use(Type::U32, d.operands() > 1 ? d.operand(1) : everyone);
  d.finish(namedBarrier, Unit::Barrier);
}

void decodeFence(Decoder &d) {
  // Towards the asynchronous proxy, from the generic one or both ways.
  bool towardsAsync = d.take("async");
  for (const char *m : {"sc",
                        "acq_rel",
                        "acquire",
                        "release",
                        "relaxed",
                        "cta",
                        "cluster",
                        "gpu",
                        "sys",
                        "gl",
                        "proxy",
                        "async",
                        "async::generic",
                        "alias",
                        "tensormap::generic",
                        "mbarrier_init",
                        "global",
                        "shared::cta",
                        "shared::cluster",
                        "async.global",
                        "sync_restrict::shared::cta",
                        "sync_restrict::shared::cluster"})
    d.take(m);
  d.finish(towardsAsync ? proxyFence : nothing, Unit::Barrier);
}

// Calls f(mbarrier, lane) for the lanes that execute; a: address at slot n.
template <class F> void forBarriers(Warp &w, const Inst &i, unsigned n, F f) {
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    uint64_t address = (i.wide ? w.at<uint64_t>(i.a[n])[l] : w.at<uint32_t>(i.a[n])[l]) + uint64_t(i.imm);
    f(uint32_t(address & 0xffffffff), l);
  }
}

void init(Warp &w, const Inst &i) {
  const uint32_t *count = w.at<uint32_t>(i.a[1]);
  forBarriers(w, i, 0, [&](uint32_t address, unsigned l) {
    Block &b = *w.block;
    uint8_t *p = b.sharedAt(w, address, 8, 8);
    if (count[l] < 1 || count[l] >= 1 << 20)
      w.fail("an mbarrier cannot expect " + std::to_string(count[l]) + " arrivals");
    uint32_t at = address;
    Mbarrier &bar = b.owner(w, at).mbarriers[at];
    bar = {at, count[l], count[l], 0, 0, true};
    if (b.detector)
      b.detector->placeMbarrier(at, true);
    std::memset(p, 0, 8);
  });
}
void invalidate(Warp &w, const Inst &i) {
  forBarriers(w, i, 0, [&](uint32_t address, unsigned) {
    Mbarrier &b = w.block->mbarrier(w, address);
    b.valid = false;
    if (w.block->detector)
      w.block->detector->placeMbarrier(b.address, false);
  });
}

enum ArriveFlags : uint8_t { Arrives = 1, ExpectsBytes = 2, Completes = 4, Drops = 8 };

// a: the state (or a sink), address, count or bytes.
void arrive(Warp &w, const Inst &i) {
  const uint32_t *x = w.at<uint32_t>(i.a[2]);
  uint64_t state[lanes] = {};
  forBarriers(w, i, 1, [&](uint32_t address, unsigned l) {
    Mbarrier &b = w.block->mbarrier(w, address);
    state[l] = b.phase;
    if (i.flags & ExpectsBytes)
      w.block->completeBytes(w, b, -int64_t(x[l]));
    if (i.flags & Completes)
      w.block->completeBytes(w, b, x[l]);
    if (i.flags & Drops)
      b.expected -= std::min(b.expected, i.flags & ExpectsBytes ? 1 : x[l]);
    if (i.flags & Arrives && w.block->detector)
      w.block->detector->arrive(w, w.block->detector->mbarrier(b.address));
    if (i.flags & Arrives && w.block == &w.block->owner(w, address))
      b.who.now |= 1u << w.index;
    if (i.flags & Arrives)
      w.block->arrive(w, b, i.flags & ExpectsBytes ? 1 : x[l]);
  });
  writeEach<uint64_t>(w, i.a[0], [&](unsigned l) { return state[l]; });
}

// flags: 1 by parity, 2 may wait. a: predicate, address, state or parity.
void testWait(Warp &w, const Inst &i) {
  uint32_t done = 0, blocked = 0;
  uint64_t phase = 0;
  forBarriers(w, i, 1, [&](uint32_t address, unsigned l) {
    Mbarrier &b = w.block->mbarrier(w, address);
    // A parity names the phase that has it: the current one or the one before.
    uint64_t named = i.flags & 1 ? (w.at<uint32_t>(i.a[2])[l] & 1) == (b.phase & 1) ? b.phase : b.phase - 1
                                 : w.at<uint64_t>(i.a[2])[l];
    if (!(i.flags & 1) && named > b.phase)
      w.fail("the state is none that this mbarrier gave");
    if (i.flags & 1 ? named == b.phase : named >= b.phase) {
      blocked = address, phase = named;
      return;
    }
    done |= 1u << l;
    if (w.block->detector)
      w.block->detector->waited(w, b.address);
  });
  if (!done && i.flags & 2 && !w.timedOut) {
    w.waitAddress = blocked;
    w.waitPhase = phase;
    return w.wait(Status::Mbarrier, true);
  }
  w.timedOut = false;
  if (!done)
    w.stop = w.polls = true;
  writePredicate(w, i.a[0], done);
}

void takeScope(Decoder &d) {
  for (const char *m : {"release", "acquire", "relaxed", "cta", "cluster"})
    d.take(m);
  d.space();
  d.take("b64");
}

void decodeMbarrierWait(Decoder &d, bool mayWait) {
  bool parity = d.take("parity");
  takeScope(d);
  d.expectOperands(3, 4);
  d.out(Type::Pred, 0);
  d.address(d.operand(1));
  d.use(parity ? Type::B32 : Type::B64, 2);
  d.inst().flags = (parity ? 1 : 0) | (mayWait ? 2 : 0);
  d.finish(testWait, Unit::Barrier);
}

void decodeMbarrierArrive(Decoder &d, int what) {
  bool expects = d.take("expect_tx");
  d.take("noComplete");
  takeScope(d);
  uint8_t flags[] = {Arrives, Arrives | Drops, ExpectsBytes, Completes};
  d.inst().flags = flags[what] | (expects ? ExpectsBytes : 0);
  // The state may be left out, and a count of one too.
  bool state = d.operand(0).kind != Operand::Kind::Address;
  d.out(Type::B64, state ? d.operand(0) : Operand{});
  d.address(d.operand(state));
  Operand one;
  one.kind = Operand::Kind::Integer;
  one.bits = 1;
  d.use(Type::U32, d.operands() > 1u + state ? d.operand(1 + state) : one);
  d.finish(arrive, Unit::Barrier);
}

void decodeMbarrier(Decoder &d) {
  if (d.take("init")) {
    takeScope(d);
    d.expectOperands(2, 2);
    d.address(d.operand(0));
    d.use(Type::U32, 1);
    return d.finish(init, Unit::Barrier);
  }
  if (d.take("inval")) {
    takeScope(d);
    d.address(d.operand(0));
    return d.finish(invalidate, Unit::Barrier);
  }
  if (int wait = d.choose({"test_wait", "try_wait"}); wait >= 0)
    return decodeMbarrierWait(d, wait);
  int what = d.choose({"arrive", "arrive_drop", "expect_tx", "complete_tx"});
  if (what < 0)
    d.fail("this operation is not supported");
  decodeMbarrierArrive(d, what);
}

const Row rows[] = {{"bar", decodeBar},
                    {"barrier", decodeBar},
                    {"membar", decodeFence},
                    {"fence", decodeFence},
                    {"mbarrier", decodeMbarrier}};

} // namespace
const Family barrierFamily{rows, std::size(rows)};
} // namespace gdn::emu
