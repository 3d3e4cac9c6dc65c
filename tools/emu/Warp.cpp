// A warp: its loop over threaded code, divergence and reconvergence.
#include "Detector.h"
#include "Exec.h"
#include <algorithm>
#include <utility>

namespace gdn::emu {

void Warp::fail(const std::string &message) const {
  throw Error(describeLine(block->grid.image.module, program->code[pc ? pc - 1 : 0].line) + ", block " +
              std::to_string(block->index) + ", warp " + std::to_string(index) + ": " + message);
}

void Warp::run(uint64_t budget) {
  const Inst *code = program->code.data();
  uint64_t *counts = block->counters ? block->counters->executed.data() : nullptr;
  stop = polls = false;
  uint64_t n = 0;
  while (!stop && n < budget) {
    if (pc >= mergeAt) [[unlikely]]
      reconverge();
    if (counts)
      counts[pc]++;
    const Inst &i = code[pc++];
    n++;
    exec = active & (*at<uint32_t>(i.guard) ^ i.guardFlip);
    if (!exec)
      continue;
    if (i.watched && block->detector && i.unit != Unit::Wgmma) [[unlikely]]
      block->detector->registers(*this, i);
    i.run(*this, i);
  }
  executed += n;
  if (!stop && !parked.empty()) {
    // Lanes that spin must not keep the others from what they spin for.
    rotate();
  }
}

// Lets another fragment run, whatever its address.
void Warp::rotate() {
  parked.insert(parked.begin(), {pc, active, false});
  auto next = std::find_if(parked.rbegin(), parked.rend(), [](auto &f) { return !f.waits; });
  pc = next->pc, active = next->mask;
  parked.erase(std::next(next).base());
  mergeAt = ~0u;
}

void Warp::split(uint32_t lanesAway, uint32_t to) {
  active &= ~lanesAway;
  parked.push_back({to, lanesAway, false});
  mergeAt = std::min(mergeAt, to);
}

// The lanes at the lower address go on first: code is laid out so that paths meet below.
void Warp::branch(uint32_t taken, uint32_t target) {
  if (taken == active)
    pc = target;
  else if (target < pc) {
    split(active & ~taken, pc);
    pc = target;
  } else {
    split(taken, target);
  }
}

// Picks the fragment with the lowest address among those that can run, and merges what stands at one address.
void Warp::reconverge() {
  if (active)
    parked.push_back({pc, active, false});
  std::sort(parked.begin(), parked.end(), [](auto &x, auto &y) { return x.pc < y.pc; });
  std::vector<Fragment> merged;
  for (auto &f : parked) {
    if (!merged.empty() && merged.back().pc == f.pc) {
      merged.back().mask |= f.mask;
      merged.back().waits = false;
    } else {
      merged.push_back(f);
    }
  }
  auto next = std::find_if(merged.begin(), merged.end(), [](auto &f) { return !f.waits; });
  if (next == merged.end()) {
    next = merged.begin();
    if (merged.size() > 1) {
      pc = next->pc + 1;
      std::string text = "the warp's lanes wait for each other at instructions that all of them must reach:";
      char mask[16];
      for (auto &f : merged) {
        std::snprintf(mask, sizeof mask, "0x%08x", f.mask);
        text +=
            std::string(" lanes ") + mask + " at " + describeLine(block->grid.image.module, program->code[f.pc].line);
      }
      fail(text);
    }
  }
  pc = next->pc, active = next->mask;
  merged.erase(next);
  parked = std::move(merged);
  mergeAt = ~0u;
  for (auto &f : parked)
    mergeAt = std::min(mergeAt, f.pc);
}

bool Warp::converge(const Inst &, uint32_t which) {
  uint32_t missing = which & live & ~exec;
  if (!missing)
    return true;
  if (missing & active)
    fail("lanes that the instruction needs are here but their guard is false");
  parked.push_back({pc - 1, active, true});
  active = 0;
  reconverge();
  return false;
}

void Warp::exitLanes(uint32_t which) {
  live &= ~which;
  active &= ~which;
  if (active)
    return;
  if (!parked.empty())
    return reconverge();
  status = Status::Done;
  stop = true;
  if (block->detector)
    block->detector->exits(*this);
  block->leaveBarriers();
}

bool Warp::inTurn() {
  if (std::exchange(hasTurn, false))
    return true;
  pc--;
  stop = true;
  status = Status::Turn;
  return false;
}

void Warp::wait(Status why, bool again) {
  stop = true;
  if (block->counters)
    (why == Status::Mbarrier ? block->counters->mbarrierWaits : block->counters->barrierWaits)++;
  if (again)
    pc--;
  bool others = std::any_of(parked.begin(), parked.end(), [](auto &f) { return !f.waits; });
  if (again && others) {
    // Other lanes of the warp may bring about what these wait for.
    rotate();
    polls = true;
    return;
  }
  status = why;
}

} // namespace gdn::emu
