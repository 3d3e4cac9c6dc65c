// Damaged bundles: each is refused with a clear message or read cleanly, and nothing is read outside of it (the bytes
// lie in a block of exactly their size, for the address sanitizer).
#include "format/hash.h"
#include "format/layout.h"
#include "gdn/gdn.h"
#include "sample.h"
#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <set>

namespace gdn {
namespace {

using namespace layout;

struct Outcome {
  std::string parse, verify; // errors
  BundleError::Kind kind{};
  bool accepted() const { return parse.empty() && verify.empty(); }
};

// Reads all there is.
Outcome read(const std::string &bytes) {
  auto exact = std::make_unique<char[]>(bytes.size());
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  auto bundle = parseBundle({exact.get(), bytes.size()});
  gdn_bundle *opened;
  gdn_status status = gdn_bundle_from_memory(exact.get(), bytes.size(), &opened);
  gdn_bundle_close(opened);
  if (!bundle) {
    EXPECT_EQ(status, bundle.error().kind == BundleError::Version ? GDN_BUNDLE_VERSION : GDN_BUNDLE_CORRUPT);
    return {bundle.error().text, "", bundle.error().kind};
  }
  EXPECT_TRUE(status == GDN_OK || status == GDN_BUNDLE_VERSION) << gdn_last_error_message(); // an unknown parameter
  EXPECT_EQ(std::strlen(bundle->metadata), std::string(bundle->metadata).size());
  for (const BundleKernel &kernel : bundle->kernels) {
    EXPECT_EQ(checkKernel(kernel.kernel), "");
    EXPECT_FALSE(describe(kernel.kernel.key).empty());
  }
  return {"", bundle->verify()};
}

Header headerOf(const std::string &bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

size_t tablesSize(const Header &header) {
  return header.images * sizeof(ImageRecord) + header.kernels * sizeof(KernelRecord) +
         header.params * sizeof(ParamRecord) + header.stringBytes;
}

// Makes the hash right again, so that damage reaches the checks behind it.
void rehash(std::string &bytes) {
  Header header = headerOf(bytes);
  size_t size = tablesSize(header);
  if (size > bytes.size() - sizeof header)
    return;
  header.hash = fnv1a(std::string_view(bytes).substr(sizeof header, size));
  std::memcpy(bytes.data(), &header, sizeof header);
}

// Where things lie in the sample.
struct Offsets {
  explicit Offsets(const std::string &bytes) : header(headerOf(bytes)) {}
  size_t image(size_t i) const { return sizeof(Header) + i * sizeof(ImageRecord); }
  size_t kernel(size_t i) const { return image(header.images) + i * sizeof(KernelRecord); }
  size_t param(size_t i) const { return kernel(header.kernels) + i * sizeof(ParamRecord); }
  size_t strings() const { return param(header.params); }
  Header header;
};

// Every bit of the header, and one of each other byte.
TEST(Corruption, EveryFlippedBitIsFound) {
  const std::string intact = sample::bundle();
  ASSERT_TRUE(read(intact).accepted());
  for (size_t at = 0; at < intact.size(); ++at)
    for (size_t bit = 0; bit < 8; ++bit) {
      if (at >= sizeof(Header) && bit != at * 5 % 8)
        continue;
      std::string bytes = intact;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      ASSERT_FALSE(read(bytes).accepted()) << "bit " << bit << " of byte " << at;
    }
}

TEST(Corruption, EveryTruncationIsFound) {
  const std::string intact = sample::bundle();
  for (size_t size = 0; size < intact.size(); ++size)
    ASSERT_NE(read(intact.substr(0, size)).parse, "") << size;
  EXPECT_NE(read(intact + '\0').parse, "");
}

// Tables damaged at random under a right hash.
TEST(Corruption, FuzzedTables) {
  const std::string intact = sample::bundle();
  const size_t tables = sizeof(Header) + tablesSize(headerOf(intact));
  std::mt19937_64 random(20240501);
  const uint32_t interesting[] = {0, 1, 2, 63, 64, 0x7fffffff, 0x80000000, 0xffffffff, uint32_t(intact.size())};
  std::set<std::string> messages;
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = intact;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      size_t at = 8 + random() % (tables - 12) / 4 * 4; // fields are aligned to 4 bytes
      uint32_t value;
      std::memcpy(&value, &bytes[at], sizeof value);
      switch (random() % 4) {
      case 0:
        value = interesting[random() % std::size(interesting)];
        break;
      case 1:
        value += static_cast<uint32_t>(random() % 7) - 3;
        break;
      case 2:
        value ^= 1u << random() % 32;
        break;
      default:
        value = static_cast<uint32_t>(random());
      }
      std::memcpy(&bytes[at], &value, sizeof value);
    }
    if (random() % 4 == 0) {
      bytes.resize(random() % (bytes.size() + 64));
      if (bytes.size() >= sizeof(Header)) {
        Header header = headerOf(bytes);
        header.totalBytes = bytes.size();
        std::memcpy(bytes.data(), &header, sizeof header);
      }
    }
    if (bytes.size() >= sizeof(Header))
      rehash(bytes);
    Outcome outcome = read(bytes);
    accepted += outcome.parse.empty();
    std::string kind = outcome.parse.substr(0, outcome.parse.find("expected"));
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    messages.insert(kind);
  }
  // The checks were reached: many kinds of refusal, and harmless changes (a register count) are let through.
  EXPECT_GT(accepted, 60);
  EXPECT_GT(messages.size(), 25u);
}

struct Damage {
  const char *message;
  void (*apply)(std::string &bytes, const Offsets &at);
  BundleError::Kind kind = BundleError::Corrupt;
};

template <typename T> void put(std::string &bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

#define AT(RECORD, FIELD) offsetof(RECORD, FIELD)
using Bytes = std::string;

TEST(Corruption, OfEachField) {
  const Damage
      damages[] = {Damage{"expected a bundle, got other leading bytes", [](Bytes &b, const Offsets &) { b[0] = 'G'; }},
                   Damage{"expected format version 1, got 2",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, version), 2u); }, BundleError::Version},
                   Damage{"as the header says",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, totalBytes), 99ull); }},
                   Damage{"reserved field of the header: expected 0, got 7",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, reserved), 7u); }},
                   Damage{"images: expected at most",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, images), 0xffffffffu); }},
                   Damage{"kernels: expected at most",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, kernels), 0xffffffffu); }},
                   Damage{"parameters: expected at most",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, params), 0xffffffffu); }},
                   Damage{"string bytes: expected at most",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, stringBytes), 0xffffffffu); }},
                   Damage{"metadata: expected a string within",
                          [](Bytes &b, const Offsets &) { put(b, AT(Header, metadata.size), 0xffffffffu); }},
                   Damage{"image 0 offset: expected",
                          [](Bytes &b, const Offsets &at) { put(b, at.image(0), 1ull << 60); }},
                   Damage{"image 1 size: expected at most",
                          [](Bytes &b, const Offsets &at) { put(b, at.image(1) + AT(ImageRecord, size), ~0ull); }},
                   Damage{"image 0: expected zeros in front of it, got other bytes",
                          [](Bytes &b, const Offsets &at) { b[at.strings() + at.header.stringBytes] = 1; }},
                   Damage{"kernel 0 entry: expected a string within",
                          [](Bytes &b, const Offsets &at) {
                            put(b, at.kernel(0) + AT(KernelRecord, entry.offset), at.header.stringBytes);
                          }},
                   Damage{"kernel 1 arch: expected a string that ends with its only zero byte, got another",
                          [](Bytes &b, const Offsets &at) { put(b, at.kernel(1) + AT(KernelRecord, arch.size), 3u); }},
                   Damage{"kernel 1 first parameter: expected",
                          [](Bytes &b, const Offsets &at) { put(b, at.kernel(1) + AT(KernelRecord, firstParam), 0u); }},
                   Damage{
                       "kernel 0 parameters: expected at most",
                       [](Bytes &b, const Offsets &at) { put(b, at.kernel(0) + AT(KernelRecord, params), 100000u); }},
                   Damage{"kernel 0 reserved byte of a parameter: expected 0, got 1",
                          [](Bytes &b, const Offsets &at) { b[at.param(0) + AT(ParamRecord, reserved)] = 1; }},
                   Damage{"kernel 0: parameter 'q_in' axis: expected 0 to 3, got 9",
                          [](Bytes &b, const Offsets &at) { b[at.param(0) + AT(ParamRecord, axis)] = 9; }},
                   Damage{"kernel 0 image: expected below 1, got 3",
                          [](Bytes &b, const Offsets &at) { put(b, at.kernel(0) + AT(KernelRecord, cubin), 3u); }},
                   Damage{
                       "images of all kernels: expected",
                       [](Bytes &b,
                          const Offsets &at) { put(b, at.kernel(at.header.kernels - 1) + AT(KernelRecord, cubin), 1u); }},
                   Damage{"kernel 0: expected flags of 0 or 1, got others",
                          [](Bytes &b, const Offsets &at) { b[at.kernel(0) + AT(KernelRecord, profile)] = 2; }},
                   Damage{"kernel 0: features: expected bits of 3, got 4",
                          [](Bytes &b, const Offsets &at) { b[at.kernel(0) + AT(KernelRecord, features)] = 4; }},
                   Damage{"kernel 2: threads: expected 1 to 1024, got 0",
                          [](Bytes &b, const Offsets &at) { put(b, at.kernel(2) + AT(KernelRecord, threads), 0u); }},
                   Damage{"expected kernels sorted by key, got ",
                          [](Bytes &b, const Offsets &at) { put(b, at.kernel(1) + AT(KernelRecord, keyDim), 4096u); }},
                   Damage{"kernel 0 image: expected code for sm_100f, got code for sm_90",
                          [](Bytes &b, const Offsets &at) {
                            uint64_t image;
                            std::memcpy(&image, &b[at.image(0)], sizeof image);
                            put(b, image + 48, 90u << 8);
                          }},
                   Damage{"kernel 0 image: expected CUDA ELF ABI version 7 or 8, got 6",
                          [](Bytes &b, const Offsets &at) {
                            uint64_t image;
                            std::memcpy(&image, &b[at.image(0)], sizeof image);
                            b[image + 8] = 6;
                          }}};
  for (const Damage &damage : damages) {
    SCOPED_TRACE(damage.message);
    std::string bytes = sample::bundle();
    damage.apply(bytes, Offsets(bytes));
    rehash(bytes);
    Outcome outcome = read(bytes);
    EXPECT_NE(outcome.parse.find(damage.message), std::string::npos) << outcome.parse;
    EXPECT_EQ(outcome.kind, damage.kind);
  }
}

TEST(Corruption, OfTheHash) {
  std::string bytes = sample::bundle();
  bytes[offsetof(Header, hash)] ^= 1;
  EXPECT_NE(read(bytes).parse.find("hash of the tables: expected"), std::string::npos);
}

TEST(Corruption, OfAnImage) {
  std::string bytes = sample::bundle();
  bytes.back() ^= 1;
  Outcome outcome = read(bytes);
  EXPECT_EQ(outcome.parse, "");
  EXPECT_NE(outcome.verify.find("expected an image with hash"), std::string::npos) << outcome.verify;
}

} // namespace
} // namespace gdn
