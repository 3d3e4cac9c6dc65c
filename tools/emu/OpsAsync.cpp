// Bulk copies and their groups, and the older cp.async.
#include "Detector.h"
#include "Ops.h"
#include "TensorMap.h"
#include <algorithm>

namespace gdn::emu {
namespace {

// Copies `bytes` at `offset` of a tile in shared memory, in pieces of 16 bytes that the swizzle scatters.
template <bool ToTile>
void copyTile(uint8_t *shared, uint32_t tile, uint32_t offset, uint8_t *linear, uint32_t bytes, unsigned swizzle) {
  while (bytes) {
    uint32_t at = tile + offset, piece = std::min(bytes, swizzle ? 16 - at % 16 : bytes);
    uint8_t *p = shared + swizzled(at, swizzle);
    if (ToTile)
      std::memcpy(p, linear, piece);
    else
      std::memcpy(linear, p, piece);
    offset += piece, linear += piece, bytes -= piece;
  }
}

void fill(uint8_t *shared, const AsyncWork &work, uint32_t tile, uint32_t offset, uint32_t bytes) {
  uint8_t zeros[512] = {};
  if (work.map.fillNan)
    std::memset(zeros, 0xff, sizeof zeros);
  for (uint32_t n; bytes; bytes -= n, offset += n)
    copyTile<true>(shared, tile, offset, zeros, n = std::min<uint32_t>(bytes, sizeof zeros), work.map.swizzle);
}

void complete(Block &block, AsyncWork &work, uint32_t barrier) {
  Mbarrier &b = block.mbarrier(*work.warp, barrier);
  if (work.ticket)
    block.detector->completed(*work.ticket, b.address);
  block.completeBytes(*work.warp, b, work.bytes);
}

// The blocks of the cluster that a load writes to: its own, or those of a multicast's mask.
template <class F> void forTargets(Block &b, AsyncWork &work, F f) {
  if (!work.multicast)
    return f(b.owner(*work.warp, work.shared), work.barrier);
  for (unsigned r = 0; r < b.cluster.blocks.size(); r++)
    if (work.multicast >> r & 1)
      f(*b.cluster.blocks[r], (work.barrier & 0xffffff) | (r + 1) << 24);
}

void loadTensor(Block &block, AsyncWork &work) {
  Warp &w = *work.warp;
  auto rows = rowsOf(work.map, work.at);
  forTargets(block, work, [&](Block &to, uint32_t barrier) {
    for (auto &r : rows) {
      uint8_t *s = to.shared.data();
      uint32_t head = r.inside ? r.skip : r.bytes, tail = r.bytes - head - r.inside;
      if (head)
        fill(s, work, work.shared, r.tile, head);
      if (r.inside)
        copyTile<true>(s, work.shared, r.tile + head, w.global(r.global, r.inside, false, work.lane), r.inside,
                       work.map.swizzle);
      if (tail)
        fill(s, work, work.shared, r.tile + head + r.inside, tail);
    }
    complete(block, work, barrier);
  });
}

template <class T, class F> void reduceAs(uint8_t *to, const uint8_t *from, uint32_t bytes, F f) {
  for (uint32_t n = 0; n < bytes; n += sizeof(T)) {
    T x, y;
    std::memcpy(&x, to + n, sizeof(T));
    std::memcpy(&y, from + n, sizeof(T));
    x = f(x, y);
    std::memcpy(to + n, &x, sizeof(T));
  }
}

// Integers of 32 bits, or floats that are added. Element types as in CUtensorMapDataType.
void reduce(Warp &w, const AsyncWork &work, uint8_t *to, const uint8_t *from, uint32_t bytes, Type t) {
  bool add = work.reduction == 1;
  if (t == Type::F32 && add)
    return reduceAs<float>(to, from, bytes, [](float x, float y) { return x + y; });
  if (t == Type::F64 && add)
    return reduceAs<double>(to, from, bytes, [](double x, double y) { return x + y; });
  if (t == Type::BF16 && add)
    return reduceAs<uint16_t>(to, from, bytes,
                              [](uint16_t x, uint16_t y) { return floatToBf16(bf16ToFloat(x) + bf16ToFloat(y)); });
  if (t == Type::F16 && add)
    return reduceAs<uint16_t>(to, from, bytes,
                              [](uint16_t x, uint16_t y) { return floatToHalf(halfToFloat(x) + halfToFloat(y)); });
  if (isFloat(t))
    w.fail("this reduction is not supported");
  withInteger(t, [&](auto z) {
    using T = decltype(z);
    reduceAs<T>(to, from, bytes, [&](T x, T y) -> T {
      switch (work.reduction) {
      case 1:
        return T(x + y);
      case 2:
        return std::min(x, y);
      case 3:
        return std::max(x, y);
      case 4:
        return x & y;
      case 5:
        return x | y;
      default:
        return x ^ y;
      }
    });
  });
}

Type elementTypeOf(const TensorMap &m) {
  constexpr Type types[] = {Type::U8,  Type::U16, Type::U32,  Type::S32, Type::U64, Type::S64, Type::F16,
                            Type::F32, Type::F64, Type::BF16, Type::F32, Type::F32, Type::F32};
  return m.elementType < std::size(types) ? types[m.elementType] : Type::U8;
}

// A store happens in two steps, which different waits name: the tile is read, then global memory is written.
void storeTensor(Block &block, AsyncWork &work) {
  Warp &w = *work.warp;
  auto rows = rowsOf(work.map, work.at);
  if (!work.sourceRead) {
    work.data.resize(boxBytes(work.map));
    for (auto &r : rows)
      copyTile<false>(block.shared.data(), work.shared, r.tile, work.data.data() + r.tile, r.bytes, work.map.swizzle);
    work.sourceRead = true;
    if (block.grid.options.schedule != Schedule::Earliest)
      return block.inFlight.push_back(std::move(work));
  }
  for (auto &r : rows)
    if (r.inside) {
      uint8_t *to = w.global(r.global, r.inside, true, work.lane), *from = work.data.data() + r.tile + r.skip;
      if (work.reduction)
        reduce(w, work, to, from, r.inside, elementTypeOf(work.map));
      else
        std::memcpy(to, from, r.inside);
    }
}

void loadBulk(Block &block, AsyncWork &work) {
  Warp &w = *work.warp;
  const uint8_t *from = w.global(work.global, work.bytes, false, work.lane);
  forTargets(block, work, [&](Block &to, uint32_t barrier) {
    std::memcpy(to.shared.data() + work.shared, from, work.bytes);
    complete(block, work, barrier);
  });
}
// From shared memory of the block to another's of its cluster.
void copyShared(Block &block, AsyncWork &work) {
  Warp &w = *work.warp;
  uint8_t *to = block.sharedAt(w, work.shared, work.bytes, 16);
  std::memcpy(to, block.sharedAt(w, uint32_t(work.global), work.bytes, 16), work.bytes);
  block.completeBytes(w, block.mbarrier(w, work.barrier), work.bytes);
}
void storeBulk(Block &block, AsyncWork &work) {
  Warp &w = *work.warp;
  if (!work.sourceRead) {
    work.data.assign(block.shared.data() + work.shared, block.shared.data() + work.shared + work.bytes);
    work.sourceRead = true;
    if (block.grid.options.schedule != Schedule::Earliest)
      return block.inFlight.push_back(std::move(work));
  }
  uint8_t *to = w.global(work.global, work.bytes, true, work.lane);
  if (work.reduction)
    reduce(w, work, to, work.data.data(), work.bytes, Type(work.inst->size));
  else
    std::memcpy(to, work.data.data(), work.bytes);
}

// An address takes two slots: the register and a constant offset.
uint64_t addressAt(Warp &w, const Slot *a, bool wide, unsigned l) {
  return (wide ? w.at<uint64_t>(a[0])[l] : w.at<uint32_t>(a[0])[l]) + w.at<uint64_t>(a[1])[0];
}

AsyncWork newWork(Warp &w, const Inst &i, unsigned lane, AsyncWork::Group group) {
  AsyncWork work{};
  work.group = group;
  work.warp = &w;
  work.lane = uint8_t(lane);
  work.inst = &i;
  work.number = group == AsyncWork::Group::Bulk ? w.bulkGroups[lane] : 0;
  work.reduction = i.flags >> 4;
  return work;
}

// How the operands of a bulk copy lie in the slots. Addresses of shared memory may have 32 or 64 bits.
enum BulkFlags : uint32_t { Load = 1, Tensor = 2, WideShared = 4, WideBarrier = 8, Multicast = 16, ToCluster = 32 };

// Tells the detector what the copy will touch: of a store to a tensor only what lies inside.
void announce(Warp &w, const Inst &i, AsyncWork &work, bool load) {
  Block &b = *w.block;
  if (b.counters)
    (load ? b.counters->bulkLoadBytes : b.counters->bulkStoreBytes) += work.bytes;
  if (!b.detector)
    return;
  work.ticket = std::make_shared<Ticket>(b.detector->begin(w, work.group));
  if (load || !(i.aux & Tensor))
    return b.detector->workAccess(w, i, *work.ticket, load ? Access::Write : Access::Read, work.shared, work.bytes);
  for (auto &r : rowsOf(work.map, work.at))
    for (uint32_t n = 0; n < r.inside; n += 16) {
      uint32_t at = work.shared + r.tile + r.skip + n;
      b.detector->workAccess(w, i, *work.ticket, Access::Read, swizzled(at & ~15u, work.map.swizzle) | (at & 15),
                             std::min(16u, r.inside - n));
    }
}

// a: addresses of shared and global memory (or the map), then the barrier's, multicast's mask, bytes or coordinates, as
// far as they exist.
void bulk(Warp &w, const Inst &i) {
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m), n = 4;
    bool load = i.aux & Load;
    AsyncWork work = newWork(w, i, l, load ? AsyncWork::Group::None : AsyncWork::Group::Bulk);
    work.shared = uint32_t(addressAt(w, i.a, i.aux & WideShared, l));
    work.global = addressAt(w, i.a + 2, true, l) & windowMask;
    if (load) {
      work.barrier = uint32_t(addressAt(w, i.a + n, i.aux & WideBarrier, l));
      n += 2;
    }
    if (i.aux & Multicast)
      work.multicast = w.at<uint16_t>(i.a[n++])[l];
    if (i.aux & Tensor) {
      work.map = readTensorMap(w, w.global(work.global, 128, false, l));
      if (work.map.rank != i.count)
        w.fail("expected a tensor map of rank " + std::to_string(i.count) + ", got rank " +
               std::to_string(work.map.rank));
      for (unsigned d = 0; d < i.count; d++)
        work.at[d] = w.at<int32_t>(i.a[n++])[l];
      work.bytes = boxBytes(work.map);
      work.perform = load ? loadTensor : storeTensor;
    } else {
      work.bytes = w.at<uint32_t>(i.a[n++])[l];
      work.perform = i.aux & ToCluster ? copyShared : load ? loadBulk : storeBulk;
      if (work.bytes % 16 || (!(i.aux & ToCluster) && work.global % 16))
        w.fail("expected addresses and a size that are multiples of 16 bytes");
    }
    w.block->sharedAt(w, work.shared, work.bytes, i.aux & Tensor ? 128 : 16);
    if (load)
      w.block->mbarrier(w, work.barrier);
    announce(w, i, work, load);
    w.block->issue(std::move(work));
  }
}
void nothing(Warp &, const Inst &) {}

// Two slots; true where the address has 64 bits.
bool takeAddress(Decoder &d, const Operand &o) {
  d.address(o);
  d.result().slots.push_back(d.constant(uint64_t(d.inst().imm), 8));
  return d.inst().wide;
}

int takeReduction(Decoder &d) { return 1 + d.choose({"add", "min", "max", "and", "or", "xor", "inc", "dec"}); }

void takeBulkModifiers(Decoder &d) {
  for (const char *m :
       {"async", "bulk", "tensor", "tile", "noftz", "mbarrier::complete_tx::bytes", "bulk_group", "relaxed", "cluster"})
    d.take(m);
  while (!d.takePrefix("L2").empty())
    ;
}

// cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [map, {c0,c1,c2}], [bar];
// cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [map, {c0,c1,c2}], [src];
// cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [src], size, [bar];
// cp.async.bulk.global.shared::cta.bulk_group [dst], [src], size;
void decodeBulk(Decoder &d, bool reduces) {
  Inst &i = d.inst();
  bool tensor = d.take("tensor"), prefetch = d.take("prefetch");
  int rank = 1 + d.choose({"1d", "2d", "3d", "4d", "5d"});
  int first = d.chooseFirst({"global", "shared::cluster", "shared::cta"});
  int second = d.chooseFirst({"global", "shared::cta"});
  bool multicast = d.take("multicast::cluster");
  if (reduces)
    i.flags = uint8_t(takeReduction(d) << 4);
  if (reduces && !tensor)
    i.size = uint8_t(d.type());
  takeBulkModifiers(d);
  if (tensor && !rank)
    d.fail("expected a rank from '.1d' to '.5d'");
  if (prefetch)
    return d.finish(nothing, Unit::Async);
  bool load = first > 0, toCluster = load && second == 1;
  if (first < 0 || (!load && second != 1))
    d.fail("expected a destination and a source in global and shared memory");
  const Operand &dst = d.operand(0), &src = d.operand(1);
  const Operand &tile = load ? dst : src, &other = load ? src : dst;
  i.aux = load * Load | tensor * Tensor | multicast * Multicast | toCluster * ToCluster;
  if (takeAddress(d, tile))
    i.aux |= WideShared;
  if (toCluster && !takeAddress(d, other))
    d.fail("expected 64-bit shared addresses");
  if (!toCluster) {
    Operand base = other;
    if (tensor && base.items.size() > 1)
      base.items.resize(1);
    if (!takeAddress(d, base))
      d.fail("expected a 64-bit global address");
  }
  size_t next = tensor ? 2 : 3;
  if (load && takeAddress(d, d.operand(next++)))
    i.aux |= WideBarrier;
  if (multicast)
    d.use(Type::U16, d.operand(next++));
  if (tensor) {
    if (other.items.size() != 2 || other.items[1].items.size() != unsigned(rank))
      d.fail("expected " + std::to_string(rank) + " coordinates");
    i.count = rank;
    for (auto &c : other.items[1].items)
      d.use(Type::S32, c);
  } else {
    d.use(Type::U32, 2);
  }
  d.finish(bulk, Unit::Async);
}

void commitBulk(Warp &w, const Inst &) {
  for (uint32_t m = w.exec; m; m &= m - 1)
    w.bulkGroups[std::countr_zero(m)]++;
}
void waitBulk(Warp &w, const Inst &i) {
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    uint64_t committed = w.bulkGroups[l], kept = std::min<uint64_t>(committed, uint64_t(i.imm));
    w.block->finishGroups(w, int(l), AsyncWork::Group::Bulk, committed - kept, i.flags);
    if (w.block->detector)
      w.block->detector->groupsDone(w, AsyncWork::Group::Bulk, committed - kept);
  }
}

// cp.async: a group's copies are pieces of up to 16 bytes a lane, zero-filled past the source's size.
struct Piece {
  uint8_t *to;
  const uint8_t *from;
  uint32_t bytes, valid;
};
void copyPieces(Block &, AsyncWork &work) {
  for (size_t n = 0; n < work.data.size(); n += sizeof(Piece)) {
    Piece p;
    std::memcpy(&p, work.data.data() + n, sizeof p);
    std::memset(p.to, 0, p.bytes);
    std::memcpy(p.to, p.from, p.valid);
  }
}
void copyAsync(Warp &w, const Inst &i) {
  const uint32_t *valid = w.at<uint32_t>(i.a[4]);
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    AsyncWork work = newWork(w, i, l, AsyncWork::Group::Copy);
    work.number = w.copyGroups[l];
    Piece p{w.block->sharedAt(w, uint32_t(addressAt(w, i.a, i.aux & WideShared, l)), i.size, i.size), nullptr, i.size,
            std::min<uint32_t>(valid[l], i.size)};
    if (w.block->detector)
      w.block->detector->access(w, i, Access::Write, uint32_t(p.to - w.block->shared.data()), i.size);
    uint64_t from = addressAt(w, i.a + 2, true, l);
    if (from % i.size)
      w.fail("global address is not aligned to " + std::to_string(i.size) + " bytes");
    p.from = p.valid ? w.global(from, p.valid, false, l) : p.to;
    work.data.resize(sizeof p);
    std::memcpy(work.data.data(), &p, sizeof p);
    work.perform = copyPieces;
    w.block->issue(std::move(work));
  }
}
void commitCopies(Warp &w, const Inst &) {
  for (uint32_t m = w.exec; m; m &= m - 1)
    w.copyGroups[std::countr_zero(m)]++;
}
void waitCopies(Warp &w, const Inst &i) {
  for (uint32_t m = w.exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    uint64_t committed = w.copyGroups[l] + (i.flags ? 1 : 0), kept = std::min<uint64_t>(committed, uint64_t(i.imm));
    w.block->finishGroups(w, int(l), AsyncWork::Group::Copy, committed - kept, false);
  }
}

void decodeWait(Decoder &d, Run run) {
  d.inst().flags = d.take("read");
  d.expectOperands(1, 1);
  d.inst().imm = d.integer(d.operand(0));
  d.take("bulk");
  d.finish(run, Unit::Async);
}

void decodeCopyAsync(Decoder &d) {
  for (const char *m : {"ca", "cg", "shared", "shared::cta", "global"})
    d.take(m);
  while (!d.takePrefix("L2::").empty())
    ;
  Inst &i = d.inst();
  d.expectOperands(3, 5);
  if (takeAddress(d, d.operand(0)))
    i.aux |= WideShared;
  if (!takeAddress(d, d.operand(1)))
    d.fail("expected a 64-bit global address");
  i.size = uint8_t(d.integer(d.operand(2)));
  if (i.size != 4 && i.size != 8 && i.size != 16)
    d.fail("expected 4, 8 or 16 bytes");
  d.use(Type::U32, d.operands() > 3 && d.width(d.operand(3)) != 8 ? 3 : 2);
  d.finish(copyAsync, Unit::Async);
}

void decodeCp(Decoder &d) {
  bool reduces = d.take("reduce");
  d.take("async");
  bool bulk = d.take("bulk");
  if (d.take("commit_group"))
    return d.finish(bulk ? commitBulk : commitCopies, Unit::Async);
  if (d.take("wait_group"))
    return decodeWait(d, bulk ? waitBulk : waitCopies);
  if (d.take("wait_all")) {
    d.inst().flags = 1;
    return d.finish(waitCopies, Unit::Async);
  }
  if (bulk)
    return decodeBulk(d, reduces);
  decodeCopyAsync(d);
}

const Row rows[] = {{"cp", decodeCp}};

} // namespace
const Family asyncFamily{rows, std::size(rows)};
} // namespace gdn::emu
