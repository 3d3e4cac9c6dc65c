#include "compiler/backend/Assemble.h"
#include "compiler/backend/Process.h"
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

// Template line of a line of PTX: that of the closest comment before it which inline assembly leads with.
std::string templateLine(const std::string &ptx, unsigned line) {
  std::istringstream lines(ptx);
  std::string text, found;
  for (unsigned n = 0; n < line && std::getline(lines, text); ++n)
    if (text.starts_with("\t// ") || text.starts_with("// ")) {
      std::string comment = text.substr(text.find("// ") + 3);
      if (size_t colon = comment.rfind(':'); colon != std::string::npos && colon + 1 < comment.size() &&
                                             comment.find_first_not_of("0123456789", colon + 1) == std::string::npos)
        found = comment;
    }
  return found;
}

// A message of ptxas that tells a line of PTX, with the template's line behind it.
std::string withTemplateLine(const std::string &message, const std::string &ptx) {
  size_t at = message.find(" line ");
  unsigned line;
  if (at == std::string::npos || std::sscanf(message.c_str() + at, " line %u", &line) != 1)
    return message;
  std::string place = templateLine(ptx, line);
  return place.empty() ? message : message + " [" + place + "]";
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

// What makes a kernel that ptxas accepted a failure all the same.
std::vector<std::string> complaints(const Report &report) {
  std::vector<std::string> found = report.advisories;
  if (report.spillBytes)
    found.push_back("expected no spills, got " + std::to_string(report.spillBytes) + " bytes");
  if (report.stackBytes)
    found.push_back("expected no stack frame, got " + std::to_string(report.stackBytes) + " bytes");
  return found;
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

void describeFailure(Assembly &result, const std::vector<std::string> &found, const std::string &ptx,
                     const std::string &entry, const std::string &source, const std::string &ptxas,
                     const Target &target) {
  for (const std::string &complaint : found)
    result.error += source + ": error: kernel '" + entry + "': " + withTemplateLine(complaint, ptx) + "\n";
  fs::path kept = keptFile(ptx, entry);
  if (!writeFile(kept, ptx))
    return;
  result.report.command = quoted(ptxasCommand(ptxas, target, kept.string()));
  result.error += source + ": note: reproduce with: " + result.report.command + "\n";
}

} // namespace

Assembly assemble(const std::string &ptx, const std::string &entry, const std::string &source, const Target &target) {
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
  std::vector<std::string> found;
  if (process.status != 0) {
    std::istringstream lines(process.output);
    for (std::string line; std::getline(lines, line);)
      found.push_back(line);
    found.push_back("ptxas ended with status " + std::to_string(process.status));
  } else {
    found = complaints(result.report);
  }
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
