// mma.sync and the moves of 8 x 8 matrices between registers and shared memory.
#include "Ops.h"

namespace gdn::emu {
namespace {

// Rows of `n` matrices: lane 8m + r holds the address of row r of matrix m.
void rows(Warp &w, const Inst &i, Slot base, unsigned n, Access kind, uint8_t *out[lanes]) {
  uint32_t saved = w.exec;
  w.exec = n == 4 ? all : (1u << 8 * n) - 1;
  w.resolve(i, base, Space::Shared, 16, kind, out);
  w.exec = saved;
}

bool wholeWarp(Warp &w, const Inst &i) {
  if (!w.converge(i, all))
    return false;
  if (w.exec != all)
    w.fail("the instruction needs all lanes of the warp");
  return true;
}

template <bool Transposed> void ldmatrix(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i))
    return;
  uint8_t *p[lanes];
  rows(w, i, i.a[i.count], i.count, Access::Read, p);
  for (unsigned n = 0; n < i.count; n++) {
    uint16_t m[8][8];
    for (unsigned r = 0; r < 8; r++)
      std::memcpy(m[r], p[8 * n + r], 16);
    write<uint32_t>(w, i.a[n], [&](unsigned l) {
      unsigned x = l / 4, y = 2 * (l % 4);
      return Transposed ? uint32_t(m[y + 1][x]) << 16 | m[y][x] : uint32_t(m[x][y + 1]) << 16 | m[x][y];
    });
  }
}
template <bool Transposed> void stmatrix(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i))
    return;
  uint8_t *p[lanes];
  rows(w, i, i.a[i.count], i.count, Access::Write, p);
  for (unsigned n = 0; n < i.count; n++) {
    uint16_t m[8][8];
    const uint32_t *x = w.at<uint32_t>(i.a[n]);
    for (unsigned l = 0; l < lanes; l++)
      for (unsigned e = 0; e < 2; e++) {
        unsigned r = l / 4, c = 2 * (l % 4) + e;
        (Transposed ? m[c][r] : m[r][c]) = uint16_t(x[l] >> 16 * e);
      }
    for (unsigned r = 0; r < 8; r++)
      std::memcpy(p[8 * n + r], m[r], 16);
  }
}
void movmatrix(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i))
    return;
  const uint32_t *x = w.at<uint32_t>(i.a[1]);
  auto element = [&](unsigned r, unsigned c) { return uint16_t(x[r * 4 + c / 2] >> 16 * (c & 1)); };
  write<uint32_t>(w, i.a[0], [&](unsigned l) {
    unsigned r = l / 4, c = 2 * (l % 4);
    return uint32_t(element(c + 1, r)) << 16 | element(c, r);
  });
}

void takeMatrixModifiers(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    d.fail("expected '.sync.aligned.m8n8'");
}

template <bool Load> void decodeMoveMatrices(Decoder &d) {
  takeMatrixModifiers(d);
  int n = d.choose({"x1", "x2", "x4"});
  bool transposed = d.take("trans");
  d.space();
  if (n < 0 || d.type() != Type::B16)
    d.fail("expected '.x1', '.x2' or '.x4' and '.b16'");
  d.inst().count = 1u << n;
  const Operand &v = d.operand(Load ? 0 : 1);
  std::vector<Operand> single{v};
  const auto &items = v.kind == Operand::Kind::Vector ? v.items : single;
  if (items.size() != d.inst().count)
    d.fail("expected " + std::to_string(d.inst().count) + " registers, got " + std::to_string(items.size()));
  for (auto &item : items)
    Load ? d.out(Type::B32, item) : d.use(Type::B32, item);
  d.address(d.operand(Load ? 1 : 0));
  d.finish(Load ? (transposed ? ldmatrix<true> : ldmatrix<false>) : (transposed ? stmatrix<true> : stmatrix<false>),
           Unit::Shared);
}
void decodeMovmatrix(Decoder &d) {
  takeMatrixModifiers(d);
  if (!d.take("trans") || d.type() != Type::B16)
    d.fail("expected '.trans.b16'");
  d.out(Type::B32, 0);
  d.use(Type::B32, 1);
  d.finish(movmatrix, Unit::Warp);
}

// m16n8kK. a: D (4 fp32 or 2 pairs of halves), A (K / 4 registers), B (K / 8), C as D. aux: K; flags: 1 bf16, 2 half D.
void mma(Warp &w, const Inst &i) {
  if (!wholeWarp(w, i))
    return;
  unsigned k = i.aux, nd = i.flags & 2 ? 2 : 4;
  bool bf = i.flags & 1;
  const uint32_t *ar[4], *br[2];
  for (unsigned n = 0; n < k / 4; n++)
    ar[n] = w.at<uint32_t>(i.a[nd + n]);
  for (unsigned n = 0; n < k / 8; n++)
    br[n] = w.at<uint32_t>(i.a[nd + k / 4 + n]);
  const Slot *c = i.a + nd + k / 4 + k / 8;
  alignas(32) float a[16 * 64], b[16 * 8], acc[4][lanes];
  expandA(ar, k, bf, a);
  for (unsigned r = 0; r < k / 8; r++)
    for (unsigned l = 0; l < lanes; l++)
      for (unsigned e = 0; e < 2; e++) {
        unsigned column = l / 4, row = 2 * (l % 4) + e + 8 * r;
        uint16_t bits = uint16_t(br[r][l] >> 16 * e);
        b[row * 8 + (column & 1) * 4 + column / 2] = bf ? bf16ToFloat(bits) : halfToFloat(bits);
      }
  for (unsigned r = 0; r < 4; r++)
    for (unsigned l = 0; l < lanes; l++)
      acc[r][l] = nd == 4 ? w.at<float>(c[r])[l] : halfToFloat(uint16_t(w.at<uint32_t>(c[r / 2])[l] >> 16 * (r & 1)));
  float *d[4] = {acc[0], acc[1], acc[2], acc[3]};
  multiplyFragments(d, a, b, 1, k, bf);
  for (unsigned r = 0; r < nd; r++)
    if (nd == 4)
      write<float>(w, i.a[r], [&](unsigned l) { return acc[r][l]; });
    else
      write<uint32_t>(w, i.a[r], [&](unsigned l) {
        return uint32_t(floatToHalf(acc[2 * r + 1][l])) << 16 | floatToHalf(acc[2 * r][l]);
      });
}

void decodeMma(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("expected '.sync.aligned'");
  int shape = d.choose({"m16n8k8", "m16n8k16"});
  if (shape < 0 || !d.take("row") || !d.take("col"))
    d.fail("expected '.m16n8k8' or '.m16n8k16' and '.row.col'");
  Type td = d.type(), ta = d.type(), tb = d.type(), tc = d.type();
  if (ta != tb || (ta != Type::BF16 && ta != Type::F16) || td != tc ||
      (td != Type::F32 && (td != Type::F16 || ta != td)))
    d.fail("expected products of bf16 or f16 with fp32 sums, or of f16 with f16 sums");
  unsigned k = shape ? 16 : 8, nd = td == Type::F32 ? 4 : 2;
  d.expectOperands(4, 4);
  size_t counts[] = {nd, k / 4, k / 8, nd};
  for (size_t n = 0; n < 4; n++) {
    const Operand &o = d.operand(n);
    std::vector<Operand> single{o};
    const auto &items = o.kind == Operand::Kind::Vector ? o.items : single;
    if (items.size() != counts[n])
      d.fail("expected " + std::to_string(counts[n]) + " registers, got " + std::to_string(items.size()));
    for (auto &item : items)
      n == 0 ? d.out(Type::B32, item) : d.use(Type::B32, item);
  }
  d.inst().aux = k;
  d.inst().flags = (ta == Type::BF16 ? 1 : 0) | (nd == 2 ? 2 : 0);
  d.finish(mma, Unit::Tensor);
}

const Row table[] = {{"ldmatrix", decodeMoveMatrices<true>},
                     {"stmatrix", decodeMoveMatrices<false>},
                     {"movmatrix", decodeMovmatrix},
                     {"mma", decodeMma}};

} // namespace
const Family matrixFamily{table, std::size(table)};
} // namespace gdn::emu
