// Tables in coefs/: comma-separated, one header line, no quoting; lines that begin with '#' and empty lines are
// skipped.
#pragma once
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace gdnc {

// What is wrong with a user's configuration or with a table, ready to print.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CsvRow {
  std::string where; // "file:line", for messages
  std::map<std::string, std::string> cells;

  // Both throw ConfigError: the column is missing, or its cell is no number above zero.
  const std::string &text(const std::string &column) const;
  uint32_t number(const std::string &column) const;
};

std::string readFile(const std::string &path); // throws ConfigError
std::vector<CsvRow> readCsv(const std::string &path);

} // namespace gdnc
