// How a member is judged.
#pragma once
#include "tests/device/members.h"
#include "tests/reference/compare.h"

namespace gdn::device {

struct Session {
  const gpu::Gpu &gpu;
  const gpu::Bundle &bundle;
  const Config &config;
};

struct Verdict {
  bool passed = true;
  reference::Error output, state; // the worst of several calls
  reference::Bound outputBound, stateBound;
  std::string note;
  std::string skipped; // why it was not run; "" if it was

  void require(bool condition, const char *otherwise) {
    if (condition)
      return;
    passed = false;
    note += (note.empty() ? "" : ", ") + std::string(otherwise);
  }
};

Verdict judge(const Session &session, const Member &member, uint64_t seed);

// Members that need the reference on the GPU; `skipped` where it was not built or does not fit.
Verdict judgeReference(const Session &session, const Member &member, uint64_t seed);
Verdict judgeLarge(const Session &session, const Member &member, uint64_t seed);

// The fixed bound on relative errors of values that were rounded to `type`.
double benignBound(ElementType type);

} // namespace gdn::device
