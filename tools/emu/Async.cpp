// Asynchronous work: when it is done, and mbarriers, through which most of it is awaited.
#include "Detector.h"
#include "Exec.h"
#include <algorithm>

namespace gdn::emu {

void Block::issue(AsyncWork work) {
  inFlight.push_back(std::move(work));
  if (grid.options.schedule == Schedule::Earliest)
    perform(inFlight.size() - 1);
}

void Block::perform(size_t n) {
  AsyncWork work = std::move(inFlight[n]);
  inFlight.erase(inFlight.begin() + ptrdiff_t(n));
  progress++;
  work.perform(*this, work);
}

// One piece of work that no one has waited for by name: the last issued where it shall come late, so that the order of
// issue is not relied on. Matrix products of a warp keep their order.
bool Block::finishSome() {
  if (inFlight.empty())
    return false;
  size_t n = grid.options.schedule == Schedule::Latest   ? inFlight.size() - 1
             : grid.options.schedule == Schedule::Random ? random() % inFlight.size()
                                                         : 0;
  const AsyncWork &chosen = inFlight[n];
  if (chosen.group == AsyncWork::Group::Wgmma)
    for (size_t k = 0; k < n; k++)
      if (inFlight[k].group == AsyncWork::Group::Wgmma && inFlight[k].warp == chosen.warp) {
        n = k;
        break;
      }
  perform(n);
  return true;
}

void Block::finishGroups(Warp &warp, int lane, AsyncWork::Group group, uint64_t until, bool onlyRead) {
  for (size_t n = 0; n < inFlight.size();) {
    const AsyncWork &work = inFlight[n];
    bool named = work.group == group && work.warp == &warp && (lane < 0 || work.lane == lane) && work.number < until &&
                 !(onlyRead && work.sourceRead);
    if (named)
      perform(n);
    else
      n++;
  }
}

Mbarrier &Block::mbarrier(const Warp &w, uint32_t address) {
  sharedAt(w, address, 8, 8);
  Block &of = owner(w, address);
  auto it = of.mbarriers.find(address);
  if (it == of.mbarriers.end() || !it->second.valid)
    w.fail("no mbarrier was initialised at " + std::to_string(address - sharedBase) + " bytes into shared memory");
  return it->second;
}

void Block::arrive(const Warp &w, Mbarrier &b, uint32_t count) {
  if (count > b.pending)
    w.fail("more arrivals than the mbarrier expects in phase " + std::to_string(b.phase) + ": " +
           std::to_string(count) + " with " + std::to_string(b.pending) + " of " + std::to_string(b.expected) +
           " pending");
  b.pending -= count;
  completeBytes(w, b, 0);
}

void Block::completeBytes(const Warp &w, Mbarrier &b, int64_t bytes) {
  constexpr int64_t limit = (1 << 20) - 1;
  b.bytes -= bytes;
  if (b.bytes > limit || b.bytes < -limit)
    w.fail("transaction count of the mbarrier overflows: " + std::to_string(b.bytes) + " bytes");
  if (b.pending || b.bytes)
    return;
  b.phase++;
  b.who.nextPhase();
  if (detector)
    detector->phaseDone(b.address);
  b.pending = b.expected;
  progress++;
}

} // namespace gdn::emu
