#include "tools/gdnc/Table.h"
#include <algorithm>
#include <fmt/format.h>

using namespace gdnc;

std::string gdnc::formatTable(const std::vector<TableRow> &rows) {
  std::vector<size_t> widths(rows.front().size());
  std::vector<bool> numeric(widths.size(), true);
  for (const TableRow &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
      bool none = row[i].empty() || row[i] == "-";
      if (&row != &rows.front() && !none && !isdigit(static_cast<unsigned char>(row[i].front())))
        numeric[i] = false;
    }
  std::string text;
  for (const TableRow &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += numeric[i] ? fmt::format("{:>{}}  ", row[i], widths[i]) : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}
