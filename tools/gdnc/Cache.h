// Compiled kernels on disk, by content: an entry's name is the hash of everything that decides a kernel, and the entry
// is a bundle of that one kernel.
#pragma once
#include "runtime/format/kernel.h"
#include <filesystem>
#include <optional>

namespace gdnc {

class Cache {
public:
  // $XDG_CACHE_HOME/gdnc, or ~/.cache/gdnc. Throws Failure where neither variable is set.
  static Cache standard();

  explicit Cache(std::filesystem::path folder) : folder(std::move(folder)) {}

  // A damaged entry counts as none.
  std::optional<gdn::Kernel> load(const std::string &name, const gdn::KernelKey &key) const;
  void store(const std::string &name, const gdn::Kernel &kernel) const;

private:
  std::filesystem::path folder;
};

} // namespace gdnc
