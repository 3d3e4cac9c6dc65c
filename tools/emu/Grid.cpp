// Clusters of blocks, and the order of a grid.
#include "Detector.h"
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace gdn::emu {

Cluster::Cluster(const Grid &grid, uint64_t firstBlock) {
  const Dim &g = grid.launch.grid, &c = grid.launch.cluster;
  Dim at = {uint32_t(firstBlock % g[0]), uint32_t(firstBlock / g[0] % g[1]), uint32_t(firstBlock / g[0] / g[1])};
  uint32_t rank = 0;
  for (uint32_t z = 0; z < c[2]; z++)
    for (uint32_t y = 0; y < c[1]; y++)
      for (uint32_t x = 0; x < c[0]; x++)
        blocks.push_back(std::make_unique<Block>(
            grid, *this, at[0] + x + uint64_t(g[0]) * (at[1] + y + uint64_t(g[1]) * (at[2] + z)), rank++));
}

bool Cluster::run() {
  unsigned rounds = 0;
  uint64_t lastProgress = 0;
  for (;;) {
    bool ran = false, done = true;
    uint64_t progress = phase;
    for (auto &b : blocks) {
      Step s = b->step();
      ran |= s == Step::Ran;
      done &= s == Step::Done;
      progress += b->progress;
    }
    if (done)
      return true;
    if (ran)
      continue;
    for (auto &b : blocks)
      for (auto &w : b->warps)
        if (w.status == Status::Turn)
          return false;
    // Nothing can run. A try_wait may give up, but a program that comes back to the same waits is dead.
    rounds = progress == lastProgress ? rounds + 1 : 0;
    lastProgress = progress;
    bool any = false;
    for (auto &b : blocks)
      any |= b->timeOut();
    if (!any || rounds > 2)
      throw Error(describeWaits());
  }
}

void Cluster::giveTurns() {
  for (auto &b : blocks)
    for (auto &w : b->warps)
      if (w.status == Status::Turn) {
        w.status = Status::Ready;
        w.hasTurn = true;
        uint64_t before = w.executed;
        w.run(1);
        b->instructions += w.executed - before;
      }
}

namespace {

// Calls f(n) for n below `count` on several host threads. Of several failures the first by number is thrown.
template <class F> void inParallel(size_t count, unsigned threads, F f) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t failed = count;
  std::string error;
  auto work = [&] {
    for (size_t n; (n = next++) < count;) {
      try {
        f(n);
      } catch (const Error &e) {
        std::lock_guard lock(mutex);
        if (n < failed)
          failed = n, error = e.what();
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min<size_t>(threads, count); t++)
    others.emplace_back(work);
  work();
  for (auto &t : others)
    t.join();
  if (failed < count)
    throw Error(error);
}

} // namespace

// As many clusters as the device has multiprocessors, or as the options say, are under way at once. In each round all
// of them run, on any number of host threads, up to their next access to memory that other blocks answer to; then those
// are done one after another in an order that the seed gives. So a launch does not depend on how many threads there
// are.
void runGrid(const Grid &grid, const std::vector<uint64_t> &first, Result &result) {
  std::vector<std::unique_ptr<Cluster>> under;
  std::mt19937_64 random(grid.options.seed);
  const size_t resident = grid.options.resident ? grid.options.resident : grid.machine.multiprocessors;
  for (size_t started = 0; started < first.size() || !under.empty();) {
    size_t old = under.size(), fresh = std::min<size_t>(first.size() - started, resident - old);
    under.resize(old + fresh);
    std::vector<char> done(under.size(), false);
    inParallel(under.size(), grid.options.threads, [&](size_t n) {
      if (!under[n])
        under[n] = std::make_unique<Cluster>(grid, first[started + n - old]);
      done[n] = under[n]->run();
      if (done[n])
        for (auto &b : under[n]->blocks)
          b->warps.clear(); // a finished block is kept for its counts only
    });
    started += fresh;
    for (size_t n = 0; n < under.size(); n++)
      if (done[n]) {
        for (auto &b : under[n]->blocks) {
          result.instructions += b->instructions;
          if (b->counters)
            b->counters->addTo(result.counts, grid.program);
        }
        under[n] = nullptr;
      }
    std::erase(under, nullptr);
    std::vector<size_t> order(under.size());
    for (size_t n = 0; n < order.size(); n++)
      order[n] = n;
    if (grid.options.schedule == Schedule::Random)
      std::shuffle(order.begin(), order.end(), random);
    for (size_t n : order)
      under[n]->giveTurns();
  }
}

namespace {

// " (arrived: warps 0 1; in earlier phases also: warps 2 (which has exited))": whom to look for.
std::string describeArrivals(const Block &block, const Arrivals &who) {
  std::string now, before;
  for (auto &w : block.warps) {
    std::string name = " " + std::to_string(w.index) + (w.status == Status::Done ? " (which has exited)" : "");
    if (who.now >> w.index & 1)
      now += name;
    else if (who.before >> w.index & 1)
      before += name;
  }
  return " (arrived: " + (now.empty() ? "no warp" : "warps" + now) +
         (before.empty() ? "" : "; in earlier phases also: warps" + before) + ")";
}

// What a warp waits on.
std::string describeWait(Block &block, const Warp &w) {
  if (w.status == Status::Barrier) {
    const NamedBarrier &b = block.barriers[w.waitAddress];
    return "barrier " + std::to_string(w.waitAddress) + ", where " + std::to_string(b.arrived) + " of " +
           (b.expected ? std::to_string(b.expected) : "all") + " threads arrived" + describeArrivals(block, b.who);
  }
  if (w.status != Status::Mbarrier)
    return "the cluster's barrier";
  uint32_t address = w.waitAddress;
  Block &of = block.owner(w, address);
  const Mbarrier &b = of.mbarriers[address];
  return "mbarrier " + std::to_string(address - sharedBase) + " bytes into shared memory, phase " +
         std::to_string(w.waitPhase) + ": " + std::to_string(b.pending) + " of " + std::to_string(b.expected) +
         " arrivals and " + std::to_string(b.bytes) + " bytes missing" + describeArrivals(of, b.who);
}

} // namespace

std::string Cluster::describeWaits() const {
  std::string text;
  for (auto &block : blocks)
    for (auto &w : block->warps) {
      if (w.status == Status::Ready || w.status == Status::Done)
        continue;
      // A wait that is executed anew has its own line at pc, one that is passed the line before.
      uint32_t at = w.status == Status::Mbarrier ? w.pc : w.pc - 1;
      text += (text.empty() ? "deadlock: block " : "; block ") + std::to_string(block->index) + " warp " +
              std::to_string(w.index) + " " + describeLine(block->grid.image.module, w.program->code[at].line) +
              " waits on " + describeWait(*block, w);
    }
  return text;
}

} // namespace gdn::emu
