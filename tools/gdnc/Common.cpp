#include "tools/gdnc/Common.h"
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace gdnc;
namespace fs = std::filesystem;

fs::path gdnc::dataFolder() {
  fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "share/gdnc";
  if (!fs::is_directory(folder / "templates") || !fs::is_directory(folder / "coefs"))
    throw Failure(EnvironmentError, "expected the folders templates and coefs in \"{}\"", folder.string());
  return folder;
}

fs::path gdnc::templateFile(const std::string &name) {
  // Resolved, so that in a build tree messages name the source file.
  fs::path file = fs::weakly_canonical(dataFolder() / "templates" / name);
  file += name == "plan" ? ".cu" : ".mlir";
  return file;
}

void gdnc::writeFile(const fs::path &path, const std::string &bytes) {
  // Written aside and renamed: whoever reads the file meanwhile has the old or the new one, never half of it.
  fs::path aside = path;
  aside += fmt::format(".{}.tmp", getpid());
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code error;
  if (file) {
    fs::rename(aside, path, error);
    if (!error)
      return;
  } else {
    error = std::error_code(errno, std::generic_category());
  }
  std::error_code ignored;
  fs::remove(aside, ignored);
  throw Failure(EnvironmentError, "cannot write \"{}\": {}", path.string(), error.message());
}
