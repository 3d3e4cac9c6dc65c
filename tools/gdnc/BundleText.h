// Bundles as people and scripts read them.
#pragma once
#include "runtime/format/bundle.h"
#include "tools/gdnc/Table.h"
#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace gdnc {

// A bundle's bytes with what was parsed from them; the latter points into the former.
struct LoadedBundle {
  std::string bytes;
  gdn::Bundle bundle;
};

// Both throw Failure where the bytes are no bundle; `path` is named in messages.
std::unique_ptr<LoadedBundle> parseLoaded(std::string bytes, const std::string &path);
std::unique_ptr<LoadedBundle> loadBundle(const std::string &path);

// Bytes of machine code in an ELF image; 0 where it is none.
uint64_t codeBytes(std::string_view image);

// What loads every image: "CUDA 13.0 (driver 580 or newer)".
std::string driverNeeded(const gdn::Bundle &bundle);

// "l2norm"; "-" for none.
std::string featureText(const gdn::KernelKey &key);

nlohmann::json kernelJson(const gdn::BundleKernel &kernel);

extern const TableRow kernelHead;
TableRow kernelRow(const gdn::BundleKernel &kernel);

} // namespace gdnc
