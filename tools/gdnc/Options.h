// Checks of options' values. Apart from Common.h, because the command line's header takes long to compile.
#pragma once
#include <CLI/CLI.hpp>

namespace gdnc {

CLI::Validator oneOf(std::vector<std::string> allowed);
CLI::Validator positive();

} // namespace gdnc
