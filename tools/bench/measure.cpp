#include "tools/bench/measure.h"
#include "tests/reference/compare.h"
#include <algorithm>
#include <deque>

namespace gdn::bench {

namespace {

using device::Call;
using reference::Problem;

constexpr size_t flushed = 256 << 20; // bytes, several times the L2: no replay starts on cached inputs
constexpr int warmups = 3, profiled = 3;

template <typename T> double median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

Problem inputs(const Case &c, uint64_t seed) {
  reference::Recipe recipe;
  recipe.keyHeads = c.keyHeads;
  recipe.valueHeads = c.valueHeads;
  recipe.keyDim = c.keyDim;
  recipe.valueDim = c.valueDim;
  recipe.io = c.io;
  recipe.lengths = c.lengths;
  recipe.gates = c.allDecay ? reference::Recipe::Gates::Decay : reference::Recipe::Gates::Mix;
  recipe.stateScale = 0.1f;
  recipe.normalise = c.normalise;
  if (c.rawGates) {
    recipe.gateForm = reference::Recipe::GateForm::Raw;
    recipe.rate = 1.0f / 16;
    recipe.biased = recipe.logits = true;
  }
  return generate(recipe, seed);
}

// Replays enqueued back to back, so that the host runs ahead of the device.
std::vector<float> replay(const Setup &setup, const gpu::Graph &graph, gpu::Memory &flush, int count) {
  std::deque<gpu::Event> begins, ends;
  for (int i = 0; i < count; ++i) {
    setup.gpu.driver().cuMemsetD8Async(flush.address(), uint8_t(i), flush.size(), setup.gpu.stream());
    begins.emplace_back(setup.gpu).record();
    graph.launch();
    ends.emplace_back(setup.gpu).record();
  }
  setup.gpu.synchronize();
  std::vector<float> times;
  for (int i = 0; i < count; ++i)
    times.push_back(ends[i].millisecondsSince(begins[i]));
  return times;
}

constexpr size_t stampRows = GDN_PROFILE_ROWS, stampColumns = GDN_PROFILE_COLUMNS;

// Of the longest piece of each block.
std::optional<Clocks> clocksOf(const std::vector<int64_t> &stamps) {
  std::vector<double> perChunk, megahertz;
  for (size_t block = 0; block < stamps.size(); block += stampRows * stampColumns) {
    const int64_t *longest = &stamps[block];
    for (size_t row = 1; row < stampRows; ++row)
      if (const int64_t *piece = &stamps[block + row * stampColumns];
          piece[GDN_PROFILE_CHUNKS] > longest[GDN_PROFILE_CHUNKS])
        longest = piece;
    int64_t clocks = longest[GDN_PROFILE_LAST_CHUNK] - longest[GDN_PROFILE_FIRST_CHUNK],
            nanoseconds = longest[GDN_PROFILE_END_NS] - longest[GDN_PROFILE_BEGIN_NS];
    if (longest[GDN_PROFILE_CHUNKS] <= 0 || clocks <= 0)
      continue;
    perChunk.push_back(double(clocks) / longest[GDN_PROFILE_CHUNKS]);
    if (nanoseconds > 0)
      megahertz.push_back(1e3 * (longest[GDN_PROFILE_STORED] - longest[GDN_PROFILE_BEGIN]) / nanoseconds);
  }
  if (perChunk.empty() || megahertz.empty())
    return std::nullopt;
  return Clocks{median(perChunk), median(megahertz)};
}

bool hasProfile(const Setup &setup, const Case &c) {
  for (size_t i = 0; i < setup.bundle.size(); ++i) {
    gdn_kernel_info info = setup.bundle.kernel(i);
    if (info.profile && info.key_dim == int(c.keyDim) && info.value_dim == int(c.valueDim) && info.io == int(c.io) &&
        (setup.split == 0 || info.split == int(setup.split)) && bool(info.features & GDN_NORMALISE_QK) == c.normalise &&
        (info.state_layout == GDN_V_FIRST) == setup.valueFirst)
      return true;
  }
  return false;
}

std::optional<Clocks> profile(const Setup &setup, Call &call, gpu::Memory &flush) {
  std::vector<int64_t> stamps(size_t(setup.gpu.info().sm_count) * stampRows * stampColumns);
  gpu::Memory memory(setup.gpu, stamps.size() * sizeof(int64_t));
  memory.fill(0);
  call.setProfile(&memory);
  replay(setup, gpu::Graph(setup.gpu, [&] { call.launch(); }), flush, profiled);
  call.setProfile(nullptr);
  memory.download(stamps.data(), memory.size());
  return clocksOf(stamps);
}

std::vector<float> headOf(const std::vector<float> &all, size_t heads, size_t head, size_t width) {
  std::vector<float> picked(all.size() / heads);
  for (size_t row = 0; row * width < picked.size(); ++row)
    std::copy_n(&all[(row * heads + head) * width], width, &picked[row * width]);
  return picked;
}

// The largest errors over heads spread evenly. The first is the last head, which has no decay; the second decays.
void compareHeads(const Setup &setup, const Problem &p, const device::Outcome &got, Measurement &result) {
  uint32_t count = std::min(uint32_t(setup.errorHeads), p.valueHeads);
  result.outputError = result.stateError = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t head = (p.valueHeads - 1 + i * (p.valueHeads / count + 1)) % p.valueHeads;
    reference::Result want = reference::recurrence(p.oneHead(head));
    auto error = [&](const std::vector<double> &want, const std::vector<float> &got, size_t width) {
      reference::Error e = reference::compare(want, headOf(got, p.valueHeads, head, width), 1, width);
      return e.notFinite ? NAN : e.relative;
    };
    auto worst = [](double x, double y) { return x >= y ? x : y; }; // keeps a NaN in y
    result.outputError = worst(*result.outputError, error(want.output, got.output, p.valueDim));
    result.stateError = worst(*result.stateError, error(want.state, got.state, p.stateSize()));
  }
}

} // namespace

int64_t Case::chunks() const {
  int64_t sum = 0;
  for (int64_t length : lengths)
    sum += (length + 63) / 64;
  return sum * valueHeads;
}

double Case::floor(uint32_t split) const {
  constexpr double chunk = 64, perClock = 2048; // multiply-adds a clock of one SM in bf16 or fp16
  double k = keyDim, v = double(valueDim) / split;
  double solve = 2 * chunk * chunk * k;                     // K K^T, Q K^T
  double chain = 3 * chunk * k * v + 2 * chunk * chunk * v; // K S, Q S, K^T U; T W, P U
  return (solve + chain) / perClock;
}

Measurement measure(const Setup &setup, const Case &c) {
  if (!setup.gpu.hasGraphs())
    throw gpu::Error("the driver has no graphs: timing needs a GPU");
  Problem problem = inputs(c, setup.seed);
  device::Storage storage;
  storage.offsets = device::Storage::Offsets::Int32;
  storage.valueFirst = setup.valueFirst;
  storage.aligned = true;
  storage.split = setup.split;
  storage.cuts = setup.cuts;
  Call call(setup.gpu, setup.bundle, problem, storage);
  gpu::Memory flush(setup.gpu, flushed);
  Measurement result;
  result.split = setup.split;
  {
    gpu::Graph graph(setup.gpu, [&] { call.launch(); });
    replay(setup, graph, flush, warmups);
    std::vector<float> times = replay(setup, graph, flush, setup.repetitions);
    result.milliseconds = median(times);
    auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
    result.fastest = *fastest;
    result.slowest = *slowest;
  }
  if (c.chunks())
    result.microsecondsPerChunk = result.milliseconds * 1e3 * setup.gpu.info().sm_count / c.chunks();
  if (hasProfile(setup, c))
    result.clocks = profile(setup, call, flush);
  if (setup.errorHeads)
    compareHeads(setup, problem, call.run(), result);
  return result;
}

} // namespace gdn::bench
