// What the commands share. A command adds itself to the command line and runs when it is named; it reports an error by
// throwing Failure or ConfigError, which main prints.
#pragma once
#include "compiler/config/Csv.h"
#include <filesystem>
#include <fmt/format.h>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace gdnc {

enum ExitCode { Success = 0, CompileError = 1, UsageError = 2, EnvironmentError = 3, CheckMismatch = 4 };

struct Failure : std::runtime_error {
  ExitCode code;

  template <typename... Args>
  Failure(ExitCode code, fmt::format_string<Args...> text, Args &&...args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)), code(code) {}
};

void addBuild(CLI::App &app);
void addCompile(CLI::App &app);
void addInspect(CLI::App &app);
void addDiff(CLI::App &app);
void addList(CLI::App &app);
void addDoctor(CLI::App &app);

// Templates and tables that belong to this gdnc: share/gdnc beside the folder it runs from.
std::filesystem::path dataFolder();
std::filesystem::path templateFile(const std::string &name); // "forward", "plan"

void writeFile(const std::filesystem::path &path, const std::string &bytes);

} // namespace gdnc
