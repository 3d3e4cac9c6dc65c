#include "Detector.h"
#include <algorithm>

namespace gdn::emu {
namespace {
constexpr uint32_t loadActors = 32, never = 0, mbarrierState = 1;
constexpr size_t memoSize = 1 << 14, mostStates = 1 << 20;
} // namespace

void Clock::join(const Clock &other) {
  seen.resize(std::max(seen.size(), other.seen.size()));
  fenced.resize(std::max(fenced.size(), other.fenced.size()));
  for (size_t n = 0; n < other.seen.size(); n++)
    seen[n] = std::max(seen[n], other.seen[n]);
  for (size_t n = 0; n < other.fenced.size(); n++)
    fenced[n] = std::max(fenced[n], other.fenced[n]);
}

Detector::Detector(Block &block)
    : block(block), program(block.grid.program), warps(uint32_t(block.warps.size())), actors(3 * warps + loadActors),
      warpStates(warps), namedClocks(block.barriers.size()), asyncTime(actors), loads(loadActors),
      shadow(block.sharedEnd, never), states(2), memo(memoSize) {
  states[mbarrierState].mbarrier = true;
  for (uint32_t n = 0; n < warps; n++) {
    warpStates[n].clock.seen.assign(actors, 0);
    warpStates[n].clock.fenced.assign(warps, 0);
    warpStates[n].clock.seen[n] = 1;
    warpStates[n].registers.resize(program.watches.size());
  }
  firstReference.assign(program.code.size() + 1, 0);
  for (auto &r : program.references)
    firstReference[r.inst + 1]++;
  for (size_t n = 0; n < program.code.size(); n++)
    firstReference[n + 1] += firstReference[n];
  for (size_t n = 0; n < program.watches.size(); n++)
    watchOf[program.watches[n].reg] = uint32_t(n);
}

std::string Detector::describe(const Epoch &e) const {
  static const char *const kinds[] = {"warp ", "a wgmma of warp ", "a bulk store of warp "};
  uint32_t kind = e.actor / warps;
  return (kind < 3 ? kinds[kind] + std::to_string(e.actor % warps) : "a bulk load") + " at " +
         describeLine(block.grid.image.module, e.line);
}

void Detector::race(const Toucher &t, const Epoch &other, const char *what, uint32_t address) const {
  std::string by = t.async ? "asynchronous " : "";
  t.w.fail("race on shared byte " + std::to_string(address - sharedBase) + ": this " + by +
           (t.kind == Access::Read ? "read" : "write") + " is not ordered after the " + what + " by " +
           describe(other));
}

// Order after the last write; for asynchronous work also a proxy fence behind a generic one.
void Detector::checkWriter(const State &s, const Toucher &t, uint32_t address) const {
  const Epoch &e = s.writer;
  if (!s.written)
    return;
  if (e.actor != t.actor && t.known.seen[e.actor] < e.time)
    race(t, e, "write", address);
  if (t.async && e.actor < warps && t.known.fenced[e.actor] < e.time)
    t.w.fail("shared byte " + std::to_string(address - sharedBase) + " was written by " + describe(e) +
             " and is used by the asynchronous proxy without a fence.proxy.async between");
}

uint32_t Detector::next(uint32_t id, const Toucher &t, uint32_t address) {
  const State &s = states[id];
  if (s.mbarrier)
    t.w.fail("shared byte " + std::to_string(address - sharedBase) + " belongs to an mbarrier");
  Epoch now{t.actor, t.time, t.i.line};
  if (t.kind == Access::Atomic)
    return s.written ? id : uint32_t((states.push_back({true, false, now, {}}), states.size() - 1));
  checkWriter(s, t, address);
  if (t.kind == Access::Write) {
    for (auto &r : s.readers)
      if (r.actor != t.actor && t.known.seen[r.actor] < r.time)
        race(t, r, "read", address);
    states.push_back({true, false, now, {}});
    return uint32_t(states.size() - 1);
  }
  if (!s.written)
    t.w.fail("shared byte " + std::to_string(address - sharedBase) + " is read before anything was written to it");
  for (auto &r : s.readers)
    if (r.actor == t.actor && r.time == t.time)
      return id;
  // Reads that happened before this one need not be remembered: a write ordered after this is ordered after them.
  State to{true, false, s.writer, {}};
  for (auto &r : s.readers)
    if (r.actor != t.actor && t.known.seen[r.actor] < r.time)
      to.readers.push_back(r);
  to.readers.push_back(now);
  states.push_back(std::move(to));
  return uint32_t(states.size() - 1);
}

// What the actor knows only grows while its time stands still: an access once found in order stays so.
uint32_t Detector::transition(uint32_t id, const Toucher &t, uint32_t address) {
  uint64_t key = (uint64_t(t.time) << 32 | t.i.line << 10 | t.actor << 2 | uint32_t(t.kind));
  uint64_t hash = (key ^ uint64_t(id) << 17) * 0x9e3779b97f4a7c15u;
  Memo &m = memo[hash >> 50];
  if (m.key != key || m.from != id) {
    uint32_t to = next(id, t, address);
    m = {key, id, to};
  }
  return m.to;
}

void Detector::touch(const Toucher &t, uint32_t address, uint32_t bytes) {
  if (states.size() > mostStates)
    compact();
  uint32_t *p = shadow.data() + address, from = ~0u, to = 0;
  for (uint32_t n = 0; n < bytes; n++) {
    if (p[n] != from) {
      from = p[n];
      to = transition(from, t, address + n);
    }
    p[n] = to;
  }
}

void Detector::compact() {
  std::vector<uint32_t> moved(states.size(), ~0u);
  std::vector<State> kept(states.begin(), states.begin() + 2);
  moved[never] = never, moved[mbarrierState] = mbarrierState;
  for (auto &id : shadow) {
    if (moved[id] == ~0u) {
      moved[id] = uint32_t(kept.size());
      kept.push_back(std::move(states[id]));
    }
    id = moved[id];
  }
  states = std::move(kept);
  memo.assign(memoSize, {});
}

void Detector::access(Warp &w, const Inst &i, Access kind, uint32_t address, uint32_t bytes) {
  const Clock &clock = warpStates[w.index].clock;
  touch({w, i, w.index, clock.seen[w.index], clock, false, kind}, address, bytes);
}

// Neighbouring lanes often touch neighbouring bytes. Other spaces and other blocks' memory are left out.
void Detector::access(Warp &w, const Inst &i, Access kind, uint8_t *const *lane, uint32_t bytes) {
  const uint8_t *base = block.shared.data(), *from = nullptr, *end = nullptr;
  auto flush = [&] {
    if (from >= base && from < base + block.sharedEnd)
      access(w, i, kind, uint32_t(from - base), uint32_t(end - from));
  };
  for (uint32_t m = w.exec; m; m &= m - 1) {
    const uint8_t *p = lane[__builtin_ctz(m)];
    if (p != end) {
      flush();
      from = p;
    }
    end = p + bytes;
  }
  flush();
}

void Detector::workAccess(Warp &w, const Inst &i, const Ticket &work, Access kind, uint32_t address, uint32_t bytes) {
  touch({w, i, work.actor, work.time, *work.known, true, kind}, address, bytes);
}

void Detector::placeMbarrier(uint32_t address, bool there) {
  for (uint32_t n = 0; n < 8; n++)
    shadow[address + n] = there ? mbarrierState : never;
  mbarriers[address] = {};
}

void Detector::proxyFence(Warp &w) {
  Clock &c = warpStates[w.index].clock;
  for (uint32_t n = 0; n < warps; n++)
    c.fenced[n] = std::max(c.fenced[n], c.seen[n]);
}

// What comes later in the warp is not ordered by this arrival: its time moves on.
void Detector::arrive(Warp &w, Clock &barrier) {
  Clock &c = warpStates[w.index].clock;
  barrier.join(c);
  c.seen[w.index]++;
}
void Detector::leave(Warp &w, const Clock &barrier) {
  Clock &c = warpStates[w.index].clock;
  c.join(barrier);
  for (uint32_t n = 0; n < loadActors; n++)
    loads[n].seen |= c.seen[3 * warps + n] >= loads[n].time;
}

void Detector::phaseDone(uint32_t address) {
  MbarrierState &b = mbarriers[address];
  b.done.join(b.current);
}

Ticket Detector::begin(Warp &w, AsyncWork::Group group) {
  Clock &c = warpStates[w.index].clock;
  Ticket t;
  t.known = std::make_shared<Clock>(c);
  if (group == AsyncWork::Group::Wgmma || group == AsyncWork::Group::Bulk) {
    bool product = group == AsyncWork::Group::Wgmma;
    t.actor = (product ? warps : 2 * warps) + w.index;
    t.time = ++asyncTime[t.actor];
    auto &list = product ? warpStates[w.index].products : warpStates[w.index].stores;
    list.emplace_back(product ? w.wgmmaGroups : w.bulkGroups[__builtin_ctz(w.exec)], t.time);
  } else {
    uint32_t n = uint32_t(nextLoad++ % loadActors);
    t.actor = 3 * warps + n;
    t.time = ++asyncTime[t.actor];
    loads[n] = {t.time, program.code[w.pc - 1].line, w.index, false};
  }
  c.seen[w.index]++;
  return t;
}

void Detector::completed(const Ticket &work, uint32_t address) {
  Clock &c = mbarriers[address].current;
  c.join(*work.known);
  c.seen[work.actor] = std::max(c.seen[work.actor], work.time);
}

void Detector::groupsDone(Warp &w, AsyncWork::Group group, uint64_t until) {
  bool product = group == AsyncWork::Group::Wgmma;
  WarpState &s = warpStates[w.index];
  auto &list = product ? s.products : s.stores;
  uint32_t &seen = s.clock.seen[(product ? warps : 2 * warps) + w.index];
  std::erase_if(list, [&](auto &p) {
    if (p.first >= until)
      return false;
    seen = std::max(seen, p.second);
    return true;
  });
  if (product)
    s.groupsDone = std::max(s.groupsDone, until);
}

void Detector::exits(Warp &w) {
  if (!warpStates[w.index].stores.empty())
    w.fail("the warp exits while its bulk stores may still read shared memory: no cp.async.bulk.wait_group names them");
}

void Detector::blockDone() {
  for (auto &l : loads)
    if (!l.seen)
      throw Error(describeLine(block.grid.image.module, l.line) + ", block " + std::to_string(block.index) + ", warp " +
                  std::to_string(l.warp) + ": the block exits though no one waited for this bulk load");
}

std::string Detector::registerName(size_t watch) const {
  return "'" + program.fn->registers[program.watches[watch].reg].name + "'";
}

void Detector::registers(Warp &w, const Inst &i) {
  WarpState &ws = warpStates[w.index];
  size_t n = size_t(&i - program.code.data());
  for (uint32_t r = firstReference[n]; r < firstReference[n + 1]; r++) {
    const Reference &ref = program.references[r];
    auto it = watchOf.find(ref.reg);
    if (it == watchOf.end())
      continue;
    RegisterState &s = ws.registers[it->second];
    if (s.sum > ws.groupsDone)
      w.fail("register " + registerName(it->second) + " is the sum of a wgmma that no wgmma.wait_group has awaited");
    if (!ref.written) {
      if (program.watches[it->second].mayBeUnset && s.unset & w.exec)
        w.fail("register " + registerName(it->second) + " is read before it is written");
      continue;
    }
    if (s.operand > ws.groupsDone)
      w.fail("register " + registerName(it->second) +
             " is written while a wgmma that no wgmma.wait_group has awaited reads it");
    s.unset &= ~w.exec;
    s.written = ws.fences + 1;
  }
}

void Detector::registersOfProduct(Warp &w, const Inst &i, bool accumulates) {
  WarpState &ws = warpStates[w.index];
  uint64_t group = w.wgmmaGroups + 1;
  size_t n = size_t(&i - program.code.data());
  std::vector<uint32_t> sums, operands;
  for (uint32_t r = firstReference[n]; r < firstReference[n + 1]; r++) {
    const Reference &ref = program.references[r];
    auto it = watchOf.find(ref.reg);
    if (it == watchOf.end() || !program.watches[it->second].ofWgmma)
      continue;
    bool sum = ref.slot < uint32_t(i.a - program.slots.data()) + i.count;
    if (sum == ref.written)
      (sum ? sums : operands).push_back(it->second);
  }
  auto check = [&](uint32_t watch, bool isRead) {
    RegisterState &s = ws.registers[watch];
    if (s.written == ws.fences + 1)
      w.fail("register " + registerName(watch) + " was written since the last wgmma.fence");
    if (isRead && s.unset)
      w.fail("register " + registerName(watch) + " is read before it is written");
  };
  for (uint32_t o : operands) {
    check(o, true);
    if (ws.registers[o].sum > ws.groupsDone)
      w.fail("register " + registerName(o) + " is the sum of a wgmma that no wgmma.wait_group has awaited");
    ws.registers[o].operand = group;
  }
  for (uint32_t o : sums) {
    check(o, accumulates);
    if (ws.registers[o].operand > ws.groupsDone)
      w.fail("register " + registerName(o) + " is an operand of a wgmma that no wgmma.wait_group has awaited");
    ws.registers[o].sum = group;
    ws.registers[o].unset = 0;
  }
}

void Detector::matrixFence(Warp &w) { warpStates[w.index].fences++; }

} // namespace gdn::emu
