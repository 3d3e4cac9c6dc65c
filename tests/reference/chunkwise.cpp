// The chunkwise evaluation as the forward kernel does it. With S the state entering a chunk, G the cumulative gate
// (log2), a = 2^(G_C - G) kept above 2^floor, left = what the floor left out, b = a 2^G:
//   A = strict_tril(k_i.k_j) 2^(left_j - left_i)     T = (diag(1/beta) + A)^-1
//   W = a V - b K S     U = T W     P = scale/a_i tril(q_i.k_j) 2^(left_j - left_i)
//   O = scale 2^G (Q S) + P U       S' = 2^G_C S + K^T (2^left U)
// Where keys and queries are to be normalised, 1/|k_i| scales row i of A, beta and b, 1/|q_i| row i of P and scale 2^G.
#include "tests/reference/numbers.h"
#include "tests/reference/parallel.h"
#include "tests/reference/problem.h"
#include <algorithm>
#include <array>
#include <numbers>

namespace gdn::reference {

namespace {

using Precision = Rounding::Precision;
constexpr int chunk = 64, tile = 16, half = tile / 2, tiles = chunk / tile;

double roundTo(Precision precision, double value) {
  switch (precision) {
  case Precision::F32:
    return float(value);
  case Precision::BF16:
    return decodeBf16(encodeBf16(float(value)));
  case Precision::F16: // never to infinity, as an operand of a product
    return decodeF16(encodeF16(float(std::clamp(value, -65504.0, 65504.0))));
  case Precision::F64:
    break;
  }
  return value;
}

struct Matrix {
  Matrix(size_t rows, size_t columns) : rows(rows), columns(columns), data(rows * columns) {}
  double *operator[](size_t row) { return &data[row * columns]; }
  const double *operator[](size_t row) const { return &data[row * columns]; }
  Matrix rounded(Precision precision) const {
    Matrix result = *this;
    for (double &x : result.data)
      x = roundTo(precision, x);
    return result;
  }
  Matrix transposed() const {
    Matrix result(columns, rows);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        result[j][i] = (*this)[i][j];
    return result;
  }
  size_t rows, columns;
  std::vector<double> data;
};

// into += sign x y
void multiply(const Matrix &x, const Matrix &y, Matrix &into, double sign = 1) {
  for (size_t i = 0; i < x.rows; ++i)
    for (size_t k = 0; k < x.columns; ++k)
      if (double factor = sign * x[i][k]; factor != 0)
        for (size_t j = 0; j < y.columns; ++j)
          into[i][j] += factor * y[k][j];
}

Matrix product(const Matrix &x, const Matrix &y, double sign = 1) {
  Matrix result(x.rows, y.columns);
  multiply(x, y, result, sign);
  return result;
}

Matrix part(const Matrix &x, size_t row, size_t column, size_t rows, size_t columns) {
  Matrix result(rows, columns);
  for (size_t i = 0; i < rows; ++i)
    std::copy_n(x[row + i] + column, columns, result[i]);
  return result;
}

void place(const Matrix &x, Matrix &into, size_t row, size_t column) {
  for (size_t i = 0; i < x.rows; ++i)
    std::copy_n(x[i], x.columns, into[row + i] + column);
}

// Finite where a row of beta is zero, because it never divides by beta: (I + beta A) X = diag(beta).
Matrix substitute(const Matrix &a, const double *beta, Precision accumulator) {
  Matrix x(a.rows, a.rows);
  for (size_t j = 0; j < a.rows; ++j) {
    x[j][j] = beta[j];
    for (size_t i = j + 1; i < a.rows; ++i) {
      double sum = 0;
      for (size_t k = j; k < i; ++k)
        sum += a[i][k] * x[k][j];
      x[i][j] = roundTo(accumulator, -beta[i] * sum);
    }
  }
  return x;
}

// The inverse of one diagonal tile: two halves by substitution, merged once.
Matrix solveTile(const Matrix &a, const double *beta, const Rounding &r) {
  Matrix upper = substitute(part(a, 0, 0, half, half), beta, r.accumulator);
  Matrix lower = substitute(part(a, half, half, half, half), beta + half, r.accumulator);
  upper = upper.rounded(r.merge), lower = lower.rounded(r.merge);
  Matrix corner = product(lower, part(a, half, 0, half, half).rounded(r.merge), -1);
  Matrix result(tile, tile);
  place(upper, result, 0, 0);
  place(lower, result, half, half);
  place(product(corner.rounded(r.merge), upper).rounded(r.accumulator), result, half, 0);
  return result;
}

// (diag(1/beta) + strict_tril(a))^-1 by block diagonals: with D the inverses of the diagonal tiles and E = -D A off the
// diagonal it is (I + E + E^2 + E^3) D. Entry [i] of a block diagonal d is the tile (i, i - d).
Matrix inverse(const Matrix &a, const double *beta, const Rounding &r) {
  std::array<std::vector<Matrix>, tiles> e, sum; // e[d]: E; sum[d]: E + E^2 + E^3
  std::vector<Matrix> d, dh;
  Matrix ah = a.rounded(r.coupling), result(chunk, chunk);
  for (int i = 0; i < tiles; ++i) {
    d.push_back(solveTile(part(a, i * tile, i * tile, tile, tile), beta + i * tile, r));
    dh.push_back(d[i].rounded(r.merge));
    place(d[i], result, i * tile, i * tile);
  }
  for (int off = 1; off < tiles; ++off)
    for (int i = 0; i < tiles; ++i) {
      e[off].emplace_back(tile, tile);
      if (i >= off)
        e[off][i] = product(dh[i], part(ah, i * tile, (i - off) * tile, tile, tile), -1);
      sum[off].push_back(e[off][i]);
    }
  for (int i = 0; i < tiles; ++i) {
    if (i >= 2)
      multiply(e[1][i].rounded(r.merge), e[1][i - 1].rounded(r.merge), sum[2][i]);
    if (i >= 3) {
      multiply(e[1][i].rounded(r.merge), e[2][i - 1].rounded(r.merge), sum[3][i]);
      multiply(sum[2][i].rounded(r.merge), e[1][i - 2].rounded(r.merge), sum[3][i]);
    }
    for (int off = 1; off <= i; ++off)
      place(product(sum[off][i].rounded(r.merge), dh[i - off]), result, i * tile, (i - off) * tile);
  }
  return result;
}

struct Gates {
  double a[chunk], b[chunk], gamma[chunk], left[chunk], beta[chunk];
  double q[chunk], k[chunk]; // 1 / |q|, 1 / |k|, or 1
};

Gates gatesOf(const Problem &p, int64_t first, int rows, uint32_t head, const Rounding &r) {
  Gates gates = {};
  double cumulative[chunk], sum = 0;
  const double log2e = roundTo(r.accumulator, std::numbers::log2e);
  for (int i = 0; i < rows; ++i) {
    size_t at = size_t(first + i) * p.valueHeads + head;
    double log2Decay = p.gateIsDecay ? std::max(p.logDecay(at) / std::numbers::ln2, -127.0) : p.logDecay(at) * log2e;
    sum = roundTo(r.accumulator, sum + roundTo(r.accumulator, log2Decay));
    cumulative[i] = sum;
    gates.q[i] = roundTo(r.accumulator, 1 / p.norm(p.q, first + i, p.keyHead(head)));
    gates.k[i] = roundTo(r.accumulator, 1 / p.norm(p.k, first + i, p.keyHead(head)));
    gates.beta[i] = roundTo(r.accumulator, p.strength(at)) * gates.k[i];
  }
  for (int i = 0; i < rows; ++i) {
    double whole = sum - cumulative[i], kept = std::max(whole, r.floor);
    gates.left[i] = whole - kept;
    gates.a[i] = std::exp2(kept);
    gates.b[i] = std::exp2(kept + cumulative[i]);
    gates.gamma[i] = std::exp2(cumulative[i]);
  }
  return gates;
}

Matrix rowsOf(const std::vector<float> &x, int64_t first, int rows, size_t heads, size_t head, size_t width) {
  Matrix result(rows, width);
  for (int i = 0; i < rows; ++i)
    std::copy_n(&x[(size_t(first + i) * heads + head) * width], width, result[i]);
  return result;
}

// T and P of one chunk.
void solve(const Matrix &q, const Matrix &kt, const Matrix &k, const Gates &gates, double scale, const Rounding &r,
           Matrix &t, Matrix &p) {
  size_t rows = k.rows;
  Matrix kk = product(k, kt), qk = product(q, kt), a(chunk, chunk);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j <= i; ++j) {
      double gate = std::exp2(gates.left[j] - gates.left[i]);
      a[i][j] = j < i ? roundTo(r.accumulator, kk[i][j] * gates.k[i] * gate) : 0;
      p[i][j] = roundTo(r.operand, qk[i][j] * gates.q[i] * gate * scale / gates.a[i]);
    }
  t = part(inverse(a, gates.beta, r), 0, 0, rows, rows).rounded(r.chain);
}

void runChunk(const Problem &problem, int64_t first, int rows, uint32_t head, const Rounding &r, Matrix &s,
              Result &result) {
  uint32_t keyHead = problem.keyHead(head);
  Matrix q = rowsOf(problem.q, first, rows, problem.keyHeads, keyHead, problem.keyDim);
  Matrix k = rowsOf(problem.k, first, rows, problem.keyHeads, keyHead, problem.keyDim);
  Matrix w = rowsOf(problem.v, first, rows, problem.valueHeads, head, problem.valueDim);
  Matrix kt = k.transposed(), t(rows, rows), p(rows, rows);
  Gates gates = gatesOf(problem, first, rows, head, r);
  solve(q, kt, k, gates, problem.scale, r, t, p);

  Matrix sh = s.rounded(r.operand), ks = product(k, sh), o = product(q, sh);
  for (int i = 0; i < rows; ++i)
    for (size_t j = 0; j < w.columns; ++j) {
      w[i][j] = roundTo(r.chain, gates.a[i] * w[i][j] - gates.b[i] * gates.k[i] * ks[i][j]);
      o[i][j] *= problem.scale * gates.gamma[i] * gates.q[i];
    }
  Matrix u = product(t, w), uh = u.rounded(r.operand);
  multiply(p, uh, o);
  for (int i = 0; i < rows; ++i)
    for (size_t j = 0; j < o.columns; ++j)
      result.output[(size_t(first + i) * problem.valueHeads + head) * problem.valueDim + j] =
          roundTo(r.operand, o[i][j]);

  if (r.lateDecay)
    for (int i = 0; i < rows; ++i)
      for (size_t j = 0; j < u.columns; ++j)
        uh[i][j] = roundTo(r.operand, u[i][j] * std::exp2(gates.left[i]));
  for (double &x : s.data)
    x *= gates.b[rows - 1];
  multiply(kt, uh, s);
  s = s.rounded(r.accumulator);
}

} // namespace

Rounding Rounding::kernel(ElementType io, ElementType chain) {
  auto precision = [](ElementType type) { return type == ElementType::BF16 ? Precision::BF16 : Precision::F16; };
  bool narrow = io == ElementType::F16 || chain == ElementType::F16;             // fp16 has no room for 2^-100
  Precision coupling = io == ElementType::F16 ? Precision::F32 : Precision::F16; // two fp16 terms are as good as fp32
  return {Precision::F32, precision(io), precision(chain), Precision::F16, coupling, narrow ? -8.0 : -100.0, narrow};
}

Result chunkwise(const Problem &p, const Rounding &rounding) {
  Result result(p);
  const std::vector<size_t> rows = p.checkpointRows();
  parallelFor(p.sequences() * p.valueHeads, [&](size_t task) {
    size_t sequence = task / p.valueHeads;
    Matrix s(p.keyDim, p.valueDim);
    if (!p.state.empty())
      std::copy_n(&p.state[task * p.stateSize()], p.stateSize(), s.data.begin());
    const int64_t begin = p.offsets[sequence], end = p.offsets[sequence + 1];
    size_t row = rows[sequence];
    for (int64_t t = begin;; t += chunk) {
      if (p.isCheckpoint(t - begin) && row < rows[sequence + 1])
        std::copy(s.data.begin(), s.data.end(),
                  &result.checkpoints[(row++ * p.valueHeads + task % p.valueHeads) * p.stateSize()]);
      if (t >= end)
        break;
      runChunk(p, t, int(std::min<int64_t>(chunk, end - t)), task % p.valueHeads, rounding, s, result);
    }
    std::copy(s.data.begin(), s.data.end(), &result.state[task * p.stateSize()]);
  });
  return result;
}

} // namespace gdn::reference
