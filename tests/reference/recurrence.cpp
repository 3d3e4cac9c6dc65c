#include "tests/reference/parallel.h"
#include "tests/reference/problem.h"
#include <algorithm>
#include <cmath>

namespace gdn::reference {

namespace {

constexpr uint32_t block = 16; // columns of V that one task carries: columns of the state do not depend on each other

#if defined(__x86_64__) && defined(__linux__)
#define GDN_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GDN_WIDE
#endif

// S <- decay S, u = beta (v - S^T k), S <- S + k u^T, out = S^T q for a [keyDim, block] piece of the state.
GDN_WIDE void step(double *s, const double *q, const double *k, const double *v, double decay, double beta,
                   uint32_t keyDim, double *out) {
  double sum[block] = {}, u[block];
  for (uint32_t i = 0; i < keyDim; ++i)
    for (uint32_t j = 0; j < block; ++j) {
      double x = decay * s[i * block + j];
      s[i * block + j] = x;
      sum[j] += k[i] * x;
    }
  for (uint32_t j = 0; j < block; ++j) {
    u[j] = beta * (v[j] - sum[j]);
    sum[j] = 0;
  }
  for (uint32_t i = 0; i < keyDim; ++i)
    for (uint32_t j = 0; j < block; ++j) {
      double x = s[i * block + j] + k[i] * u[j];
      s[i * block + j] = x;
      sum[j] += q[i] * x;
    }
  std::copy(sum, sum + block, out);
}

// `rows`: the first checkpoint of the sequence and of the next.
void runColumns(const Problem &p, size_t sequence, uint32_t head, uint32_t first, const size_t *rows, Result &result) {
  uint32_t width = std::min(block, p.valueDim - first);
  size_t stateAt = (sequence * p.valueHeads + head) * p.stateSize() + first;
  std::vector<double> s(size_t(p.keyDim) * block), q(p.keyDim), k(p.keyDim);
  for (uint32_t i = 0; i < p.keyDim && !p.state.empty(); ++i)
    for (uint32_t j = 0; j < width; ++j)
      s[i * block + j] = p.state[stateAt + size_t(i) * p.valueDim + j];
  auto store = [&](double *to) {
    for (uint32_t i = 0; i < p.keyDim; ++i)
      std::copy_n(&s[i * block], width, to + size_t(i) * p.valueDim);
  };
  size_t row = rows[0];
  for (int64_t begin = p.offsets[sequence], t = begin;; ++t) {
    if (p.isCheckpoint(t - begin) && row < rows[1])
      store(&result.checkpoints[(row++ * p.valueHeads + head) * p.stateSize() + first]);
    if (t == p.offsets[sequence + 1])
      break;
    size_t keyAt = (size_t(t) * p.keyHeads + p.keyHead(head)) * p.keyDim, at = size_t(t) * p.valueHeads + head;
    double qNorm = p.norm(p.q, t, p.keyHead(head)), kNorm = p.norm(p.k, t, p.keyHead(head));
    for (uint32_t i = 0; i < p.keyDim; ++i) {
      q[i] = p.q[keyAt + i] / qNorm;
      k[i] = p.k[keyAt + i] / kNorm;
    }
    double v[block] = {}, out[block];
    std::copy_n(&p.v[at * p.valueDim + first], width, v);
    step(s.data(), q.data(), k.data(), v, std::exp(p.logDecay(at)), p.strength(at), p.keyDim, out);
    for (uint32_t j = 0; j < width; ++j)
      result.output[at * p.valueDim + first + j] = p.scale * out[j];
  }
  store(&result.state[stateAt]);
}

} // namespace

Result recurrence(const Problem &p) {
  Result result(p);
  const std::vector<size_t> rows = p.checkpointRows();
  uint32_t blocks = (p.valueDim + block - 1) / block;
  parallelFor(p.sequences() * p.valueHeads * blocks, [&](size_t task) {
    size_t head = task / blocks;
    size_t sequence = head / p.valueHeads;
    runColumns(p, sequence, head % p.valueHeads, task % blocks * block, &rows[sequence], result);
  });
  return result;
}

Result::Result(const Problem &p)
    : output(size_t(p.tokens) * p.valueHeads * p.valueDim), state(p.sequences() * p.valueHeads * p.stateSize()),
      checkpoints(p.checkpointRows().back() * p.valueHeads * p.stateSize()) {}

std::vector<size_t> Problem::checkpointRows() const {
  std::vector<size_t> rows = {0};
  for (size_t i = 0; i < sequences(); ++i) {
    int64_t length = offsets[i + 1] - offsets[i];
    rows.push_back(rows.back() + (every ? size_t((length + (before ? every - 1 : 0)) / every) : 0));
  }
  return rows;
}

double Problem::logDecay(size_t at) const {
  if (gateIsDecay)
    return std::log(double(g[at]));
  if (aLog.empty())
    return g[at];
  size_t head = at % valueHeads;
  double x = double(g[at]) + (dtBias.empty() ? 0 : dtBias[head]);
  return -std::exp(double(aLog[head])) * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
}

double Problem::strength(size_t at) const {
  double x = beta[at];
  return (betaLogits ? 1 / (1 + std::exp(-x)) : x) * (betaDoubled ? 2 : 1);
}

double Problem::norm(const std::vector<float> &rows, size_t token, uint32_t keyHead) const {
  if (!normalise)
    return 1;
  const float *row = &rows[(token * keyHeads + keyHead) * keyDim];
  double sum = 1e-6;
  for (uint32_t i = 0; i < keyDim; ++i)
    sum += double(row[i]) * row[i];
  return std::sqrt(sum);
}

Problem Problem::someHeads(uint32_t first, uint32_t count) const {
  Problem some = *this;
  const uint32_t firstKey = keyHead(first), lastKey = keyHead(first + count - 1);
  some.valueHeads = count;
  some.keyHeads = lastKey - firstKey + 1;
  auto pick = [](const std::vector<float> &all, size_t heads, size_t head, size_t picks, size_t width) {
    std::vector<float> picked;
    for (size_t row = 0; row < all.size(); row += heads * width)
      picked.insert(picked.end(), &all[row + head * width], &all[row + head * width] + picks * width);
    return picked;
  };
  some.q = pick(q, keyHeads, firstKey, some.keyHeads, keyDim);
  some.k = pick(k, keyHeads, firstKey, some.keyHeads, keyDim);
  auto pickValue = [&](const std::vector<float> &all, size_t width) {
    return pick(all, valueHeads, first, count, width);
  };
  some.v = pickValue(v, valueDim);
  some.g = pickValue(g, 1);
  some.beta = pickValue(beta, 1);
  some.aLog = pickValue(aLog, 1);
  some.dtBias = pickValue(dtBias, 1);
  some.state = pickValue(state, stateSize());
  return some;
}

Problem Problem::oneSequence(size_t sequence) const {
  Problem one = *this;
  const int64_t begin = offsets[sequence], end = offsets[sequence + 1];
  one.offsets = {0, end - begin};
  one.tokens = end - begin;
  auto pick = [](const std::vector<float> &all, size_t from, size_t to, size_t width) {
    return all.empty() ? all : std::vector<float>(&all[from * width], &all[from * width] + (to - from) * width);
  };
  one.q = pick(q, begin, end, size_t(keyHeads) * keyDim);
  one.k = pick(k, begin, end, size_t(keyHeads) * keyDim);
  one.v = pick(v, begin, end, size_t(valueHeads) * valueDim);
  one.g = pick(g, begin, end, valueHeads);
  one.beta = pick(beta, begin, end, valueHeads);
  one.state = pick(state, sequence, sequence + 1, valueHeads * stateSize());
  return one;
}

} // namespace gdn::reference
