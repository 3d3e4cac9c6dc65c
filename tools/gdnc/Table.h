// A table for people: the first row is its head; columns whose cells are numbers are aligned to the right.
#pragma once
#include <string>
#include <vector>

namespace gdnc {

using TableRow = std::vector<std::string>;
std::string formatTable(const std::vector<TableRow> &rows);

} // namespace gdnc
