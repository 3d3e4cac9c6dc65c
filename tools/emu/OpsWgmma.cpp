// wgmma: each warp multiplies its 16 rows when the schedule says so, at the latest when a wait names its group.
#include "Detector.h"
#include "Ops.h"
#include "TensorMap.h"
#include <algorithm>

namespace gdn::emu {
namespace {

// A matrix descriptor (PTX ISA, "Matrix descriptor").
struct Tile {
  uint32_t start, leading, stride;
  unsigned swizzle; // as in a tensor map: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes
  bool transposed;  // the dimension that is not k is contiguous

  Tile(uint64_t descriptor, bool transposed) : transposed(transposed) {
    start = uint32_t(descriptor & 0x3fff) << 4;
    leading = uint32_t(descriptor >> 16 & 0x3fff) << 4;
    stride = uint32_t(descriptor >> 32 & 0x3fff) << 4;
    constexpr unsigned modes[] = {0, 3, 2, 1};
    swizzle = modes[descriptor >> 62];
  }
  // Of the 16 bytes that hold row (or column) `n` for k = 8c .. 8c+7; transposed: k = `n`, rows 8c .. 8c+7.
  uint32_t piece(unsigned n, unsigned c) const {
    uint32_t at = start + n % 8 * (16u << swizzle) + n / 8 * stride;
    if (!swizzle)
      // Without a swizzle 8 x 16 bytes lie together.
      at = start + n % 8 * 16 + n / 8 * (transposed ? leading : stride) + c * (transposed ? stride : leading);
    else if (transposed)
      at += c % (1u << swizzle) * 16 + (c >> swizzle) * leading;
    else
      at += c * 16;
    return swizzled(at, swizzle);
  }
};

enum Flags : uint8_t { FromRegisters = 1, TransposeA = 2, TransposeB = 4, Bf16 = 8, NegateA = 16, NegateB = 32 };

const uint16_t *pieceAt(Block &b, const Warp &w, const Tile &t, unsigned n, unsigned c) {
  uint32_t at = t.piece(n, c);
  if (at < sharedBase || at + 16 > b.sharedEnd)
    w.fail("the matrix descriptor reaches " + std::to_string(at) + ", outside shared memory");
  return reinterpret_cast<const uint16_t *>(b.shared.data() + at);
}

template <bool Bf> float widen(uint16_t x) { return Bf ? bf16ToFloat(x) : halfToFloat(x); }

template <bool Bf> void widen8(const uint16_t *p, float *out) {
  for (unsigned e = 0; e < 8; e++)
    out[e] = widen<Bf>(p[e]);
}

// B as multiplyFragments takes it: for each k and eight columns the even, then the odd columns.
template <bool Bf> void expandB(Block &block, const Warp &w, const Tile &t, unsigned groups, float *b) {
  constexpr unsigned place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  float x[8];
  if (t.transposed) {
    for (unsigned k = 0; k < 16; k++)
      for (unsigned g = 0; g < groups; g++) {
        widen8<Bf>(pieceAt(block, w, t, k, g), x);
        float *to = b + (k * groups + g) * 8;
        for (unsigned e = 0; e < 8; e++)
          to[place[e]] = x[e];
      }
    return;
  }
  for (unsigned n = 0; n < 8 * groups; n++)
    for (unsigned c = 0; c < 2; c++) {
      widen8<Bf>(pieceAt(block, w, t, n, c), x);
      for (unsigned e = 0; e < 8; e++)
        b[((8 * c + e) * groups + n / 8) * 8 + place[n % 8]] = x[e];
    }
}

template <bool Bf> void expandTileA(Block &block, const Warp &w, const Tile &t, float *a) {
  unsigned first = w.index % 4 * 16;
  float x[8];
  auto put = [&](unsigned row, unsigned k, float value) {
    for (unsigned c = 0; c < 4; c++)
      a[k * 64 + row * 4 + c] = value;
  };
  for (unsigned n = 0; n < 16; n++)
    for (unsigned c = 0; c < 2; c++) {
      widen8<Bf>(t.transposed ? pieceAt(block, w, t, n, first / 8 + c) : pieceAt(block, w, t, first + n, c), x);
      for (unsigned e = 0; e < 8; e++)
        t.transposed ? put(8 * c + e, n, x[e]) : put(n, 8 * c + e, x[e]);
    }
}

template <bool Bf> void multiply(Block &block, AsyncWork &work) {
  Warp &w = *work.warp;
  const Inst &i = *work.inst;
  unsigned groups = i.count / 4;
  alignas(32) float a[16 * 64], b[16 * 256];
  if (i.flags & FromRegisters) {
    const uint32_t *r[4];
    for (unsigned n = 0; n < 4; n++)
      r[n] = w.at<uint32_t>(i.a[i.count + n]);
    expandA(r, 16, Bf, a);
  } else {
    expandTileA<Bf>(block, w, Tile(work.operands[0], i.flags & TransposeA), a);
  }
  expandB<Bf>(block, w, Tile(work.operands[1], i.flags & TransposeB), groups, b);
  if (!(i.flags & NegateA) != !(i.flags & NegateB))
    for (float &x : a)
      x = -x;
  float *d[128];
  for (unsigned n = 0; n < i.count; n++) {
    d[n] = w.at<float>(i.a[n]);
    if (!work.accumulate)
      std::memset(d[n], 0, sizeof(float) * lanes);
  }
  multiplyFragments(d, a, b, groups, 16, Bf);
}

void announce(Warp &w, const Inst &i, AsyncWork &work) {
  Detector &detector = *w.block->detector;
  detector.registersOfProduct(w, i, work.accumulate);
  work.ticket = std::make_shared<Ticket>(detector.begin(w, work.group));
  auto read = [&](const Tile &t, unsigned n, unsigned c) {
    pieceAt(*w.block, w, t, n, c);
    detector.workAccess(w, i, *work.ticket, Access::Read, t.piece(n, c), 16);
  };
  Tile b(work.operands[1], i.flags & TransposeB);
  unsigned columns = 2 * i.count;
  for (unsigned n = 0; n < (b.transposed ? 16 : columns); n++)
    for (unsigned c = 0; c < (b.transposed ? columns / 8 : 2); c++)
      read(b, n, c);
  if (i.flags & FromRegisters)
    return;
  Tile a(work.operands[0], i.flags & TransposeA);
  for (unsigned n = 0; n < 16; n++)
    for (unsigned c = 0; c < 2; c++)
      a.transposed ? read(a, n, w.index % 4 * 2 + c) : read(a, w.index % 4 * 16 + n, c);
}

void issue(Warp &w, const Inst &i) {
  if (!w.converge(i, all))
    return;
  if (w.exec != all)
    w.fail("the instruction needs all lanes of the warp");
  AsyncWork work{};
  work.group = AsyncWork::Group::Wgmma;
  work.warp = &w;
  work.inst = &i;
  work.number = w.wgmmaGroups;
  const Slot *next = i.a + i.count + (i.flags & FromRegisters ? 4 : 0);
  if (!(i.flags & FromRegisters))
    work.operands[0] = *w.at<uint64_t>(*next++);
  work.operands[1] = *w.at<uint64_t>(*next++);
  work.accumulate = *w.at<uint32_t>(*next) ^ i.aux;
  work.perform = i.flags & Bf16 ? multiply<true> : multiply<false>;
  if (w.block->detector)
    announce(w, i, work);
  w.block->issue(std::move(work));
}

void fence(Warp &w, const Inst &i) {
  if (w.converge(i, all) && w.block->detector)
    w.block->detector->matrixFence(w);
}
void commit(Warp &w, const Inst &i) {
  if (w.converge(i, all))
    w.wgmmaGroups++;
}
void wait(Warp &w, const Inst &i) {
  if (!w.converge(i, all))
    return;
  uint64_t kept = std::min<uint64_t>(w.wgmmaGroups, uint64_t(i.imm));
  w.block->finishGroups(w, -1, AsyncWork::Group::Wgmma, w.wgmmaGroups - kept, false);
  if (w.block->detector)
    w.block->detector->groupsDone(w, AsyncWork::Group::Wgmma, w.wgmmaGroups - kept);
}

unsigned takeColumns(Decoder &d) {
  std::string shape = d.takePrefix("m64n");
  size_t k = shape.find('k');
  unsigned n = shape.empty() ? 0 : unsigned(std::atoi(shape.c_str() + 4));
  if (k == shape.npos || shape.substr(k) != "k16" || !n || n % 8 || n > 256)
    d.fail("expected a shape '.m64nNk16' with N a multiple of 8 up to 256");
  return n;
}

bool takeBit(Decoder &d, size_t n, int64_t set) {
  int64_t value = d.integer(d.operand(n));
  if (value != set && value != (set == 1 ? 0 : 1))
    d.fail("operand " + std::to_string(n) + " has the value " + std::to_string(value));
  return value == set;
}

void decodeProduct(Decoder &d) {
  unsigned n = takeColumns(d);
  Type td = d.type(), ta = d.type(), tb = d.type();
  if (td != Type::F32 || ta != tb || (ta != Type::BF16 && ta != Type::F16))
    d.fail("expected products of bf16 or f16 with fp32 sums");
  Inst &i = d.inst();
  const Operand &to = d.operand(0), &a = d.operand(1);
  bool registers = a.kind == Operand::Kind::Vector;
  d.expectOperands(registers ? 7 : 8, registers ? 7 : 8);
  i.count = n / 2;
  if (to.items.size() != i.count || (registers && a.items.size() != 4))
    d.fail("expected " + std::to_string(i.count) + " accumulators and, where A is in registers, 4 of them");
  for (auto &item : to.items)
    d.inout(Type::B32, item);
  for (auto &item : a.items)
    d.use(Type::B32, item);
  if (!registers)
    d.use(Type::B64, a);
  d.use(Type::B64, 2);
  const Operand &scale = d.operand(3);
  d.use(Type::Pred, scale);
  i.aux = scale.negated ? ~0u : 0;
  i.flags = (registers ? FromRegisters : 0) | (ta == Type::BF16 ? Bf16 : 0);
  if (takeBit(d, 4, -1))
    i.flags |= NegateA;
  if (takeBit(d, 5, -1))
    i.flags |= NegateB;
  if (!registers && takeBit(d, 6, 1))
    i.flags |= TransposeA;
  if (takeBit(d, registers ? 6 : 7, 1))
    i.flags |= TransposeB;
  d.finish(issue, Unit::Wgmma);
}

void decodeWgmma(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("expected '.sync.aligned'");
  if (d.take("mma_async"))
    return decodeProduct(d);
  if (d.take("fence"))
    return d.finish(fence, Unit::Control);
  if (d.take("commit_group"))
    return d.finish(commit, Unit::Control);
  if (!d.take("wait_group"))
    d.fail("this operation is not supported");
  d.inst().imm = d.integer(d.operand(0));
  d.finish(wait, Unit::Control);
}

const Row rows[] = {{"wgmma", decodeWgmma}};

} // namespace
const Family wgmmaFamily{rows, std::size(rows)};
} // namespace gdn::emu
