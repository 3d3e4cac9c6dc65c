// Bundles (.gdnb): writing, reading, checking.
#pragma once
#include "cubin.h"
#include "kernel.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdn {

struct BundleError {
  enum Kind { Corrupt, Version, Kernel } kind; // Kernel: the writer refuses one
  std::string text;
};

// A value or an error.
template <typename T> class BundleResult {
public:
  BundleResult(T value) : value_(std::move(value)) {}
  BundleResult(BundleError error) : error_(std::move(error)) {}
  explicit operator bool() const { return value_.has_value(); }
  T &operator*() { return *value_; }
  T *operator->() { return &*value_; }
  const BundleError &error() const { return error_; }

private:
  std::optional<T> value_;
  BundleError error_{};
};

struct BundleImage {
  std::string_view bytes;
  uint64_t hash;
  bool intact() const; // whether the bytes have the hash
};

struct BundleKernel {
  Kernel kernel; // `cubin` and `ptx` are left empty: see below
  BundleImage cubin;
  std::optional<BundleImage> ptx;
  CubinInfo elf; // of `cubin`
};

// A parsed bundle; images and metadata lie in the bytes it was parsed from.
struct Bundle {
  const char *metadata;              // JSON, NUL-terminated
  uint64_t hash;                     // of the content
  std::vector<BundleKernel> kernels; // sorted by key
  std::string_view bytes;

  // Checks what parsing does not: the bytes of the images. Returns "" or what is wrong.
  std::string verify() const;
};

// Checks every offset, size and count, and the hash of all but the images, whose hashes BundleImage::intact and verify
// check.
BundleResult<Bundle> parseBundle(std::string_view bytes);

// The bundle's bytes: a function of the set of kernels (in any order) and of the metadata. Refuses two kernels of one
// key, images that are not for their key's architecture, and what the reader would refuse.
BundleResult<std::string> writeBundle(const std::vector<Kernel> &kernels, std::string_view metadataJson);

// Returns "" or what is wrong with all of a kernel but its images.
std::string checkKernel(const Kernel &kernel);

const char *describe(ElementType type);     // "bf16"
std::string describeFeatures(uint8_t bits); // " l2norm"; "" for none
std::string describe(const KernelKey &key); // "forward sm_90a K=128 V=128 chunk=64 bf16 k-first split=1"

// Limits that the launcher relies on.
inline constexpr size_t maxParams = 64, maxParamBytes = 4096;

} // namespace gdn
