// What the parts of a forward cost on a GPU, coefs/<gpu>.csv: the planner is compiled with them.
#pragma once
#include "compiler/config/Csv.h"

namespace gdnc {

// Clocks by name: full, state, start, flag, hop and plan. Throws ConfigError where one is missing, twice there or
// unknown.
std::map<std::string, uint32_t> readCosts(const std::string &path);

} // namespace gdnc
