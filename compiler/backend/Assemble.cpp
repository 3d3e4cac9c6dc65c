#include "compiler/backend/Assemble.h"
#include "compiler/backend/Process.h"
#include "compiler/backend/TemplateLines.h"
#include "compiler/backend/Toolkit.h"
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <unistd.h>
namespace fs = std::filesystem;

namespace gdnc {
namespace {

std::string temporaryRoot() {
  const char *folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

// A folder that is gone with its scope. Files in it have fixed names, so that nothing printed or recorded depends on
// the folder.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name = temporaryRoot() + "/gdnc-XXXXXX";
    if (mkdtemp(name.data()))
      path = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path.empty())
      fs::remove_all(path, error);
  }
  std::string path; // empty where none could be made
};

bool writeFile(const fs::path &path, const std::string &bytes) {
  std::ofstream file(path, std::ios::binary);
  return bool(file.write(bytes.data(), bytes.size()).flush());
}

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Assembly environmentFailure(const std::string &error) {
  Assembly result;
  result.environmentError = true;
  result.error = "error: " + error + "\n";
  return result;
}

// A message with the places that it is about, the first few of them.
std::string withPlaces(const std::string &message, const std::vector<std::string> &places) {
  constexpr size_t most = 5;
  std::string list;
  for (size_t i = 0; i < places.size() && i < most; ++i)
    list += (i ? ", " : "") + places[i];
  if (places.size() > most)
    list += ", ...";
  return list.empty() ? message : message + " [" + list + "]";
}

// What a message of ptxas is about: the line of PTX that it tells, else the instruction that it speaks of.
std::string traced(const std::string &message, const std::string &ptx) {
  size_t at = message.find(" line ");
  if (unsigned line; at != std::string::npos && std::sscanf(message.c_str() + at, " line %u", &line) == 1) {
    std::vector<std::string> lines = templateLines(ptx);
    return 0 < line && line <= lines.size() ? withPlaces(message, {lines[line - 1]}) : message;
  }
  for (const char *instruction : {"wgmma.mma_async", "setmaxnreg"})
    if (message.find(instruction) != std::string::npos)
      return withPlaces(message, linesOfInstruction(ptx, instruction));
  return message;
}

void readReport(Report &report) {
  std::istringstream lines(report.log);
  for (std::string line; std::getline(lines, line);) {
    uint32_t stack, stores, loads, registers;
    if (std::sscanf(line.c_str(), " %u bytes stack frame, %u bytes spill stores, %u bytes spill loads", &stack, &stores,
                    &loads) == 3) {
      report.stackBytes += stack;
      report.spillBytes += stores + loads;
    } else if (size_t used = line.find(": Used ");
               used != std::string::npos && std::sscanf(line.c_str() + used, ": Used %u registers", &registers) == 1) {
      report.registers = registers;
    } else if (line.find("(C75") != std::string::npos) {
      report.advisories.push_back(line);
    }
  }
}

// Where the PTX of a failure is kept: the same place for the same PTX, so that repeated failures do not pile up.
fs::path keptFile(const std::string &ptx, const std::string &entry) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016zx", std::hash<std::string>()(ptx));
  return fs::path(temporaryRoot()) / ("gdnc-" + entry + "-" + hash + ".ptx");
}

std::vector<std::string> ptxasCommand(const std::string &ptxas, const Target &target, const std::string &input) {
  return {ptxas,           "--gpu-name=" + std::string(target.arch),
          "--opt-level=3", "--verbose",
          input,           "--output-file=kernel.cubin"};
}

// Template lines whose values ptxas keeps on the stack. A second run tells them: line information would change a cubin
// that is kept.
std::vector<std::string> stackLines(std::vector<std::string> command, const std::string &folder,
                                    const std::string &ptx) {
  command.push_back("--generate-line-info");
  run(command, folder);
  return linesOfStackUse(readFile(fs::path(folder) / "kernel.cubin"), ptx);
}

// What ptxas refuses; or what makes a kernel that it accepted a failure all the same.
std::vector<std::string> complaints(const ProcessResult &process, const Report &report,
                                    const std::vector<std::string> &command, const std::string &folder,
                                    const std::string &ptx, bool maySpill) {
  std::vector<std::string> found;
  if (process.status != 0) {
    std::istringstream lines(process.output);
    for (std::string line; std::getline(lines, line);)
      found.push_back(traced(line, ptx));
    found.push_back("ptxas ended with status " + std::to_string(process.status));
    return found;
  }
  for (const std::string &advisory : report.advisories)
    found.push_back(traced(advisory, ptx));
  if (!maySpill && (report.spillBytes || report.stackBytes))
    found.push_back(withPlaces("expected no spills and no stack frame, got " + std::to_string(report.spillBytes) +
                                   " and " + std::to_string(report.stackBytes) + " bytes",
                               stackLines(command, folder, ptx)));
  return found;
}

void describeFailure(Assembly &result, const std::vector<std::string> &found, const std::string &ptx,
                     const std::string &entry, const std::string &source, const std::string &ptxas,
                     const Target &target) {
  for (const std::string &complaint : found)
    result.error += source + ": error: kernel '" + entry + "': " + complaint + "\n";
  fs::path kept = keptFile(ptx, entry);
  if (!writeFile(kept, ptx))
    return;
  result.report.command = quoted(ptxasCommand(ptxas, target, kept.string()));
  result.error += source + ": note: reproduce with: " + result.report.command + "\n";
}

} // namespace

Assembly assemble(const std::string &ptx, const std::string &entry, const std::string &source, const Target &target,
                  bool maySpill) {
  ToolSearch search = findPtxas(target.ptxas);
  if (!search.tool)
    return environmentFailure(search.error + " (for " + std::string(target.arch) + ")");
  TemporaryFolder folder;
  if (folder.path.empty() || !writeFile(fs::path(folder.path) / "kernel.ptx", ptx))
    return environmentFailure("cannot write to the temporary folder '" + temporaryRoot() + "'");
  Assembly result;
  std::vector<std::string> command = ptxasCommand(search.tool->path, target, "kernel.ptx");
  ProcessResult process = run(command, folder.path);
  result.report.log = process.output;
  result.report.command = quoted(command);
  result.report.ptxasVersion = search.tool->versionText;
  readReport(result.report);
  std::vector<std::string> found = complaints(process, result.report, command, folder.path, ptx, maySpill);
  result.ok = found.empty();
  if (!result.ok)
    describeFailure(result, found, ptx, entry, source, search.tool->path, target);
  else
    result.output = readFile(fs::path(folder.path) / "kernel.cubin");
  return result;
}

Assembly disassemble(const std::string &cubin) {
  ToolSearch search = findDisassembler();
  if (!search.tool)
    return environmentFailure(search.error);
  TemporaryFolder folder;
  if (folder.path.empty() || !writeFile(fs::path(folder.path) / "kernel.cubin", cubin))
    return environmentFailure("cannot write to the temporary folder '" + temporaryRoot() + "'");
  bool cuobjdump = fs::path(search.tool->path).filename() == "cuobjdump";
  ProcessResult process = run({search.tool->path, cuobjdump ? "-sass" : "--print-code", "kernel.cubin"}, folder.path);
  if (process.status != 0)
    return environmentFailure(search.tool->path + " ended with status " + std::to_string(process.status) + ": " +
                              process.output);
  Assembly result;
  result.ok = true;
  result.output = process.output;
  return result;
}

} // namespace gdnc
