// Gives each register of a program a slot. PTX is close to static single assignment and a kernel of ours names ten
// thousand registers: sharing slots keeps a warp's file in the first-level cache. A lane follows one path of the
// control flow and writes only its own element, so that intervals of the scalar program are enough.
#include "Decoder.h"
#include <algorithm>

namespace gdn::emu {
namespace {

class Liveness {
public:
  explicit Liveness(const Program &p) : p(p), words((p.fn->registers.size() + 63) / 64) { findBlocks(); }

  void solve() {
    for (auto &b : blocks) {
      b.use.assign(words, 0);
      b.def.assign(words, 0);
      b.in.assign(words, 0);
      b.out.assign(words, 0);
      for (uint32_t r = b.firstRef; r < b.lastRef; r++) {
        const Reference &ref = p.references[r];
        if (!ref.written && !get(b.def, ref.reg))
          set(b.use, ref.reg);
        // Only a write by every lane ends a life. Reads of an instruction come before its writes.
        bool lastOfInst = r + 1 == b.lastRef || p.references[r + 1].inst != ref.inst;
        if (lastOfInst)
          for (uint32_t k = r + 1; k-- > b.firstRef && p.references[k].inst == ref.inst;)
            if (p.references[k].written && !guarded(ref.inst))
              set(b.def, p.references[k].reg);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t n = blocks.size(); n-- > 0;)
        changed |= update(blocks[n]);
    }
  }

  // First and last instruction at which each register holds a value; first > last: never.
  std::vector<std::pair<uint32_t, uint32_t>> intervals() const {
    std::vector<std::pair<uint32_t, uint32_t>> live(p.fn->registers.size(), {~0u, 0});
    auto extend = [&](int reg, uint32_t at) {
      live[reg].first = std::min(live[reg].first, at);
      live[reg].second = std::max(live[reg].second, at);
    };
    for (auto &ref : p.references)
      extend(ref.reg, ref.inst);
    for (auto &b : blocks)
      for (size_t reg = 0; reg < p.fn->registers.size(); reg++) {
        if (get(b.in, reg))
          extend(reg, b.first);
        if (get(b.out, reg))
          extend(reg, b.last);
      }
    return live;
  }
  bool liveAtEntry(int reg) const { return get(blocks[0].in, reg); }

private:
  struct Block {
    uint32_t first = 0, last = 0, firstRef = 0, lastRef = 0;
    std::vector<uint32_t> next;
    std::vector<uint64_t> use, def, in, out;
  };
  static bool get(const std::vector<uint64_t> &s, int reg) { return s[reg / 64] >> reg % 64 & 1; }
  static void set(std::vector<uint64_t> &s, int reg) { s[reg / 64] |= uint64_t(1) << reg % 64; }
  bool guarded(uint32_t inst) const { return p.source[inst]->guard >= 0; }
  bool ends(uint32_t inst) const {
    const std::string &name = p.source[inst]->name;
    return !p.source[inst]->targets.empty() || name == "ret" || name == "exit" || name == "trap";
  }

  void findBlocks() {
    std::vector<bool> leader(p.code.size() + 1, false);
    leader[0] = true;
    for (uint32_t i = 0; i < p.code.size(); i++)
      if (ends(i)) {
        leader[i + 1] = true;
        for (uint32_t t : p.source[i]->targets)
          leader[t] = true;
      }
    std::vector<uint32_t> blockAt(p.code.size() + 1, 0);
    uint32_t ref = 0;
    for (uint32_t i = 0; i < p.code.size(); i++) {
      if (leader[i])
        blocks.emplace_back(), blocks.back().first = i, blocks.back().firstRef = ref;
      blockAt[i] = blocks.size() - 1;
      while (ref < p.references.size() && p.references[ref].inst == i)
        ref++;
      blocks.back().last = i;
      blocks.back().lastRef = ref;
    }
    for (uint32_t b = 0; b < blocks.size(); b++) {
      uint32_t last = blocks[b].last;
      bool stays = !ends(last) || guarded(last);
      if (stays && b + 1 < blocks.size())
        blocks[b].next.push_back(b + 1);
      for (uint32_t t : p.source[last]->targets)
        blocks[b].next.push_back(blockAt[t]);
    }
  }

  bool update(Block &b) {
    bool changed = false;
    for (size_t w = 0; w < words; w++) {
      uint64_t out = 0;
      for (uint32_t n : b.next)
        out |= blocks[n].in[w];
      uint64_t in = b.use[w] | (out & ~b.def[w]);
      changed |= in != b.in[w];
      b.in[w] = in;
      b.out[w] = out;
    }
    return changed;
  }

  const Program &p;
  size_t words;
  std::vector<Block> blocks;
};

// Bytes of the 32 lanes of a register.
uint32_t bytesOf(Type type) { return type == Type::Pred ? 4 : std::max(32 * sizeOf(type), 32u); }

class SlotPool {
public:
  Slot take(uint32_t bytes) {
    auto &list = free[bytes];
    if (list.empty()) {
      // Predicates come sixteen at a time, so that what follows stays aligned.
      uint32_t each = bytes, all = std::max(bytes, 64u);
      for (uint32_t o = all; o >= each; o -= each)
        list.push_back(end + o - each);
      end += all;
    }
    Slot s = list.back();
    list.pop_back();
    return s;
  }
  void give(uint32_t bytes, Slot s) { free[bytes].push_back(s); }
  uint32_t end = 0;

private:
  std::map<uint32_t, std::vector<Slot>> free;
};

} // namespace

void allocateRegisters(Program &p) {
  // Reads of an instruction come first, here and in its slots' meaning: liveness relies on it.
  std::stable_sort(p.references.begin(), p.references.end(),
                   [](auto &x, auto &y) { return x.inst != y.inst ? x.inst < y.inst : x.written < y.written; });
  Liveness liveness(p);
  liveness.solve();
  auto live = liveness.intervals();

  std::vector<bool> ofWgmma(live.size(), false);
  for (auto &ref : p.references)
    if (p.source[ref.inst]->name == "wgmma" && p.fn->registers[ref.reg].type != Type::Pred &&
        sizeOf(p.fn->registers[ref.reg].type) == 4)
      ofWgmma[ref.reg] = true;

  std::vector<Slot> slotOfRegister(live.size(), noSlot);
  std::vector<bool> watched(live.size(), false);
  SlotPool pool;
  std::vector<std::vector<int>> starts(p.code.size()), ends(p.code.size());
  for (size_t reg = 0; reg < live.size(); reg++) {
    if (live[reg].first > live[reg].second)
      continue;
    bool unset = liveness.liveAtEntry(reg);
    if (unset || ofWgmma[reg]) {
      slotOfRegister[reg] = pool.take(bytesOf(p.fn->registers[reg].type));
      p.watches.push_back({int(reg), slotOfRegister[reg], unset, ofWgmma[reg]});
      watched[reg] = true;
      continue;
    }
    starts[live[reg].first].push_back(reg);
    ends[live[reg].second].push_back(reg);
  }
  for (uint32_t i = 0; i < p.code.size(); i++) {
    // Handlers with several destinations write one before they read all: nothing ends and starts in one instruction.
    for (int reg : starts[i])
      slotOfRegister[reg] = pool.take(bytesOf(p.fn->registers[reg].type));
    for (int reg : ends[i])
      pool.give(bytesOf(p.fn->registers[reg].type), slotOfRegister[reg]);
  }
  p.registerBytes = pool.end;

  for (auto &ref : p.references) {
    p.slots[ref.slot] = slotOfRegister[ref.reg];
    if (watched[ref.reg])
      p.code[ref.inst].watched = true;
  }
  for (uint32_t i = 0; i < p.code.size(); i++) {
    Inst &inst = p.code[i];
    inst.guard = p.slots[inst.target];
    inst.a = &p.slots[inst.target + 1];
    const auto &targets = p.source[i]->targets;
    if (p.source[i]->name == "brx") {
      inst.target = p.tables.size();
      p.tables.push_back(targets);
    } else {
      inst.target = targets.empty() ? 0 : targets[0];
    }
  }
}

} // namespace gdn::emu
