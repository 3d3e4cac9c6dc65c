// Branches and what ends or pauses a thread.
#include "Ops.h"

namespace gdn::emu {
namespace {

void bra(Warp &w, const Inst &i) { w.branch(w.exec, i.target); }
void decodeBra(Decoder &d) {
  d.take("uni");
  d.finish(bra, Unit::Control);
}

void brx(Warp &w, const Inst &i) {
  const uint32_t *x = w.at<uint32_t>(i.a[0]);
  const auto &table = w.program->tables[i.target];
  uint32_t index = x[std::countr_zero(w.exec)], same = 0;
  if (index >= table.size())
    w.fail("index " + std::to_string(index) + " is outside a table of " + std::to_string(table.size()) + " targets");
  for (uint32_t m = w.exec; m; m &= m - 1)
    same |= uint32_t(x[std::countr_zero(m)] == index) << std::countr_zero(m);
  // Lanes with another index come back to this instruction.
  if (uint32_t rest = w.exec & ~same)
    w.split(rest, w.pc - 1);
  w.branch(same, table[index]);
}
void decodeBrx(Decoder &d) {
  d.take("idx");
  d.take("uni");
  d.use(Type::U32, 0);
  d.finish(brx, Unit::Control);
}

void leave(Warp &w, const Inst &) { w.exitLanes(w.exec); }
void decodeRet(Decoder &d) {
  d.take("uni");
  d.finish(leave, Unit::Control);
}
void trap(Warp &w, const Inst &) { w.fail("trap"); }
void decodeTrap(Decoder &d) { d.finish(trap, Unit::Control); }

void nothing(Warp &, const Inst &) {}
void decodeNothing(Decoder &d) {
  for (const char *m : {"u32", "wait", "launch_dependents", "mask"})
    d.take(m);
  d.finish(nothing, Unit::Control);
}
// Another warp may run now.
void pause(Warp &w, const Inst &) { w.stop = true; }
void decodeNanosleep(Decoder &d) {
  d.type();
  d.finish(pause, Unit::Control);
}

void setmaxnreg(Warp &w, const Inst &i) { w.converge(i, w.live); }
void decodeSetmaxnreg(Decoder &d) {
  if (d.choose({"inc", "dec"}) < 0 || !d.take("sync") || !d.take("aligned"))
    d.fail("expected '.inc' or '.dec' and '.sync.aligned'");
  d.type();
  int64_t n = d.integer(d.operand(0));
  if (n < 24 || n > 256 || n % 8)
    d.fail("expected a multiple of 8 from 24 to 256 registers, got " + std::to_string(n));
  d.finish(setmaxnreg, Unit::Control);
}

const Row rows[] = {
    {"bra", decodeBra},
    {"brx", decodeBrx},
    {"ret", decodeRet},
    {"exit", decodeRet},
    {"trap", decodeTrap},
    {"brkpt", decodeTrap},
    {"pmevent", decodeNothing},
    {"nanosleep", decodeNanosleep},
    {"griddepcontrol", decodeNothing},
    {"setmaxnreg", decodeSetmaxnreg},
};

} // namespace
const Family controlFamily{rows, std::size(rows)};
} // namespace gdn::emu
