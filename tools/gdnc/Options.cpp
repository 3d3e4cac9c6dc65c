#include "tools/gdnc/Options.h"
#include <algorithm>
#include <fmt/ranges.h>

using namespace gdnc;

CLI::Validator gdnc::oneOf(std::vector<std::string> allowed) {
  std::string names = fmt::format("{}", fmt::join(allowed, ", "));
  return CLI::Validator(
      [=](const std::string &value) {
        bool known = std::find(allowed.begin(), allowed.end(), value) != allowed.end();
        return known ? std::string() : fmt::format("expected one of {}, got \"{}\"", names, value);
      },
      "");
}

CLI::Validator gdnc::positive() {
  return CLI::Validator(
      [](const std::string &value) {
        bool digits = !value.empty() && value.size() <= 6 && value.find_first_not_of("0123456789") == std::string::npos;
        bool valid = digits && value.find_first_not_of('0') != std::string::npos;
        return valid ? std::string() : fmt::format("expected a whole number from 1 to 999999, got \"{}\"", value);
      },
      "");
}
