#include "compiler/config/Csv.h"
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

using namespace gdnc;

const std::string &CsvRow::text(const std::string &column) const {
  auto cell = cells.find(column);
  if (cell == cells.end())
    throw ConfigError(fmt::format("{}: expected a column \"{}\"", where, column));
  return cell->second;
}

uint32_t CsvRow::number(const std::string &column) const {
  const std::string &cell = text(column);
  uint32_t value = 0;
  auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || value == 0)
    throw ConfigError(fmt::format("{}: {}: expected a number above zero, got \"{}\"", where, column, cell));
  return value;
}

std::string gdnc::readFile(const std::string &path) {
  if (std::filesystem::is_directory(path))
    throw ConfigError(fmt::format("cannot read \"{}\": it is a directory", path));
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw ConfigError(fmt::format("cannot read \"{}\": {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

static std::vector<std::string> splitCells(const std::string &line) {
  std::vector<std::string> cells;
  for (size_t begin = 0;;) {
    size_t end = line.find(',', begin);
    cells.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos)
      return cells;
    begin = end + 1;
  }
}

std::vector<CsvRow> gdnc::readCsv(const std::string &path) {
  std::istringstream text(readFile(path));
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
  std::string line;
  for (unsigned number = 1; std::getline(text, line); ++number) {
    if (line.empty() || line.front() == '#')
      continue;
    std::vector<std::string> cells = splitCells(line);
    if (columns.empty()) {
      columns = std::move(cells);
      continue;
    }
    CsvRow row{fmt::format("{}:{}", path, number), {}};
    if (cells.size() != columns.size())
      throw ConfigError(fmt::format("{}: expected {} cells, got {}", row.where, columns.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i)
      row.cells[columns[i]] = std::move(cells[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}
