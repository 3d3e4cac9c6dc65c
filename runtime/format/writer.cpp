#include "bundle.h"
#include "hash.h"
#include "layout.h"
#include <algorithm>
#include <cstring>
#include <map>

namespace gdn {
namespace {

using namespace layout;

// Strings by content, in order; offsets are known once all are in.
class StringTable {
public:
  void add(std::string_view text) { offsets_.emplace(text, 0); }
  void place() {
    for (auto &[text, offset] : offsets_) {
      offset = static_cast<uint32_t>(bytes_.size());
      bytes_.append(text).push_back('\0');
    }
  }
  StringRef operator[](std::string_view text) const {
    return {offsets_.find(text)->second, static_cast<uint32_t>(text.size())};
  }
  const std::string &bytes() const { return bytes_; }

private:
  std::map<std::string, uint32_t, std::less<>> offsets_;
  std::string bytes_;
};

class ImageTable {
public:
  uint32_t add(std::string_view bytes) {
    auto [it, isNew] = index_.emplace(bytes, static_cast<uint32_t>(images_.size()));
    if (isNew)
      images_.push_back(bytes);
    return it->second;
  }
  const std::vector<std::string_view> &images() const { return images_; }

private:
  std::map<std::string_view, uint32_t> index_;
  std::vector<std::string_view> images_;
};

uint64_t alignUp(uint64_t value) { return (value + imageAlignment - 1) / imageAlignment * imageAlignment; }

template <typename T> void append(std::string &out, const T &record) {
  out.append(reinterpret_cast<const char *>(&record), sizeof record);
}

std::string checkImage(const Kernel &kernel) {
  CubinInfo info;
  if (std::string error = readCubin(kernel.cubin, info); !error.empty())
    return "image: " + error;
  if (info.sm != smNumber(kernel.key.arch))
    return "image: expected code for " + kernel.key.arch + ", got code for sm_" + std::to_string(info.sm);
  return "";
}

std::optional<BundleError> check(const std::vector<const Kernel *> &sorted) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    std::string error = checkKernel(*sorted[i]);
    if (error.empty())
      error = checkImage(*sorted[i]);
    if (error.empty() && i > 0 && sorted[i - 1]->key == sorted[i]->key)
      error = "expected one kernel of this key, got two";
    if (!error.empty())
      return BundleError{BundleError::Kernel, describe(sorted[i]->key) + ": " + error};
  }
  return std::nullopt;
}

ParamRecord record(const KernelParam &param, const StringTable &strings) {
  ParamRecord out{};
  out.name = strings[param.name];
  out.columns = param.columns;
  out.boxColumns = param.boxColumns;
  out.boxRows = param.boxRows;
  out.kind = static_cast<uint8_t>(param.kind);
  out.axis = param.axis;
  out.element = static_cast<uint8_t>(param.element);
  return out;
}

KernelRecord record(const Kernel &kernel, const StringTable &strings, ImageTable &images, uint32_t firstParam) {
  KernelRecord out{};
  out.operation = strings[kernel.key.operation];
  out.arch = strings[kernel.key.arch];
  out.entry = strings[kernel.entry];
  out.schedule = strings[kernel.schedule];
  out.keyDim = kernel.key.keyDim;
  out.valueDim = kernel.key.valueDim;
  out.chunk = kernel.key.chunk;
  out.split = kernel.key.split;
  out.firstParam = firstParam;
  out.params = static_cast<uint32_t>(kernel.params.size());
  out.threads = kernel.threads;
  out.sharedBytes = kernel.sharedBytes;
  out.registers = kernel.registers;
  out.spillBytes = kernel.spillBytes;
  out.stackBytes = kernel.stackBytes;
  out.workspaceBytes = kernel.workspaceBytes;
  out.cubin = images.add(kernel.cubin);
  out.ptx = kernel.ptx.empty() ? noImage : images.add(kernel.ptx);
  out.io = static_cast<uint8_t>(kernel.key.io);
  out.stateVFirst = kernel.key.stateVFirst;
  out.profile = kernel.key.profile;
  out.features = kernel.key.features;
  return out;
}

StringTable collectStrings(const std::vector<const Kernel *> &kernels, std::string_view metadata) {
  StringTable strings;
  strings.add(metadata);
  for (const Kernel *kernel : kernels) {
    for (std::string_view text : {kernel->key.operation, kernel->key.arch, kernel->entry, kernel->schedule})
      strings.add(text);
    for (const KernelParam &param : kernel->params)
      strings.add(param.name);
  }
  strings.place();
  return strings;
}

} // namespace

BundleResult<std::string> writeBundle(const std::vector<Kernel> &kernels, std::string_view metadataJson) {
  std::vector<const Kernel *> sorted;
  for (const Kernel &kernel : kernels)
    sorted.push_back(&kernel);
  std::sort(sorted.begin(), sorted.end(), [](const Kernel *a, const Kernel *b) { return a->key < b->key; });
  if (std::optional<BundleError> error = check(sorted))
    return *error;

  StringTable strings = collectStrings(sorted, metadataJson);
  ImageTable images;
  std::string kernelRecords, paramRecords, imageRecords;
  uint32_t params = 0;
  for (const Kernel *kernel : sorted) {
    append(kernelRecords, record(*kernel, strings, images, params));
    for (const KernelParam &param : kernel->params)
      append(paramRecords, record(param, strings));
    params += static_cast<uint32_t>(kernel->params.size());
  }

  size_t imageCount = images.images().size();
  uint64_t end = sizeof(Header) + imageCount * sizeof(ImageRecord) + kernelRecords.size() + paramRecords.size() +
                 strings.bytes().size();
  for (std::string_view image : images.images()) {
    append(imageRecords, ImageRecord{alignUp(end), image.size(), fnv1a(image)});
    end = alignUp(end) + image.size();
  }

  std::string content = imageRecords + kernelRecords + paramRecords + strings.bytes();
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = version;
  header.images = static_cast<uint32_t>(imageCount);
  header.kernels = static_cast<uint32_t>(sorted.size());
  header.params = params;
  header.stringBytes = static_cast<uint32_t>(strings.bytes().size());
  header.metadata = strings[metadataJson];
  header.totalBytes = end;
  header.hash = fnv1a(content);

  std::string out;
  append(out, header);
  out += content;
  for (std::string_view image : images.images()) {
    out.resize(alignUp(out.size()));
    out += image;
  }
  if (BundleResult<Bundle> read = parseBundle(out); !read) // a zero byte within a string, for one
    return BundleError{BundleError::Kernel, read.error().text};
  return out;
}

} // namespace gdn
