#include "compiler/backend/Toolkit.h"
#include "compiler/backend/Process.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <sstream>
#include <unistd.h>
namespace fs = std::filesystem;

namespace gdnc {

static std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

// bin folders of the toolkit's wheels in virtual environments beside or above this program, sorted.
static std::vector<fs::path> wheelFolders() {
  std::vector<fs::path> folders;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    for (const fs::directory_entry &python : fs::directory_iterator(folder / ".venv" / "lib", error))
      for (const fs::directory_entry &wheel : fs::directory_iterator(python.path() / "site-packages" / "nvidia", error))
        if (fs::is_directory(wheel.path() / "bin", error) || fs::is_directory(wheel.path() / "lib", error))
          folders.push_back(wheel.path() / "bin");
  std::sort(folders.begin(), folders.end());
  return folders;
}

static std::vector<fs::path> toolkitFolders() {
  std::vector<fs::path> folders;
  if (std::string home = environment("CUDA_HOME"); !home.empty())
    folders.push_back(fs::path(home) / "bin");
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');)
    if (!folder.empty())
      folders.push_back(folder);
  folders.push_back("/usr/local/cuda/bin");
  for (fs::path &folder : wheelFolders())
    folders.push_back(std::move(folder));
  return folders;
}

// Every program of this name, in the order of the search; only the one that `variable` names where that is set.
static std::vector<std::string> candidates(const std::string &name, const char *variable) {
  if (std::string given = environment(variable); !given.empty())
    return {given};
  std::vector<std::string> found;
  for (const fs::path &folder : toolkitFolders()) {
    std::error_code error;
    std::string path = fs::absolute(folder / name, error).string(); // ptxas runs in another folder
    if (access(path.c_str(), X_OK) == 0 && std::find(found.begin(), found.end(), path) == found.end())
      found.push_back(path);
  }
  return found;
}

// From "Cuda compilation tools, release 13.0, V13.0.88".
static std::optional<Tool> readVersion(const std::string &path) {
  ProcessResult result = run({path, "--version"}, "/");
  size_t at = result.output.rfind(", V");
  Tool tool{path, {}, {}};
  if (result.status != 0 || at == std::string::npos ||
      std::sscanf(result.output.c_str() + at, ", V%u.%u", &tool.version.major, &tool.version.minor) != 2)
    return std::nullopt;
  std::istringstream(result.output.substr(at + 3)) >> tool.versionText;
  return tool;
}

ToolSearch findPtxas(Version atLeast) {
  std::string seen;
  for (const std::string &path : candidates("ptxas", "GDNC_PTXAS")) {
    std::optional<Tool> tool = readVersion(path);
    if (tool && tool->version >= atLeast)
      return {tool, ""};
    seen += "\n  " + path + (tool ? ": version " + tool->versionText : ": does not tell its version");
  }
  std::string wanted = "expected ptxas " + atLeast.text() + " or newer, got ";
  return {std::nullopt,
          seen.empty() ? wanted + "none in $CUDA_HOME/bin, PATH, /usr/local/cuda/bin and .venv; $GDNC_PTXAS names one"
                       : wanted + "only" + seen};
}

ToolSearch findDisassembler() {
  for (const char *name : {"nvdisasm", "cuobjdump"})
    for (const std::string &path : candidates(name, "GDNC_NVDISASM"))
      if (std::optional<Tool> tool = readVersion(path))
        return {tool, ""};
  return {std::nullopt, "expected nvdisasm or cuobjdump of the CUDA toolkit, got neither in $CUDA_HOME/bin, PATH, "
                        "/usr/local/cuda/bin and "
                        ".venv; $GDNC_NVDISASM names one"};
}

// The version that a library tells, if it is NVRTC.
static std::optional<Tool> readNvrtc(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_LAZY);
  auto version = library ? reinterpret_cast<int (*)(int *, int *)>(dlsym(library, "nvrtcVersion")) : nullptr;
  int major = 0, minor = 0;
  if (!version || version(&major, &minor) != 0)
    return std::nullopt;
  Tool tool{path, {static_cast<unsigned>(major), static_cast<unsigned>(minor)}, {}};
  tool.versionText = tool.version.text();
  return tool;
}

ToolSearch findNvrtc() {
  std::vector<std::string> paths;
  const std::string names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  if (std::string given = environment("GDNC_NVRTC"); !given.empty()) {
    paths = {given};
  } else {
    for (const fs::path &folder : toolkitFolders())
      for (const char *lib : {"lib64", "lib"})
        for (const std::string &name : names)
          if (std::error_code error; fs::exists(folder.parent_path() / lib / name, error))
            paths.push_back(folder.parent_path() / lib / name);
    paths.insert(paths.end(), std::begin(names), std::end(names));
  }
  for (const std::string &path : paths)
    if (std::optional<Tool> tool = readNvrtc(path))
      return {tool, ""};
  return {std::nullopt,
          "expected NVRTC (libnvrtc.so.13 or libnvrtc.so.12), got none in the lib folders beside "
          "$CUDA_HOME/bin, PATH and /usr/local/cuda/bin, .venv and the library path; $GDNC_NVRTC names one"};
}

} // namespace gdnc
