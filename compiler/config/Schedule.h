// The schedule table, coefs/schedule.csv: for every target, head dimensions and split that are served, the values of
// the template's schedule parameters. A row that is missing is a kernel that is not offered, so the table also says
// what is served.
#pragma once
#include "compiler/config/Csv.h"

namespace gdnc {

struct Schedule {
  std::string arch;
  uint32_t keyDim = 0, valueDim = 0, split = 0;
  std::map<std::string, std::string> values; // template parameters; those left empty in the table keep their default
};

std::vector<Schedule> readSchedules(const std::string &path);

} // namespace gdnc
