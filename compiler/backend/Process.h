// Runs a program and reads what it prints.
#pragma once
#include <string>
#include <vector>

namespace gdnc {

struct ProcessResult {
  int status = 0;     // exit code; 128 + signal where one ended it; -1 where it could not be started
  std::string output; // standard output and error together, or why it could not be started
};

// No shell: arguments reach the program as they are. It runs in `folder`, with nothing on standard input.
ProcessResult run(const std::vector<std::string> &command, const std::string &folder);

// A command line that a shell reads back as these arguments.
std::string quoted(const std::vector<std::string> &command);

} // namespace gdnc
