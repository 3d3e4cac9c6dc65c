// PTX to a cubin, and a cubin to text, with the toolkit's programs.
#pragma once
#include "compiler/backend/Report.h"
#include "compiler/backend/Target.h"

namespace gdnc {

struct Assembly {
  bool ok = false;
  bool environmentError = false; // no usable program
  std::string error;             // what failed, in whole lines, each beginning with the source
  std::string output;            // cubin or text
  Report report;
};

// Assembles the PTX of the one kernel `entry`. An advisory (C75xx), a spill or a stack frame is a failure: the schedule
// that the template describes is then not what runs. `source` is the template's name, for messages. `maySpill`: of a
// kernel without a schedule.
Assembly assemble(const std::string &ptx, const std::string &entry, const std::string &source, const Target &target,
                  bool maySpill = false);

Assembly disassemble(const std::string &cubin);

} // namespace gdnc
