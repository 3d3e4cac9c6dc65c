#include "compiler/config/Costs.h"
#include <fmt/format.h>

using namespace gdnc;

std::map<std::string, uint32_t> gdnc::readCosts(const std::string &path) {
  std::map<std::string, uint32_t> costs = {{"full", 0}, {"state", 0}, {"start", 0},
                                           {"flag", 0}, {"hop", 0},   {"plan", 0}};
  for (const CsvRow &row : readCsv(path)) {
    auto cost = costs.find(row.text("name"));
    if (cost == costs.end() || cost->second != 0)
      throw ConfigError(fmt::format("{}: expected one each of full, state, start, flag, hop and plan, got \"{}\"{}",
                                    row.where, row.text("name"), cost == costs.end() ? "" : " again"));
    cost->second = row.number("value");
  }
  for (auto &[name, value] : costs)
    if (value == 0)
      throw ConfigError(fmt::format("{}: expected a row \"{}\", got none", path, name));
  return costs;
}
