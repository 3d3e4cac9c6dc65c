// Exchange between the lanes of a warp.
#include "Ops.h"
#include <algorithm>

namespace gdn::emu {
namespace {

// Lanes named by the member masks of the lanes here.
uint32_t members(Warp &w, Slot s) {
  const uint32_t *m = w.at<uint32_t>(s);
  uint32_t r = 0;
  for (uint32_t e = w.exec; e; e &= e - 1)
    r |= m[std::countr_zero(e)];
  return r;
}

enum class Shuffle : uint8_t { Up, Down, Bfly, Idx };

template <Shuffle Mode> void shfl(Warp &w, const Inst &i) {
  if (!w.converge(i, members(w, i.a[5])))
    return;
  const uint32_t *x = w.at<uint32_t>(i.a[2]), *b = w.at<uint32_t>(i.a[3]), *c = w.at<uint32_t>(i.a[4]);
  uint32_t r[lanes], valid = 0;
  for (int l = 0; l < int(lanes); l++) {
    int segment = c[l] >> 8 & 31, bound = c[l] & 31, shift = b[l] & 31;
    int last = (l & segment) | (bound & ~segment), first = l & segment;
    int j = Mode == Shuffle::Up     ? l - shift
            : Mode == Shuffle::Down ? l + shift
            : Mode == Shuffle::Bfly ? l ^ shift
                                    : first | (shift & ~segment);
    bool p = Mode == Shuffle::Up ? j >= last : j <= last;
    r[l] = x[p ? j : l];
    valid |= uint32_t(p) << l;
  }
  write<uint32_t>(w, i.a[0], [&](unsigned l) { return r[l]; });
  writePredicate(w, i.a[1], valid);
}
void decodeShfl(Decoder &d) {
  d.take("sync");
  int mode = d.choose({"up", "down", "bfly", "idx"});
  if (mode < 0 || sizeOf(d.type()) != 4)
    d.fail("expected a mode and '.b32'");
  d.expectOperands(5, 5);
  const Operand &to = d.operand(0);
  bool pair = to.kind == Operand::Kind::Pair;
  d.out(Type::B32, pair ? to.items[0] : to);
  d.out(Type::Pred, pair ? to.items[1] : Operand{});
  d.uses(Type::B32, {1, 2, 3, 4});
  constexpr Run runs[] = {shfl<Shuffle::Up>, shfl<Shuffle::Down>, shfl<Shuffle::Bfly>, shfl<Shuffle::Idx>};
  d.finish(runs[mode], Unit::Warp);
}

// flags: 0 all, 1 any, 2 uni, 3 ballot
void vote(Warp &w, const Inst &i) {
  if (!w.converge(i, members(w, i.a[2])))
    return;
  uint32_t p = (*w.at<uint32_t>(i.a[1]) ^ i.aux) & w.exec;
  if (i.flags == 3)
    return write<uint32_t>(w, i.a[0], [&](unsigned) { return p; });
  bool r = i.flags == 0 ? p == w.exec : i.flags == 1 ? p != 0 : p == 0 || p == w.exec;
  writePredicate(w, i.a[0], r ? all : 0);
}
void decodeVote(Decoder &d) {
  d.take("sync");
  int mode = d.choose({"all", "any", "uni", "ballot"});
  Type t = d.type();
  if (mode < 0 || (mode == 3) != (t == Type::B32))
    d.fail("expected '.all.pred', '.any.pred', '.uni.pred' or '.ballot.b32'");
  d.expectOperands(3, 3);
  d.out(t, 0);
  d.use(Type::Pred, 1);
  d.inst().aux = d.operand(1).negated ? ~0u : 0;
  d.use(Type::B32, 2);
  d.inst().flags = mode;
  d.finish(vote, Unit::Warp);
}

template <class T, bool All> void match(Warp &w, const Inst &i) {
  if (!w.converge(i, members(w, i.a[3])))
    return;
  const T *x = w.at<T>(i.a[2]);
  uint32_t r[lanes] = {}, same = 0;
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    for (uint32_t k = w.exec; k; k &= k - 1)
      r[l] |= uint32_t(x[std::countr_zero(k)] == x[l]) << std::countr_zero(k);
    if (All) {
      r[l] = r[l] == w.exec ? w.exec : 0;
      same |= uint32_t(r[l] != 0) << l;
    }
  }
  write<uint32_t>(w, i.a[0], [&](unsigned l) { return r[l]; });
  writePredicate(w, i.a[1], same);
}
void decodeMatch(Decoder &d) {
  d.take("sync");
  bool isAll = d.choose({"any", "all"}) == 1;
  Type t = d.type();
  const Operand &to = d.operand(0);
  bool pair = to.kind == Operand::Kind::Pair;
  d.out(Type::B32, pair ? to.items[0] : to);
  d.out(Type::Pred, pair ? to.items[1] : Operand{});
  d.use(t, 1);
  d.use(Type::B32, 2);
  d.finish(sizeOf(t) == 8 ? (isAll ? match<uint64_t, true> : match<uint64_t, false>)
                          : (isAll ? match<uint32_t, true> : match<uint32_t, false>),
           Unit::Warp);
}

template <class T, auto F> void redux(Warp &w, const Inst &i) {
  if (!w.converge(i, members(w, i.a[2])))
    return;
  const T *x = w.at<T>(i.a[1]);
  T r = x[std::countr_zero(w.exec)];
  for (uint32_t m = w.exec & (w.exec - 1); m; m &= m - 1)
    r = F(r, x[std::countr_zero(m)]);
  write<T>(w, i.a[0], [&](unsigned) { return r; });
}
void decodeRedux(Decoder &d) {
  d.take("sync");
  int op = d.choose({"add", "min", "max", "and", "or", "xor"});
  Type t = d.type();
  if (op < 0 || sizeOf(t) != 4 || isFloat(t))
    d.fail("expected an operation on 32-bit integers");
  d.expectOperands(3, 3);
  d.out(t, 0);
  d.uses(t, {1, 2});
  using U = uint32_t;
  using S = int32_t;
  const Run runs[] = {redux<U, [](U x, U y) { return x + y; }>,
                      isSigned(t) ? Run(redux<S, [](S x, S y) { return std::min(x, y); }>)
                                  : Run(redux<U, [](U x, U y) { return std::min(x, y); }>),
                      isSigned(t) ? Run(redux<S, [](S x, S y) { return std::max(x, y); }>)
                                  : Run(redux<U, [](U x, U y) { return std::max(x, y); }>),
                      redux<U, [](U x, U y) { return x & y; }>,
                      redux<U, [](U x, U y) { return x | y; }>,
                      redux<U, [](U x, U y) { return x ^ y; }>};
  d.finish(runs[op], Unit::Warp);
}

void activemask(Warp &w, const Inst &i) {
  uint32_t m = w.exec;
  write<uint32_t>(w, i.a[0], [&](unsigned) { return m; });
}
void decodeActivemask(Decoder &d) {
  d.type();
  d.out(Type::B32, 0);
  d.finish(activemask, Unit::Warp);
}

// The lowest lane of the mask is elected.
void elect(Warp &w, const Inst &i) {
  if (!w.converge(i, members(w, i.a[2])))
    return;
  uint32_t leader = std::countr_zero(w.exec);
  write<uint32_t>(w, i.a[0], [&](unsigned) { return leader; });
  writePredicate(w, i.a[1], 1u << leader);
}
void decodeElect(Decoder &d) {
  d.take("sync");
  const Operand &to = d.operand(0);
  if (to.kind != Operand::Kind::Pair)
    d.fail("expected 'd|p' as destination");
  d.out(Type::B32, to.items[0]);
  d.out(Type::Pred, to.items[1]);
  d.use(Type::B32, 1);
  d.finish(elect, Unit::Warp);
}

const Row rows[] = {{"shfl", decodeShfl},
                    {"vote", decodeVote},
                    {"match", decodeMatch},
                    {"redux", decodeRedux},
                    {"activemask", decodeActivemask},
                    {"elect", decodeElect}};

} // namespace
const Family warpFamily{rows, std::size(rows)};
} // namespace gdn::emu
