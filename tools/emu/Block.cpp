// Blocks and clusters: set-up, the scheduler of warps and of asynchronous work, named barriers, deadlock.
#include "Detector.h"
#include "Exec.h"
#include <algorithm>

namespace gdn::emu {

Block::Block(const Grid &grid, Cluster &cluster, uint64_t index, uint32_t rank)
    : grid(grid), cluster(cluster), index(index), rank(rank), random(grid.options.seed * 0x9e3779b97f4a7c15u + index) {
  const Dim &g = grid.launch.grid, &b = grid.launch.block;
  id = {uint32_t(index % g[0]), uint32_t(index / g[0] % g[1]), uint32_t(index / g[0] / g[1])};
  sharedEnd = sharedBase + grid.program.sharedStatic + grid.launch.sharedBytes;
  shared.assign(sharedEnd, 0xff);
  uint32_t threads = b[0] * b[1] * b[2];
  warps.resize((threads + lanes - 1) / lanes);
  for (unsigned n = 0; n < warps.size(); n++) {
    warps[n].index = n;
    uint32_t count = std::min(lanes, threads - n * lanes);
    warps[n].live = warps[n].active = count == lanes ? all : (1u << count) - 1;
    setUp(warps[n]);
  }
  if (grid.options.count) {
    counters = std::make_unique<Counters>();
    counters->executed.assign(grid.program.code.size(), 0);
  }
  if (grid.options.detect)
    detector = std::make_unique<Detector>(*this);
}

Block::~Block() = default;

void Block::setUp(Warp &w) {
  const Program &p = grid.program;
  w.block = this;
  w.program = &p;
  w.memory.assign(p.registerBytes + specialBytes + 64, 0xff);
  auto base = reinterpret_cast<uintptr_t>(w.memory.data());
  w.area[Registers] = w.memory.data() + (64 - base % 64) % 64;
  w.area[Specials] = w.area[Registers] + p.registerBytes;
  w.area[Constants] = reinterpret_cast<uint8_t *>(const_cast<uint64_t *>(p.constants.data()));
  w.local.assign(size_t(p.localBytes) * lanes, 0xff);
  setSpecials(w);
}

void Block::setSpecials(Warp &w) {
  const Dim &g = grid.launch.grid, &b = grid.launch.block, &c = grid.launch.cluster;
  auto set = [&](Special s, auto f) {
    for (unsigned l = 0; l < lanes; l++)
      w.at<uint32_t>(slotOf(s))[l] = f(l);
  };
  auto three = [&](Special s, auto f) {
    for (unsigned k = 0; k < 3; k++)
      set(Special(unsigned(s) + k), [&](unsigned) { return f(k); });
  };
  auto thread = [&](unsigned l) { return w.index * lanes + l; };
  set(Special::TidX, [&](unsigned l) { return thread(l) % b[0]; });
  set(Special::TidY, [&](unsigned l) { return thread(l) / b[0] % b[1]; });
  set(Special::TidZ, [&](unsigned l) { return thread(l) / b[0] / b[1]; });
  three(Special::NtidX, [&](unsigned k) { return b[k]; });
  three(Special::CtaidX, [&](unsigned k) { return id[k]; });
  three(Special::NctaidX, [&](unsigned k) { return g[k]; });
  three(Special::ClusterIdX, [&](unsigned k) { return id[k] / c[k]; });
  three(Special::NClusterIdX, [&](unsigned k) { return g[k] / c[k]; });
  three(Special::ClusterCtaIdX, [&](unsigned k) { return id[k] % c[k]; });
  three(Special::ClusterNCtaIdX, [&](unsigned k) { return c[k]; });
  auto one = [&](Special s, uint32_t value) { set(s, [&](unsigned) { return value; }); };
  one(Special::WarpId, w.index);
  one(Special::NWarpId, warps.size());
  one(Special::SmId, index % grid.machine.multiprocessors);
  one(Special::NSmId, grid.machine.multiprocessors);
  one(Special::GridId, 0);
  one(Special::ClusterCtaRank, rank);
  one(Special::ClusterNCtaRank, c[0] * c[1] * c[2]);
  one(Special::ExplicitCluster, c[0] * c[1] * c[2] > 1);
  one(Special::DynamicShared, grid.launch.sharedBytes);
  one(Special::TotalShared, grid.launch.sharedBytes + grid.program.sharedStatic);
  set(Special::LaneId, [](unsigned l) { return l; });
  set(Special::MaskEq, [](unsigned l) { return 1u << l; });
  set(Special::MaskLt, [](unsigned l) { return (1u << l) - 1; });
  set(Special::MaskLe, [](unsigned l) { return (2u << l) - 1; });
  set(Special::MaskGt, [](unsigned l) { return ~((2u << l) - 1); });
  set(Special::MaskGe, [](unsigned l) { return ~((1u << l) - 1); });
  for (unsigned l = 0; l < lanes; l++)
    w.at<uint64_t>(slotOf(Special::ParamBase))[l] = reinterpret_cast<uint64_t>(grid.params.data());
}

bool Block::runnable(Warp &w) {
  switch (w.status) {
  case Status::Ready:
    return true;
  case Status::Mbarrier: {
    uint32_t address = w.waitAddress;
    const Mbarrier &b = owner(w, address).mbarriers[address];
    if (w.timedOut || !b.valid || b.phase > w.waitPhase)
      return w.status = Status::Ready, true;
    return false;
  }
  case Status::ClusterBarrier:
    if (cluster.phase > w.waitPhase)
      return w.status = Status::Ready, true;
    return false;
  default:
    return false;
  }
}

// One turn of one warp.
Step Block::step() {
  const Options &o = grid.options;
  if (o.schedule == Schedule::Random && !inFlight.empty() && random() % 4 == 0)
    finishSome();
  std::vector<Warp *> ready;
  bool alive = false, onlyPolls = true;
  for (size_t n = 0; n < warps.size(); n++) {
    Warp &w = warps[(turn + n) % warps.size()];
    alive |= w.status != Status::Done;
    if (runnable(w)) {
      ready.push_back(&w);
      onlyPolls &= w.polls;
    }
  }
  if (!alive) {
    while (!inFlight.empty())
      perform(0);
    if (detector)
      detector->blockDone();
    return Step::Done;
  }
  if (ready.empty() || onlyPolls) {
    if (finishSome())
      return Step::Ran;
    if (ready.empty())
      return Step::Stalled;
    idlePolls = seenProgress == progress ? idlePolls + 1 : 0;
    seenProgress = progress;
    if (idlePolls > 1'000'000)
      return Step::Stalled;
  }
  Warp *next = o.schedule == Schedule::Random ? ready[random() % ready.size()] : ready.front();
  turn = next->index + 1;
  uint64_t before = next->executed;
  next->run(o.schedule == Schedule::Random ? 1 + random() % 500 : 100'000);
  instructions += next->executed - before;
  if (instructions > o.maxInstructions)
    next->fail("gave up after " + std::to_string(instructions) + " instructions of the block");
  if (!next->stop)
    finishSome(); // it may be spinning on memory that asynchronous work writes
  return Step::Ran;
}

bool Block::timeOut() {
  bool any = false;
  for (auto &w : warps)
    if (w.status == Status::Mbarrier)
      any = w.timedOut = true;
  return any;
}

void Block::barrierArrive(Warp &w, uint32_t number, uint32_t threads, bool waits) {
  if (number >= barriers.size())
    w.fail("barrier " + std::to_string(number) + " does not exist");
  NamedBarrier &b = barriers[number];
  if (threads % lanes || threads > warps.size() * lanes)
    w.fail("barrier " + std::to_string(number) + " expects " + std::to_string(threads) +
           " threads: not a multiple of 32 within the block's " + std::to_string(warps.size() * lanes));
  if (b.arrived && b.expected != threads)
    w.fail("barrier " + std::to_string(number) + " is expected to see " + std::to_string(threads) +
           " threads here but " + std::to_string(b.expected) + " by warp " +
           std::to_string(std::countr_zero(b.who.now)));
  if (b.who.now >> w.index & 1)
    w.fail("the warp arrives at barrier " + std::to_string(number) + " twice in one phase");
  b.expected = threads;
  b.arrived += lanes;
  b.who.now |= 1u << w.index;
  if (detector)
    detector->arrive(w, detector->named(number));
  if (waits) {
    b.waiting.push_back(&w);
    w.waitAddress = number;
    w.wait(Status::Barrier, false);
  }
  leaveBarriers();
}

// Releases barriers whose count is reached; a count of 0 stands for all warps that have not exited.
void Block::leaveBarriers() {
  uint32_t alive = 0;
  for (auto &w : warps)
    alive += w.status != Status::Done ? lanes : 0;
  for (unsigned n = 0; n < barriers.size(); n++) {
    NamedBarrier &b = barriers[n];
    if (!b.arrived || b.arrived < (b.expected ? b.expected : alive))
      continue;
    for (Warp *w : b.waiting) {
      w->status = Status::Ready;
      if (detector)
        detector->leave(*w, detector->named(n));
    }
    if (detector)
      detector->named(n) = {};
    b.expected = b.arrived = 0;
    b.waiting.clear();
    b.who.nextPhase();
    progress++;
  }
}

} // namespace gdn::emu
