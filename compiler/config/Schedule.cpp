#include "compiler/config/Schedule.h"

using namespace gdnc;

std::vector<Schedule> gdnc::readSchedules(const std::string &path) {
  std::vector<Schedule> schedules;
  for (CsvRow &row : readCsv(path)) {
    Schedule schedule{row.text("arch"), row.number("K"), row.number("V"), row.number("split"), {}};
    for (auto &[column, cell] : row.cells)
      if (column != "arch" && column != "K" && column != "V" && column != "split" && !cell.empty())
        schedule.values[column] = cell;
    schedules.push_back(std::move(schedule));
  }
  return schedules;
}
