#include "tools/bench/measure.h"
#include "tests/reference/compare.h"
#include <algorithm>
#include <chrono>
#include <deque>

namespace gdn::bench {

namespace {

using reference::Problem;

constexpr size_t flushed = 256 << 20; // bytes, several times the L2: no replay starts on cached inputs
constexpr int warmups = 3, hostCalls = 20, chains = 16; // replays of the chain in a round

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

const Setup &timed(const Setup &setup) {
  if (!setup.gpu.hasGraphs())
    throw gpu::Error("the driver has no graphs: timing needs a GPU");
  return setup;
}

device::Storage storage(const Setup &setup) {
  device::Storage storage;
  storage.offsets = device::Storage::Offsets::Int32;
  storage.valueFirst = setup.valueFirst;
  storage.aligned = true;
  storage.split = setup.split;
  storage.cuts = setup.cuts;
  return storage;
}

std::vector<float> headOf(const std::vector<float> &all, size_t heads, size_t head, size_t width) {
  std::vector<float> picked(all.size() / heads);
  for (size_t row = 0; row * width < picked.size(); ++row)
    std::copy_n(&all[(row * heads + head) * width], width, &picked[row * width]);
  return picked;
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

Session::Session(const Setup &setup, const Case &c)
    : setup(timed(setup)), problem(inputs(c, setup.seed)), call(setup.gpu, setup.bundle, problem, storage(setup)),
      flush(setup.gpu, flushed) {}

// Enqueued back to back, so that the host runs ahead of the device.
std::vector<float> Session::replay(const gpu::Graph &graph, int count) {
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

std::vector<float> Session::replay(int count) {
  gpu::Graph graph(setup.gpu, [&] { call.launch(); });
  replay(graph, warmups);
  return replay(graph, count);
}

float Session::replayStamped(std::vector<Block> &stamps) {
  std::vector<int64_t> values(size_t(setup.gpu.info().sm_count) * stampsOfBlock);
  gpu::Memory memory(setup.gpu, values.size() * sizeof(int64_t));
  call.setProfile(&memory);
  gpu::Graph graph(setup.gpu, [&] { call.launch(); });
  replay(graph, warmups);
  memory.fill(0); // blocks draw other pieces each time: none of an older replay may stay
  float time = replay(graph, 1).front();
  call.setProfile(nullptr);
  memory.download(values.data(), memory.size());
  stamps = decode(values);
  return time;
}

double Session::hostTime(int count) {
  call.launch();
  setup.gpu.synchronize();
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i)
    call.launch();
  auto end = std::chrono::steady_clock::now();
  setup.gpu.synchronize();
  return std::chrono::duration<double, std::micro>(end - begin).count() / count;
}

// The largest errors over heads spread evenly. The first is the last head, which has no decay; the second decays.
void Session::compareHeads(Measurement &result) {
  const device::Outcome got = call.run();
  uint32_t heads = problem.valueHeads, count = std::min(uint32_t(setup.errorHeads), heads);
  result.outputError = result.stateError = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t head = (heads - 1 + i * (heads / count + 1)) % heads;
    reference::Result want = reference::recurrence(problem.oneHead(head));
    auto error = [&](const std::vector<double> &want, const std::vector<float> &got, size_t width) {
      reference::Error e = reference::compare(want, headOf(got, heads, head, width), 1, width);
      return e.notFinite ? NAN : e.relative;
    };
    auto worst = [](double x, double y) { return x >= y ? x : y; }; // keeps a NaN in y
    result.outputError = worst(*result.outputError, error(want.output, got.output, problem.valueDim));
    result.stateError = worst(*result.stateError, error(want.state, got.state, problem.stateSize()));
  }
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

Measurement measure(const Setup &setup, const Case &c) {
  Session session(setup, c);
  const std::vector<float> times = session.replay(setup.repetitions);
  Measurement result;
  result.split = setup.split;
  result.milliseconds = median({times.begin(), times.end()});
  result.fastest = *std::min_element(times.begin(), times.end());
  result.slowest = *std::max_element(times.begin(), times.end());
  if (c.chunks())
    result.microsecondsPerChunk = result.milliseconds * 1e3 * setup.gpu.info().sm_count / c.chunks();
  if (hasProfile(setup, c)) {
    std::vector<Block> stamps;
    session.replayStamped(stamps);
    result.clocks = clocksOf(stamps);
  }
  if (setup.errorHeads)
    session.compareHeads(result);
  return result;
}

namespace {

// Of the median replay: its time, and the main kernel's share, by the GPU's timer.
struct Stamped {
  double total, main;
  std::vector<Block> blocks;
};
Stamped stamped(const Setup &setup, const Case &c) {
  Session session(setup, c);
  std::vector<double> totals, mains;
  Stamped result;
  for (int i = 0; i < setup.repetitions; ++i) {
    totals.push_back(session.replayStamped(result.blocks));
    mains.push_back(span(result.blocks) * 1e-6);
  }
  result.total = median(totals);
  result.main = median(mains);
  return result;
}

} // namespace

Profile profile(const Setup &setup, const Case &c) {
  Setup uncut = setup;
  uncut.cuts = GDN_CUT_OFF;
  Stamped cut = stamped(setup, c), whole = stamped(uncut, c);
  double start = whole.total - whole.main;
  return {cut.total, start, cut.total - cut.main - start, cut.main, std::move(cut.blocks)};
}

double hostTime(const Setup &setup, const Case &c) {
  Session session(setup, c);
  std::vector<double> times;
  for (int i = 0; i < setup.repetitions; ++i)
    times.push_back(session.hostTime(hostCalls));
  return median(times);
}

std::vector<Round> measureRounds(const Setup &setup, int rounds) {
  // Each piece of the chain on an SM of its own, and no more hops than one piece makes.
  const int middle = std::min(30, (setup.gpu.info().sm_count - 4) / 3);
  if (middle < 2)
    throw gpu::Error("expected at least 10 SMs, got " + std::to_string(setup.gpu.info().sm_count));
  Setup whole = setup, cut = setup;
  whole.split = cut.split = 1;
  whole.cuts = GDN_CUT_OFF;
  cut.cuts = chainCuts;
  auto batch = [](uint32_t keyHeads, uint32_t valueHeads, size_t sequences, int64_t length) {
    Case c = {};
    c.keyHeads = keyHeads;
    c.valueHeads = valueHeads;
    c.keyDim = c.valueDim = 128;
    c.io = ElementType::BF16;
    c.lengths.assign(sequences, length);
    return c;
  };
  auto session = [&](const Setup &setup, auto... sizes) { return Session(setup, batch(sizes...)); };
  Session longPieces = session(whole, 16, 64, 4, 8192), shortPieces = session(whole, 16, 64, 64, 512);
  Session chain = session(cut, 1, 1, 1, chainTokens(middle));
  Setup planned = setup;
  planned.cuts = GDN_CUT_AUTO | GDN_KEYS_NORMALISED;
  std::vector<Round> result(static_cast<size_t>(rounds));
  for (Round &round : result) {
    longPieces.replayStamped(round.longPieces);
    shortPieces.replayStamped(round.shortPieces);
    for (int i = 0; i < chains; ++i) {
      std::vector<Block> stamps;
      chain.replayStamped(stamps);
      round.chains.push_back(std::move(stamps));
    }
    const Profile some = profile(planned, batch(2, 8, 1, 8192));
    if (std::optional<Clocks> clocks = clocksOf(some.blocks))
      round.plan = some.plan * 1e3 * clocks->megahertz;
  }
  return result;
}

} // namespace gdn::bench
