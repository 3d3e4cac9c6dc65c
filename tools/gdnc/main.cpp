#include "tools/gdnc/Common.h"
#include "tools/gdnc/Version.h"
#include <CLI/CLI.hpp>

using namespace gdnc;

std::string gdnc::versionText() {
  if (!*commit)
    return fmt::format("{} (not from git)", version);
  return fmt::format("{} ({}{})", version, commit, modified ? ", modified" : "");
}

static int fail(ExitCode code, std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '.'))
    text.pop_back();
  fflush(stdout); // in the order of events where both go to one place
  fmt::print(stderr, "gdnc: error: {}\n", text);
  return code;
}

static int failParse(const CLI::ParseError &error) {
  std::string text = error.what();
  if (!text.empty())
    text[0] = static_cast<char>(tolower(static_cast<unsigned char>(text[0])));
  return fail(UsageError, text + "; try --help");
}

int main(int argc, char **argv) {
  CLI::App app("gdnc: an ahead-of-time compiler for Gated DeltaNet kernels");
  app.require_subcommand(1);
  addBuild(app);
  addCompile(app);
  addInspect(app);
  addDiff(app);
  addList(app);
  addDoctor(app);
  app.add_subcommand("version", "print the version")->callback([] { fmt::print("gdnc {}\n", versionText()); });
  app.footer("exit codes: 0 ok, 1 compile error, 2 usage, 3 environment, 4 check mismatch");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return error.get_exit_code() == 0 ? app.exit(error) : failParse(error);
  } catch (const ConfigError &error) {
    return fail(UsageError, error.what());
  } catch (const Failure &error) {
    return fail(error.code, error.what());
  } catch (const std::exception &error) { // out of memory, a file system's refusal
    return fail(EnvironmentError, error.what());
  }
  return Success;
}
