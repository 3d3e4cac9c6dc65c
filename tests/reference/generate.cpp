#include "tests/reference/generate.h"
#include "tests/reference/numbers.h"
#include "tests/reference/parallel.h"
#include "tests/reference/random.h"
#include <charconv>

namespace gdn::reference {

namespace {

enum Stream : uint64_t { StreamQ, StreamK, StreamV, StreamG, StreamBeta, StreamState, StreamDirection, StreamNorm };

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Direction {
  std::vector<float> unit;
  Direction(size_t width, const Random &random, uint64_t first) : unit(width) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) {
      unit[i] = random.normal(first + i);
      sum += double(unit[i]) * unit[i];
    }
    for (float &x : unit)
      x /= std::sqrt(sum);
  }
};

// Rows of q or k: unit vectors, blended with the head's common direction where they are to be correlated.
std::vector<float> rows(const Recipe &r, int64_t tokens, uint64_t seed, Stream stream, float correlation, float norm) {
  uint32_t width = r.keyDim;
  std::vector<float> out(size_t(tokens) * r.keyHeads * width);
  Random random(seed, stream), common(seed, StreamDirection), norms(seed, StreamNorm + stream);
  std::vector<Direction> heads;
  for (uint32_t h = 0; h < r.keyHeads; ++h)
    heads.emplace_back(width, common, h * uint64_t(width));
  parallelFor(tokens, [&](size_t t) {
    for (uint32_t h = 0; h < r.keyHeads; ++h) {
      size_t at = (t * r.keyHeads + h) * width;
      if (r.zeroRowEvery && t % r.zeroRowEvery == 0 && (t / r.zeroRowEvery % 2 == 0) == (stream == StreamK))
        continue;
      float length = r.normSpread == 0 ? norm : norm * std::exp2(r.normSpread * (2 * norms.uniform(at) - 1));
      if (r.oneHot) {
        out[at + random.bits(at) % width] = rounded(r.io, length);
        continue;
      }
      Direction own(width, random, at);
      float along = std::sqrt(correlation), across = std::sqrt(1 - correlation);
      for (uint32_t i = 0; i < width; ++i)
        out[at + i] = rounded(r.io, length * (along * heads[h].unit[i] + across * own.unit[i]));
    }
  });
  return out;
}

double gateOf(const Recipe &r, size_t token, uint32_t head, bool last, double normal) {
  bool persistent = head % 4 == 3 || r.valueHeads == 1;
  switch (r.gates) {
  case Recipe::Gates::Mix:
    return head % 4 == 3 ? 0 : -softplus(-normal) / 16;
  case Recipe::Gates::Decay:
    return -softplus(-normal) / 16;
  case Recipe::Gates::Constant:
    return r.gate;
  case Recipe::Gates::Chunk:
    return persistent ? 0 : r.gate / 64;
  case Recipe::Gates::Softplus:
    return -r.gate * softplus(normal);
  case Recipe::Gates::ZeroRuns:
    return token % 8 < 5 ? 0 : -r.gate * softplus(normal);
  case Recipe::Gates::LastToken:
    return last ? r.gate : 0;
  }
  return 0;
}

double betaOf(const Recipe &r, size_t token, const Random &random, size_t index) {
  auto squashed = [&](double x) { return r.logits ? x : sigmoid(x); };
  switch (r.beta) {
  case Recipe::Beta::Sigmoid:
    return squashed(random.normal(index));
  case Recipe::Beta::Constant:
    return r.strength;
  case Recipe::Beta::Alternate:
    return token % 2 ? r.strength : 0;
  case Recipe::Beta::Uniform:
    return r.strength * random.uniform(index);
  case Recipe::Beta::Saturated:
    return squashed(random.bits(index) & 1 ? 20 : -20);
  }
  return 0;
}

void fillGates(const Recipe &r, uint64_t seed, Problem &p) {
  size_t rows = size_t(p.tokens);
  p.g.resize(rows * p.valueHeads);
  p.beta.resize(rows * p.valueHeads);
  std::vector<bool> last(rows);
  for (size_t n = 0; n < p.sequences(); ++n)
    if (p.offsets[n + 1] > p.offsets[n])
      last[p.offsets[n + 1] - 1] = true;
  Random g(seed, StreamG), beta(seed, StreamBeta);
  p.gateIsDecay = r.gateForm == Recipe::GateForm::Decay;
  p.betaLogits = r.logits, p.betaDoubled = r.doubled;
  for (uint32_t h = 0; h < p.valueHeads && r.gateForm == Recipe::GateForm::Raw; ++h) {
    p.aLog.push_back(rounded(r.gateType, std::log(r.rate * float(1 + h % 2))));
    if (r.biased)
      p.dtBias.push_back(rounded(r.gateType, h % 3 - 1.5f));
  }
  parallelFor(rows, [&](size_t t) {
    for (uint32_t h = 0; h < p.valueHeads; ++h) {
      size_t at = t * p.valueHeads + h;
      double gate = r.gateForm == Recipe::GateForm::Raw ? r.center + r.spread * g.normal(at)
                                                        : gateOf(r, t, h, last[t], g.normal(at));
      p.g[at] = rounded(r.gateType, float(r.gateForm == Recipe::GateForm::Decay ? std::exp(gate) : gate));
      p.beta[at] = rounded(r.gateType, float(betaOf(r, t, beta, at)));
    }
  });
}

} // namespace

bool Recipe::benign() const {
  bool ordinary = (keyNorm <= 1 || normalise) && (valueScale == 0 || valueScale >= 1e-2f);
  bool weak = logits || beta == Beta::Sigmoid || beta == Beta::Saturated || strength <= 1;
  return ordinary && correlation <= 0.9f && weak && !doubled;
}

std::vector<float> normals(size_t count, float deviation, ElementType type, uint64_t seed, uint64_t stream) {
  std::vector<float> values(count);
  if (deviation == 0)
    return values;
  Random random(seed, stream);
  parallelRanges(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      values[i] = rounded(type, deviation * random.normal(i));
  });
  return values;
}

Problem generate(const Recipe &r, uint64_t seed) {
  Problem p;
  p.keyHeads = r.keyHeads;
  p.valueHeads = r.valueHeads;
  p.keyDim = r.keyDim;
  p.valueDim = r.valueDim;
  for (int64_t length : r.lengths)
    p.offsets.push_back(p.offsets.back() + length);
  p.tokens = p.offsets.back() + r.tail;
  p.io = r.io;
  p.scale = std::isnan(r.scale) ? 1 / std::sqrt(float(r.keyDim)) : r.scale;
  p.normalise = r.normalise;
  p.every = r.every;
  p.before = r.before;
  p.q = rows(r, p.tokens, seed, StreamQ, 0, r.queryNorm);
  p.k = rows(r, p.tokens, seed, StreamK, r.correlation, r.keyNorm);
  p.v = normals(size_t(p.tokens) * r.valueHeads * r.valueDim, r.valueScale, r.io, seed, StreamV);
  fillGates(r, seed, p);
  if (r.hasState)
    p.state = normals(p.sequences() * p.valueHeads * p.stateSize(), r.stateScale, r.stateType, seed, StreamState);
  return p;
}

std::vector<int64_t> parseLengths(const std::string &text) {
  if (text == "mixed")
    return {1, 7, 63, 64, 65, 1000, 4096, 16384};
  std::vector<int64_t> lengths;
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](int64_t &value) {
    auto [next, error] = std::from_chars(at, end, value);
    bool good = error == std::errc() && value >= 0;
    at = next;
    return good;
  };
  for (;;) {
    int64_t count = 1, length;
    if (!number(length))
      return {};
    if (at != end && *at == 'x') {
      ++at;
      count = length;
      if (!number(length) || count == 0 || count > 1 << 20)
        return {};
    }
    lengths.insert(lengths.end(), count, length);
    if (at == end)
      return lengths;
    if (*at++ != '+')
      return {};
  }
}

} // namespace gdn::reference
