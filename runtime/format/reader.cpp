#include "bundle.h"
#include "hash.h"
#include "layout.h"
#include <algorithm>
#include <cstring>

namespace gdn {
namespace {

using namespace layout;

// Reads the sections of a bundle one after the other; the first failure is kept.
class Parser {
public:
  explicit Parser(std::string_view bytes) : bytes_(bytes) {}

  BundleResult<Bundle> parse() {
    Bundle bundle;
    bundle.bytes = bytes_;
    if (readHeader() && readSections() && readImages() && readKernels(bundle) &&
        text(header_.metadata, "metadata", metadata_)) {
      bundle.metadata = metadata_.data();
      bundle.hash = header_.hash;
      return bundle;
    }
    return error_;
  }

private:
  bool fail(std::string text, BundleError::Kind kind = BundleError::Corrupt) {
    error_ = {kind, std::move(text)};
    return false;
  }
  bool mismatch(const std::string &what, const std::string &expected, uint64_t got) {
    return fail(what + ": expected " + expected + ", got " + std::to_string(got));
  }

  bool readHeader() {
    if (bytes_.size() < sizeof(Header))
      return fail("expected a header of " + std::to_string(sizeof(Header)) + " bytes, got " +
                  std::to_string(bytes_.size()) + " bytes");
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    if (std::memcmp(header_.magic, magic, sizeof magic) != 0)
      return fail("expected a bundle, got other leading bytes");
    if (header_.version != version)
      return fail("expected format version " + std::to_string(version) + ", got " + std::to_string(header_.version),
                  BundleError::Version);
    if (header_.totalBytes != bytes_.size())
      return fail("expected " + std::to_string(header_.totalBytes) + " bytes as the header says, got " +
                  std::to_string(bytes_.size()));
    if (header_.reserved != 0)
      return mismatch("reserved field of the header", "0", header_.reserved);
    return true;
  }

  // Cuts the tables off the file, in their order, and checks their hash.
  bool readSections() {
    std::string_view rest = bytes_.substr(sizeof(Header));
    auto cut = [&](const char *what, uint64_t count, uint64_t size, std::string_view &section) {
      if (count > rest.size() / size)
        return mismatch(what, "at most " + std::to_string(rest.size() / size) + " in a file of this size", count);
      section = rest.substr(0, count * size);
      rest.remove_prefix(count * size);
      return true;
    };
    if (!cut("images", header_.images, sizeof(ImageRecord), imageRecords_) ||
        !cut("kernels", header_.kernels, sizeof(KernelRecord), kernelRecords_) ||
        !cut("parameters", header_.params, sizeof(ParamRecord), paramRecords_) ||
        !cut("string bytes", header_.stringBytes, 1, strings_))
      return false;
    tablesEnd_ = bytes_.size() - rest.size();
    uint64_t hash = fnv1a(bytes_.substr(sizeof(Header), tablesEnd_ - sizeof(Header)));
    return hash == header_.hash || mismatch("hash of the tables", std::to_string(header_.hash), hash);
  }

  bool readImages() {
    uint64_t end = tablesEnd_;
    for (size_t i = 0; i < header_.images; ++i) {
      auto record = at<ImageRecord>(imageRecords_, i);
      std::string what = "image " + std::to_string(i);
      uint64_t start = (end + imageAlignment - 1) / imageAlignment * imageAlignment;
      if (record.offset != start)
        return mismatch(what + " offset", std::to_string(start), record.offset);
      if (start > bytes_.size() || record.size > bytes_.size() - start)
        return mismatch(what + " size",
                        "at most " + std::to_string(bytes_.size() - std::min(start, uint64_t(bytes_.size()))),
                        record.size);
      if (bytes_.substr(end, start - end).find_first_not_of('\0') != bytes_.npos)
        return fail(what + ": expected zeros in front of it, got other bytes");
      images_.push_back({bytes_.substr(record.offset, record.size), record.hash});
      end = start + record.size;
    }
    return end == bytes_.size() || mismatch("file size", std::to_string(end), bytes_.size());
  }

  bool readKernels(Bundle &bundle) {
    uint64_t params = 0;
    for (size_t i = 0; i < header_.kernels; ++i) {
      auto record = at<KernelRecord>(kernelRecords_, i);
      std::string what = "kernel " + std::to_string(i);
      BundleKernel kernel;
      if (record.firstParam != params)
        return mismatch(what + " first parameter", std::to_string(params), record.firstParam);
      if (record.params > header_.params - params)
        return mismatch(what + " parameters", "at most " + std::to_string(header_.params - params), record.params);
      params += record.params;
      if (!readKernel(record, what, kernel.kernel) || !attachImages(record, what, kernel))
        return false;
      if (i > 0 && !(bundle.kernels.back().kernel.key < kernel.kernel.key))
        return fail(what + ": expected kernels sorted by key, got '" + describe(kernel.kernel.key) + "' behind '" +
                    describe(bundle.kernels.back().kernel.key) + "'");
      bundle.kernels.push_back(std::move(kernel));
    }
    if (imagesUsed_ != header_.images)
      return mismatch("images of all kernels", std::to_string(header_.images), imagesUsed_);
    return params == header_.params || mismatch("parameters of all kernels", std::to_string(header_.params), params);
  }

  bool readKernel(const KernelRecord &record, const std::string &what, Kernel &out) {
    if (!text(record.operation, what + " operation", out.key.operation) ||
        !text(record.arch, what + " arch", out.key.arch) || !text(record.entry, what + " entry", out.entry) ||
        !text(record.schedule, what + " schedule", out.schedule))
      return false;
    if (record.stateVFirst > 1 || record.profile > 1)
      return fail(what + ": expected flags of 0 or 1, got others");
    out.key.keyDim = record.keyDim;
    out.key.valueDim = record.valueDim;
    out.key.chunk = record.chunk;
    out.key.split = record.split;
    out.key.io = static_cast<ElementType>(record.io);
    out.key.stateVFirst = record.stateVFirst;
    out.key.profile = record.profile;
    out.key.features = record.features;
    out.threads = record.threads;
    out.sharedBytes = record.sharedBytes;
    out.registers = record.registers;
    out.spillBytes = record.spillBytes;
    out.stackBytes = record.stackBytes;
    out.workspaceBytes = record.workspaceBytes;
    if (record.params > maxParams)
      return mismatch(what + " parameters", "at most " + std::to_string(maxParams), record.params);
    for (size_t i = 0; i < record.params; ++i)
      if (!readParam(at<ParamRecord>(paramRecords_, record.firstParam + i), what, out.params.emplace_back()))
        return false;
    std::string error = checkKernel(out);
    return error.empty() || fail(what + ": " + error);
  }

  bool readParam(const ParamRecord &record, const std::string &what, KernelParam &out) {
    if (record.reserved != 0)
      return mismatch(what + " reserved byte of a parameter", "0", record.reserved);
    out.kind = static_cast<KernelParam::Kind>(record.kind);
    out.axis = record.axis;
    out.element = static_cast<ElementType>(record.element);
    out.columns = record.columns;
    out.boxColumns = record.boxColumns;
    out.boxRows = record.boxRows;
    return text(record.name, what + " parameter name", out.name);
  }

  // Images are numbered by first use, so that none goes unused.
  bool useImage(uint32_t index, const std::string &what) {
    uint64_t limit = std::min<uint64_t>(imagesUsed_ + 1, images_.size());
    if (index >= limit)
      return mismatch(what + " image", "below " + std::to_string(limit), index);
    imagesUsed_ = std::max(imagesUsed_, index + 1);
    return true;
  }

  // Looks at the ELF header only: the image's hash is checked when it is used.
  bool attachImages(const KernelRecord &record, const std::string &what, BundleKernel &out) {
    if (!useImage(record.cubin, what) || (record.ptx != noImage && !useImage(record.ptx, what)))
      return false;
    out.cubin = images_[record.cubin];
    if (record.ptx != noImage)
      out.ptx = images_[record.ptx];
    if (std::string error = readCubin(out.cubin.bytes, out.elf); !error.empty())
      return fail(what + " image: " + error);
    if (out.elf.sm != smNumber(out.kernel.key.arch))
      return fail(what + " image: expected code for " + out.kernel.key.arch + ", got code for sm_" +
                  std::to_string(out.elf.sm));
    return true;
  }

  template <typename Text> bool text(StringRef ref, const std::string &what, Text &out) {
    if (ref.size >= strings_.size() || ref.offset >= strings_.size() - ref.size)
      return fail(what + ": expected a string within " + std::to_string(strings_.size()) + " bytes, got " +
                  std::to_string(ref.size) + " bytes at " + std::to_string(ref.offset));
    std::string_view view = strings_.substr(ref.offset, ref.size);
    if (view.find('\0') != view.npos || strings_[ref.offset + ref.size] != '\0')
      return fail(what + ": expected a string that ends with its only zero byte, got another");
    out = view;
    return true;
  }

  template <typename T> static T at(std::string_view section, size_t index) {
    T record;
    std::memcpy(&record, section.data() + index * sizeof(T), sizeof(T));
    return record;
  }

  std::string_view bytes_, imageRecords_, kernelRecords_, paramRecords_, strings_, metadata_;
  uint64_t tablesEnd_ = 0;
  Header header_{};
  std::vector<BundleImage> images_;
  uint32_t imagesUsed_ = 0;
  BundleError error_{};
};

} // namespace

BundleResult<Bundle> parseBundle(std::string_view bytes) { return Parser(bytes).parse(); }

bool BundleImage::intact() const { return fnv1a(bytes) == hash; }

std::string Bundle::verify() const {
  for (const BundleKernel &kernel : kernels)
    for (const BundleImage *image : {&kernel.cubin, kernel.ptx ? &*kernel.ptx : nullptr})
      if (image && !image->intact())
        return describe(kernel.kernel.key) + ": expected an image with hash " + std::to_string(image->hash) +
               ", got other bytes";
  return "";
}

} // namespace gdn
