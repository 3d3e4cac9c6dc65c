#include "tools/gdnc/Cache.h"
#include "runtime/format/bundle.h"
#include "tools/gdnc/Common.h"
#include <cstdlib>

using namespace gdnc;
namespace fs = std::filesystem;

Cache Cache::standard() {
  if (const char *folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return Cache(fs::path(folder) / "gdnc");
  if (const char *home = std::getenv("HOME"); home && *home)
    return Cache(fs::path(home) / ".cache/gdnc");
  throw Failure(EnvironmentError, "expected XDG_CACHE_HOME or HOME to say where the cache is; --no-cache does without");
}

std::optional<gdn::Kernel> Cache::load(const std::string &name, const gdn::KernelKey &key) const {
  fs::path path = folder / name;
  if (!fs::is_regular_file(path))
    return std::nullopt;
  std::string bytes = readFile(path.string());
  gdn::BundleResult<gdn::Bundle> bundle = gdn::parseBundle(bytes);
  if (!bundle || !bundle->verify().empty() || bundle->kernels.size() != 1 || bundle->kernels[0].kernel.key != key)
    return std::nullopt;
  const gdn::BundleKernel &entry = bundle->kernels[0];
  gdn::Kernel kernel = entry.kernel;
  kernel.cubin = entry.cubin.bytes;
  if (entry.ptx)
    kernel.ptx = entry.ptx->bytes;
  return kernel;
}

void Cache::store(const std::string &name, const gdn::Kernel &kernel) const {
  gdn::BundleResult<std::string> bytes = gdn::writeBundle({kernel}, "{}");
  if (!bytes)
    throw Failure(CompileError, "{}", bytes.error().text);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Failure(EnvironmentError, "cannot create \"{}\": {}; --no-cache does without", folder.string(),
                  error.message());
  writeFile(folder / name, *bytes);
}
