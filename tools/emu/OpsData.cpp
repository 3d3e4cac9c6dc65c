// mov and its packing, addresses of spaces.
#include "Ops.h"

namespace gdn::emu {
namespace {

template <class T> void mov(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  if (w.exec == all)
    std::memmove(w.at<T>(i.a[0]), x, sizeof(T) * lanes);
  else
    write<T>(w, i.a[0], [&](unsigned l) { return x[l]; });
}
void movPredicate(Warp &w, const Inst &i) { writePredicate(w, i.a[0], *w.at<uint32_t>(i.a[1])); }
void movParam(Warp &w, const Inst &i) {
  const uint64_t *x = w.at<uint64_t>(i.a[1]);
  write<uint64_t>(w, i.a[0], [&](unsigned l) { return x[l] + uint64_t(i.imm); });
}
// Clocks count the instructions of the block: the same run gives the same values.
void movClock(Warp &w, const Inst &i) {
  uint64_t now = w.block->instructions + w.executed;
  if (i.size == 8)
    write<uint64_t>(w, i.a[0], [&](unsigned) { return now; });
  else
    write<uint32_t>(w, i.a[0], [&](unsigned) { return uint32_t(i.flags ? now >> 32 : now); });
}

// {a, b, ...} into one register, or one register into {a, b, ...}; P: the type of a part.
template <class T, class P> void pack(Warp &w, const Inst &i) {
  constexpr unsigned n = sizeof(T) / sizeof(P);
  const P *x[n];
  for (unsigned k = 0; k < n; k++)
    x[k] = w.at<P>(i.a[1 + k]);
  write<T>(w, i.a[0], [&](unsigned l) {
    T r = 0;
    for (unsigned k = 0; k < n; k++)
      r |= T(x[k][l]) << 8 * sizeof(P) * k;
    return r;
  });
}
template <class T, class P> void unpack(Warp &w, const Inst &i) {
  constexpr unsigned n = sizeof(T) / sizeof(P);
  T x[lanes];
  std::memcpy(x, w.at<T>(i.a[n]), sizeof x);
  for (unsigned k = 0; k < n; k++)
    write<P>(w, i.a[k], [&](unsigned l) { return P(x[l] >> 8 * sizeof(P) * k); });
}

Type partType(Decoder &d, Type whole, size_t n) {
  unsigned bytes = n ? sizeOf(whole) / n : 0;
  if (bytes * n != sizeOf(whole) || (bytes != 1 && bytes != 2 && bytes != 4))
    d.fail("cannot split " + std::to_string(sizeOf(whole) * 8) + " bits into " + std::to_string(n) + " parts");
  return bytes == 1 ? Type::B8 : bytes == 2 ? Type::B16 : Type::B32;
}

void decodePack(Decoder &d, Type t) {
  const Operand &v = d.operand(1);
  Type part = partType(d, t, v.items.size());
  d.out(t, 0);
  for (auto &item : v.items)
    d.use(part, item);
  if (part == Type::B8)
    d.fail("vectors of bytes are not supported");
  d.finish(sizeOf(t) == 4      ? pack<uint32_t, uint16_t>
           : part == Type::B16 ? pack<uint64_t, uint16_t>
                               : pack<uint64_t, uint32_t>,
           Unit::Alu);
}
void decodeUnpack(Decoder &d, Type t) {
  const Operand &v = d.operand(0);
  Type part = partType(d, t, v.items.size());
  if (part == Type::B8)
    d.fail("vectors of bytes are not supported");
  for (auto &item : v.items)
    d.out(part, item);
  d.use(t, 1);
  d.finish(sizeOf(t) == 4      ? unpack<uint32_t, uint16_t>
           : part == Type::B16 ? unpack<uint64_t, uint16_t>
                               : unpack<uint64_t, uint32_t>,
           Unit::Alu);
}

bool isClock(const std::string &name) {
  return name == "%clock" || name == "%clock64" || name == "%clock_hi" || name == "%globaltimer" ||
         name == "%globaltimer_lo" || name == "%globaltimer_hi";
}

void decodeMov(Decoder &d) {
  Type t = d.type();
  d.expectOperands(2, 2);
  const Operand &from = d.operand(1);
  if (from.kind == Operand::Kind::Vector)
    return decodePack(d, t);
  if (d.operand(0).kind == Operand::Kind::Vector)
    return decodeUnpack(d, t);
  d.out(t, 0);
  if (from.kind == Operand::Kind::Special && isClock(from.name)) {
    d.inst().size = sizeOf(t);
    d.inst().flags = from.name.ends_with("_hi");
    return d.finish(movClock, Unit::Alu);
  }
  if (from.kind == Operand::Kind::Special && from.name.starts_with("%total_smem") && sizeOf(t) != 4)
    d.fail("expected a type of 32 bits");
  d.use(t, 1);
  bool param = d.result().slots.back() == slotOf(Special::ParamBase);
  if (param && sizeOf(t) != 8)
    d.fail("the address of a parameter has 64 bits");
  d.finish(t == Type::Pred  ? movPredicate
           : param          ? movParam
           : sizeOf(t) == 8 ? mov<uint64_t>
           : sizeOf(t) == 2 ? mov<uint16_t>
                            : mov<uint32_t>,
           Unit::Alu);
}

template <class T, int64_t Sign> void addWindow(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  write<uint64_t>(w, i.a[0], [&](unsigned l) { return uint64_t(x[l]) + uint64_t(i.imm) * uint64_t(Sign); });
}
void decodeCvta(Decoder &d) {
  bool to = d.take("to");
  Space space = d.space();
  Type t = d.type();
  d.expectOperands(2, 2);
  if (sizeOf(t) != 8)
    d.fail("generic addresses have 64 bits");
  uint64_t window = space == Space::Shared ? sharedWindow : space == Space::Local ? localWindow : 0;
  d.out(t, 0);
  d.use(t, 1);
  // The address of a parameter carries its offset in imm already.
  if (d.result().slots.back() == slotOf(Special::ParamBase))
    return d.finish(movParam, Unit::Alu);
  d.inst().imm = int64_t(window);
  d.finish(to ? addWindow<uint64_t, -1> : addWindow<uint64_t, 1>, Unit::Alu);
}

void isspacep(Warp &w, const Inst &i) {
  const uint64_t *x = w.at<uint64_t>(i.a[1]);
  writePredicate(w, i.a[0], predicate([&](unsigned l) { return (x[l] & ~windowMask) == uint64_t(i.imm); }));
}
void decodeIsspacep(Decoder &d) {
  Space space = d.space();
  d.out(Type::Pred, 0);
  d.use(Type::U64, 1);
  d.inst().imm = int64_t(space == Space::Shared ? sharedWindow : space == Space::Local ? localWindow : 0);
  d.finish(isspacep, Unit::Alu);
}

// The address of another block's shared memory: its rank plus one in the bits above 24, 0 being the block's own.
template <class T> void mapa(Warp &w, const Inst &i) {
  const T *x = w.at<T>(i.a[1]);
  const uint32_t *rank = w.at<uint32_t>(i.a[2]);
  write<T>(w, i.a[0], [&](unsigned l) { return T((x[l] & ~T(0xff000000u)) | T(rank[l] + 1) << 24); });
}
void decodeMapa(Decoder &d) {
  d.space();
  Type t = d.type();
  d.out(t, 0);
  d.use(t, 1);
  d.use(Type::U32, 2);
  d.finish(sizeOf(t) == 8 ? mapa<uint64_t> : mapa<uint32_t>, Unit::Alu);
}

const Row rows[] = {{"mov", decodeMov}, {"cvta", decodeCvta}, {"isspacep", decodeIsspacep}, {"mapa", decodeMapa}};

} // namespace
const Family dataFamily{rows, std::size(rows)};
} // namespace gdn::emu
