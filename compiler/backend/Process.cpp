#include "compiler/backend/Process.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace gdnc {

static std::string readAll(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(descriptor, buffer, sizeof buffer)) != 0;) {
    if (n > 0)
      text.append(buffer, n);
    else if (errno != EINTR)
      break;
  }
  return text;
}

static int waitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ProcessResult run(const std::vector<std::string> &command, const std::string &folder) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC))
    return {-1, std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child;
  int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProcessResult result;
  if (error) {
    result = {-1, std::strerror(error)};
  } else {
    result.output = readAll(ends[0]);
    result.status = waitFor(child);
  }
  close(ends[0]);
  return result;
}

std::string quoted(const std::vector<std::string> &command) {
  std::string text;
  for (const std::string &argument : command) {
    if (!text.empty())
      text += ' ';
    bool plain = argument.find_first_not_of(
                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == std::string::npos;
    if (plain && !argument.empty()) {
      text += argument;
      continue;
    }
    text += '\'';
    for (char c : argument)
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

} // namespace gdnc
