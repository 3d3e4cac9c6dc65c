// Loads, stores, atomics and hints.
#include "Ops.h"

namespace gdn::emu {
namespace {

// Accesses that other blocks answer to take turns.
bool mayAccess(Warp &w, const Inst &i) { return !i.flags || i.space == Space::Shared || w.inTurn(); }

// M: an element in memory, R: the register, at least as wide.
template <class M, class R> void load(Warp &w, const Inst &i) {
  if (!mayAccess(w, i))
    return;
  uint8_t *p[lanes];
  w.resolve(i, i.a[i.count], i.space, sizeof(M) * i.count, Access::Read, p);
  for (unsigned e = 0; e < i.count; e++) {
    if (i.a[e] == noSlot)
      continue;
    R *to = w.at<R>(i.a[e]);
    for (unsigned l = 0; w.exec == all && l < lanes; l++) {
      M value;
      std::memcpy(&value, p[l] + e * sizeof(M), sizeof(M));
      to[l] = R(value);
    }
    for (uint32_t m = w.exec == all ? 0 : w.exec; m; m &= m - 1) {
      unsigned l = std::countr_zero(m);
      M value;
      std::memcpy(&value, p[l] + e * sizeof(M), sizeof(M));
      to[l] = R(value);
    }
  }
}
template <class M, class R> void store(Warp &w, const Inst &i) {
  if (!mayAccess(w, i))
    return;
  uint8_t *p[lanes];
  w.resolve(i, i.a[i.count], i.space, sizeof(M) * i.count, Access::Write, p);
  for (unsigned e = 0; e < i.count; e++) {
    const R *from = w.at<R>(i.a[e]);
    for (uint32_t m = w.exec; m; m &= m - 1) {
      unsigned l = std::countr_zero(m);
      M value = M(from[l]);
      std::memcpy(p[l] + e * sizeof(M), &value, sizeof(M));
    }
  }
}

template <bool Load> Run accessRun(Type t, unsigned registerBytes) {
  return withInteger(t, [&](auto z) -> Run {
    using M = decltype(z);
    auto with = [](auto r) -> Run {
      using R = decltype(r);
      return Load ? Run(load<M, R>) : Run(store<M, R>);
    };
    switch (registerBytes) {
    case 2:
      return with(uint16_t());
    case 4:
      return with(uint32_t());
    default:
      return with(uint64_t());
    }
  });
}

void takeHints(Decoder &d) {
  for (const char *hint :
       {"weak", "nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt", "mmio", "cta", "cluster", "gpu", "sys"})
    d.take(hint);
  while (!d.takePrefix("L1::").empty() || !d.takePrefix("L2::").empty())
    ;
}
// Accesses that other blocks may answer to.
bool takeOrder(Decoder &d) {
  bool order = false;
  for (const char *m : {"volatile", "relaxed", "acquire", "release", "acq_rel"})
    order |= d.take(m);
  return order;
}

unsigned takeVector(Decoder &d) {
  int v = d.choose({"v2", "v4", "v8"});
  return v < 0 ? 1 : 2u << v;
}

template <bool Load> void decodeAccess(Decoder &d) {
  Inst &i = d.inst();
  i.flags = takeOrder(d);
  i.space = d.space();
  takeHints(d);
  i.count = takeVector(d);
  Type t = d.type();
  if (i.space == Space::Constant)
    i.space = Space::Global; // both are host memory
  if (t == Type::B128)
    d.fail("128-bit elements are not supported");
  d.expectOperands(2, 3); // the third is a cache policy
  const Operand &value = d.operand(Load ? 0 : 1);
  std::vector<Operand> single{value};
  const auto &items = value.kind == Operand::Kind::Vector ? value.items : single;
  if (items.size() != i.count)
    d.fail("expected " + std::to_string(i.count) + " elements, got " + std::to_string(items.size()));
  unsigned bytes = std::max(sizeOf(t), 2u);
  for (auto &item : items) {
    if (unsigned width = d.width(item)) {
      if (bytes != width && &item != &items[0] && bytes != std::max(sizeOf(t), 2u))
        d.fail("registers of a vector have different sizes");
      bytes = width;
    }
    // A literal is as wide as the type; a byte's has no register of its own.
    if (Load)
      d.out(t, item, true);
    else
      d.use(d.width(item) || sizeOf(t) > 1 ? t : Type::U16, item, true);
  }
  d.address(d.operand(Load ? 1 : 0));
  i.size = sizeOf(t);
  d.finish(accessRun<Load>(t, bytes), i.space == Space::Shared ? Unit::Shared : Unit::Memory);
}

enum class Atomic : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor, Exchange, Cas };

template <class T, Atomic Op> T atomicResult(T old, T x, T y) {
  if constexpr (Op == Atomic::Add)
    return T(old + x);
  else if constexpr (Op == Atomic::Min)
    return x < old ? x : old;
  else if constexpr (Op == Atomic::Max)
    return x > old ? x : old;
  else if constexpr (Op == Atomic::Exchange)
    return x;
  else if constexpr (Op == Atomic::Cas)
    return old == x ? y : old;
  else if constexpr (std::is_floating_point_v<T>)
    return old;
  else if constexpr (Op == Atomic::Inc)
    return old >= x ? T(0) : T(old + 1);
  else if constexpr (Op == Atomic::Dec)
    return old == 0 || old > x ? x : T(old - 1);
  else if constexpr (Op == Atomic::And)
    return T(old & x);
  else if constexpr (Op == Atomic::Or)
    return T(old | x);
  else
    return T(old ^ x);
}

// a: destination (or a sink), address, operand, the value of cas.
template <class T, Atomic Op> void atomic(Warp &w, const Inst &i) {
  if (!mayAccess(w, i))
    return;
  uint8_t *p[lanes];
  w.resolve(i, i.a[1], i.space, sizeof(T), Access::Atomic, p);
  const T *x = w.at<T>(i.a[2]), *y = w.at<T>(i.a[Op == Atomic::Cas ? 3 : 2]);
  T old[lanes];
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    std::memcpy(&old[l], p[l], sizeof(T));
    T value = atomicResult<T, Op>(old[l], x[l], y[l]);
    std::memcpy(p[l], &value, sizeof(T));
  }
  writeEach<T>(w, i.a[0], [&](unsigned l) { return old[l]; });
}

// Packed halves: add only.
template <bool Bf> void atomicPair(Warp &w, const Inst &i) {
  if (!mayAccess(w, i))
    return;
  uint8_t *p[lanes];
  w.resolve(i, i.a[1], i.space, 4, Access::Atomic, p);
  const uint32_t *x = w.at<uint32_t>(i.a[2]);
  uint32_t old[lanes];
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    std::memcpy(&old[l], p[l], 4);
    uint32_t value = 0;
    for (unsigned h = 0; h < 32; h += 16) {
      uint16_t a = uint16_t(old[l] >> h), b = uint16_t(x[l] >> h);
      value |=
          uint32_t(Bf ? floatToBf16(bf16ToFloat(a) + bf16ToFloat(b)) : floatToHalf(halfToFloat(a) + halfToFloat(b)))
          << h;
    }
    std::memcpy(p[l], &value, 4);
  }
  writeEach<uint32_t>(w, i.a[0], [&](unsigned l) { return old[l]; });
}

template <class T> Run atomicRun(int op) {
  static constexpr auto table = []<size_t... N>(std::index_sequence<N...>) {
    return std::array<Run, sizeof...(N)>{atomic<T, Atomic(N)>...};
  }(std::make_index_sequence<10>());
  return table[op];
}

template <bool Returns> void decodeAtomic(Decoder &d) {
  Inst &i = d.inst();
  takeOrder(d);
  i.flags = 1;
  i.space = d.space();
  int op = d.choose({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
  takeHints(d);
  d.take("noftz");
  if (op < 0)
    d.fail("expected an atomic operation");
  Type t = d.type();
  unsigned n = Returns ? 1 : 0;
  d.expectOperands(2 + n, 4 + n);
  d.out(t, Returns ? d.operand(0) : Operand{});
  d.address(d.operand(n));
  d.use(t, n + 1);
  if (Atomic(op) == Atomic::Cas)
    d.use(t, n + 2);
  i.size = sizeOf(t);
  Run run;
  if (t == Type::F16X2 || t == Type::BF16X2)
    run = t == Type::BF16X2 ? atomicPair<true> : atomicPair<false>;
  else if (t == Type::F32 || t == Type::F64)
    run = t == Type::F32 ? atomicRun<float>(op) : atomicRun<double>(op);
  else
    run = withInteger(t, [&](auto z) -> Run { return atomicRun<decltype(z)>(op); });
  if (isFloat(t) && op != int(Atomic::Add))
    d.fail("expected '.add' for a floating-point type");
  d.finish(run, i.space == Space::Shared ? Unit::Shared : Unit::Memory);
}

void nothing(Warp &, const Inst &) {}

// Hints whose only effect is on caches.
void decodeHint(Decoder &d) {
  d.space();
  takeHints(d);
  for (const char *m : {"L1", "L2", "tensormap", "global", "const"})
    d.take(m);
  d.finish(nothing, Unit::Memory);
}

void policy(Warp &w, const Inst &i) {
  write<uint64_t>(w, i.a[0], [](unsigned) { return uint64_t(0); });
}
void decodePolicy(Decoder &d) {
  for (const char *m : {"fractional", "range", "cvt"})
    d.take(m);
  takeHints(d);
  d.type();
  d.out(Type::B64, 0);
  d.finish(policy, Unit::Alu);
}

const Row rows[] = {
    {"ld", decodeAccess<true>},     {"ldu", decodeAccess<true>},  {"st", decodeAccess<false>},
    {"atom", decodeAtomic<true>},   {"red", decodeAtomic<false>}, {"prefetch", decodeHint},
    {"prefetchu", decodeHint},      {"discard", decodeHint},      {"applypriority", decodeHint},
    {"createpolicy", decodePolicy},
};

} // namespace
const Family memoryFamily{rows, std::size(rows)};
} // namespace gdn::emu
