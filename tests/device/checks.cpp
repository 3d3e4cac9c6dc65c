#include "tests/device/checks.h"
#include "tests/reference/numbers.h"
#include <algorithm>
#include <cstring>
#include <numeric>

namespace gdn::device {

namespace {

using reference::Problem;
using reference::Result;
using reference::Rounding;

// Where the inputs amplify rounding, a kernel may have this many times the error of the model that rounds where it
// does. An exact model leaves the kernel what fp32 sums in another order differ by.
constexpr double modelSlack = 1.3, modelRowSlack = 2, leastBound = 1e-5;

std::vector<float> stored(const std::vector<double> &values, ElementType type) {
  std::vector<float> result(values.begin(), values.end());
  for (float &x : result)
    x = reference::rounded(type, x);
  return result;
}

void keepWorst(reference::Error &worst, const reference::Error &error) {
  worst.relative = std::max(worst.relative, error.relative);
  worst.worstRow = std::max(worst.worstRow, error.worstRow);
}

// Fills in the bounds for `problem`.
void setBounds(const Session &session, const Member &member, const Problem &p, const Result &want, Verdict &verdict) {
  ElementType stateType = member.storage.finalState;
  double io = benignBound(p.io);
  verdict.outputBound = reference::Bound::of(io, p.valueDim);
  verdict.stateBound = reference::Bound::of(std::max(io, benignBound(stateType)), p.stateSize());
  if (member.recipe.benign())
    return;
  Result model = reference::chunkwise(p, Rounding::kernel(p.io, session.config.chain));
  auto bound = [&](const std::vector<double> &want, const std::vector<double> &got, ElementType type, size_t width) {
    reference::Error error = reference::compare(want, stored(got, type), p.valueHeads, width);
    reference::Bound bound = reference::Bound::of(std::max(leastBound, modelSlack * error.relative), width);
    bound.worstRow = std::max(bound.worstRow, modelRowSlack * error.worstRow);
    return bound;
  };
  verdict.outputBound = bound(want.output, model.output, p.io, p.valueDim);
  verdict.stateBound = bound(want.state, model.state, stateType, p.stateSize());
  verdict.note = "bound from the rounding model";
}

// Inputs whose states are zeros where the call gives none.
Problem problemOf(const Member &member, const reference::Recipe &recipe, uint64_t seed) {
  Problem p = generate(recipe, seed);
  size_t size = p.valueHeads * p.stateSize();
  for (size_t n = 0; n < p.sequences() && !p.state.empty(); ++n)
    if (!isRead(member.storage, n))
      std::fill_n(&p.state[n * size], size, 0.0f);
  return p;
}
Problem problemOf(const Member &member, uint64_t seed) { return problemOf(member, member.recipe, seed); }

// Of rows of states, those with these numbers.
std::vector<double> pick(const std::vector<double> &states, const Problem &p, const std::vector<size_t> &rows) {
  std::vector<double> some;
  size_t size = p.valueHeads * p.stateSize();
  for (size_t n : rows)
    some.insert(some.end(), &states[n * size], &states[n * size] + size);
  return some;
}

// Whether the states of empty sequences came back as they went in. A zero may lose its sign.
bool keepsStates(const Member &member, const Problem &p, const Outcome &got) {
  size_t size = p.valueHeads * p.stateSize();
  for (size_t at = 0; at < got.sequences.size() && !p.state.empty(); ++at)
    for (size_t n = got.sequences[at], i = 0; p.offsets[n] == p.offsets[n + 1] && i < size; ++i)
      if (got.state[at * size + i] != reference::rounded(member.storage.finalState, p.state[n * size + i]))
        return false;
  return true;
}

// Judges one outcome against the reference.
void judgeNumbers(const Session &session, const Member &member, const Problem &p, const Outcome &got,
                  Verdict &verdict) {
  Result want = reference::recurrence(p);
  setBounds(session, member, p, want, verdict);
  reference::Error output = reference::compare(want.output, got.output, p.valueHeads, p.valueDim);
  keepWorst(verdict.output, output);
  verdict.require(output.within(verdict.outputBound), "O differs");
  verdict.require(output.faults().empty(), ("O: " + output.faults()).c_str());
  if (member.storage.wantsState) {
    reference::Error state =
        reference::compare(pick(want.state, p, got.sequences), got.state, p.valueHeads, p.stateSize());
    keepWorst(verdict.state, state);
    verdict.require(state.within(verdict.stateBound), "S differs");
    verdict.require(state.faults().empty(), ("S: " + state.faults()).c_str());
    verdict.require(keepsStates(member, p, got), "an empty sequence changed its state");
  }
  if (p.every) {
    reference::Error error =
        reference::compare(pick(want.checkpoints, p, got.rows), got.checkpoints, p.valueHeads, p.stateSize());
    double bound = std::max(benignBound(p.io), benignBound(member.storage.checkpoints));
    verdict.require(error.within(reference::Bound::of(bound, p.stateSize())), "checkpoints differ");
    verdict.require(error.faults().empty(), ("checkpoints: " + error.faults()).c_str());
  }
  verdict.require(got.untouched, "wrote beside its outputs");
}

Verdict numbers(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  Problem problem = problemOf(member, seed);
  Outcome got = Call(session.gpu, session.bundle, problem, member.storage).run();
  judgeNumbers(session, member, problem, got, verdict);
  return verdict;
}

Verdict finite(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  Problem problem = problemOf(member, seed);
  Result want = reference::recurrence(problem);
  Outcome got = Call(session.gpu, session.bundle, problem, member.storage).run();
  verdict.output = reference::compare(want.output, got.output, problem.valueHeads, problem.valueDim);
  verdict.state = reference::compare(want.state, got.state, problem.valueHeads, problem.stateSize());
  verdict.outputBound = verdict.stateBound = {INFINITY, INFINITY};
  verdict.require(verdict.output.notFinite == 0 && verdict.state.notFinite == 0, "infinite or NaN");
  verdict.require(got.untouched, "wrote beside its outputs");
  return verdict;
}

Verdict noState(const Session &session, const Member &member, uint64_t seed) {
  Problem problem = problemOf(member, seed);
  std::fill(problem.state.begin(), problem.state.end(), 0.0f);
  Outcome zeros = Call(session.gpu, session.bundle, problem, member.storage).run();
  problem.state.clear();
  Outcome none = Call(session.gpu, session.bundle, problem, member.storage).run();
  Verdict verdict;
  judgeNumbers(session, member, problem, none, verdict);
  verdict.require(none.bytes == zeros.bytes, "none differs from zeros");
  return verdict;
}

Verdict repeat(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  Problem problem = problemOf(member, seed);
  Call call(session.gpu, session.bundle, problem, member.storage);
  Outcome first = call.run();
  judgeNumbers(session, member, problem, first, verdict);
  for (int i = 0; i < 5 && verdict.passed; ++i)
    verdict.require(call.run().bytes == first.bytes, "differs from run to run");
  return verdict;
}

// Lengths of the same count and sum: turned by `turn`, half of the longest given to the first.
reference::Recipe otherLengths(reference::Recipe recipe, size_t turn) {
  auto &lengths = recipe.lengths;
  std::rotate(lengths.begin(), lengths.begin() + turn % lengths.size(), lengths.end());
  auto longest = std::max_element(lengths.begin(), lengths.end());
  int64_t moved = *longest / 2;
  *longest -= moved;
  lengths.front() += moved;
  return recipe;
}

// Calls, or replays of one captured call, between which offsets and data change in place.
Verdict changing(const Session &session, const Member &member, uint64_t seed, bool graph) {
  Verdict verdict;
  if (graph && !session.gpu.hasGraphs()) {
    verdict.skipped = "the driver has no graphs";
    return verdict;
  }
  Problem problem = problemOf(member, seed);
  Call call(session.gpu, session.bundle, problem, member.storage);
  judgeNumbers(session, member, problem, call.run(), verdict);
  std::optional<gpu::Graph> captured;
  if (graph)
    captured.emplace(session.gpu, [&] { call.launch(); });
  const size_t turns = member.turns ? member.turns : member.recipe.lengths.size();
  for (size_t turn = 1; turn <= turns && verdict.passed; ++turn) {
    Problem changed = problemOf(member, otherLengths(member.recipe, turn), seed + turn);
    call.upload(changed);
    call.poison();
    graph ? captured->launch() : call.launch();
    Outcome got = call.collect();
    judgeNumbers(session, member, changed, got, verdict);
    Outcome fresh = Call(session.gpu, session.bundle, changed, member.storage).run();
    verdict.require(got.bytes == fresh.bytes, graph ? "replay differs from a call" : "differs from a first call");
  }
  return verdict;
}

// A large state that nothing decays is mostly overwritten in the end: what is left of its rounding may exceed any
// bound, but not what it is without cuts.
Verdict cuts(const Session &session, const Member &member, uint64_t seed) {
  Problem problem = problemOf(member, seed);
  Result want = reference::recurrence(problem);
  Storage storage = member.storage;
  storage.cuts = GDN_CUT_OFF;
  Outcome uncut = Call(session.gpu, session.bundle, problem, storage).run();
  Outcome got = Call(session.gpu, session.bundle, problem, member.storage).run();
  Verdict verdict;
  if (member.recipe.stateScale <= 1)
    judgeNumbers(session, member, problem, got, verdict);
  auto compare = [&](const std::vector<double> &expected, const std::vector<float> &cut,
                     const std::vector<float> &whole, size_t width, const char *what) {
    reference::Error error = reference::compare(expected, cut, problem.valueHeads, width);
    reference::Bound bound{1.2 * reference::compare(expected, whole, problem.valueHeads, width).relative, 0};
    verdict.require(error.faults().empty(), what);
    verdict.require(error.relative <= bound.relative, (std::string(what) + " is less exact than without cuts").c_str());
    return std::pair(error, bound);
  };
  std::tie(verdict.output, verdict.outputBound) = compare(want.output, got.output, uncut.output, problem.valueDim, "O");
  std::tie(verdict.state, verdict.stateBound) =
      compare(pick(want.state, problem, got.sequences), got.state, uncut.state, problem.stateSize(), "S");
  if (problem.every)
    compare(pick(want.checkpoints, problem, got.rows), got.checkpoints, uncut.checkpoints, problem.stateSize(),
            "a checkpoint");
  verdict.require(got.untouched, "wrote beside its outputs");
  return verdict;
}

// Rows [of `all`, heads, width] of a whole and of a part of it: the part's rows begin at `row`, its heads at `head`.
bool areBits(const std::vector<float> &whole, size_t heads, size_t row, size_t head, const std::vector<float> &part,
             size_t partHeads, size_t width) {
  for (size_t at = 0; at < part.size(); at += partHeads * width, ++row)
    if (std::memcmp(&whole[(row * heads + head) * width], &part[at], partHeads * width * sizeof(float)))
      return false;
  return true;
}

Verdict apart(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  const Problem p = problemOf(member, seed);
  const Outcome together = Call(session.gpu, session.bundle, p, member.storage).run();
  judgeNumbers(session, member, p, together, verdict);
  auto compare = [&](const Problem &part, size_t token, size_t sequence, size_t head, const char *otherwise) {
    Outcome got = Call(session.gpu, session.bundle, part, member.storage).run();
    verdict.require(
        areBits(together.output, p.valueHeads, token, head, got.output, part.valueHeads, p.valueDim) &&
            areBits(together.state, p.valueHeads, sequence, head, got.state, part.valueHeads, p.stateSize()),
        otherwise);
  };
  for (size_t n = 0; n < p.sequences(); ++n)
    if (p.offsets[n] < p.offsets[n + 1])
      compare(p.oneSequence(n), p.offsets[n], n, 0, "a sequence alone differs");
  for (uint32_t half : {0u, p.valueHeads / 2})
    compare(p.someHeads(half, p.valueHeads / 2), 0, 0, half, "half of the heads alone differ");
  return verdict;
}

Verdict splits(const Session &session, const Member &member, uint64_t seed) {
  Verdict verdict;
  Problem problem = problemOf(member, seed);
  std::string tried = "splits";
  for (uint32_t split : session.config.splits) {
    Storage storage = member.storage;
    storage.split = split;
    judgeNumbers(session, member, problem, Call(session.gpu, session.bundle, problem, storage).run(), verdict);
    tried.append(" ").append(std::to_string(split));
  }
  verdict.note = verdict.note.empty() ? tried : verdict.note + ", " + tried;
  return verdict;
}

} // namespace

double benignBound(ElementType type) { return type == ElementType::BF16 ? 5e-3 : 1e-3; }

Verdict judge(const Session &session, const Member &member, uint64_t seed) {
  switch (member.check) {
  case Check::Numbers:
    return numbers(session, member, seed);
  case Check::Finite:
    return finite(session, member, seed);
  case Check::NoState:
    return noState(session, member, seed);
  case Check::Repeat:
    return repeat(session, member, seed);
  case Check::Update:
    return changing(session, member, seed, false);
  case Check::Graph:
    return changing(session, member, seed, true);
  case Check::Apart:
    return apart(session, member, seed);
  case Check::Splits:
    return splits(session, member, seed);
  case Check::Cuts:
    return cuts(session, member, seed);
  case Check::Reference:
    return judgeReference(session, member, seed);
  case Check::Large:
    return judgeLarge(session, member, seed);
  }
  return {};
}

} // namespace gdn::device
