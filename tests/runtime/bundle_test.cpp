#include "format/bundle.h"
#include "sample.h"
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>

namespace gdn {
namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expectSame(const Kernel &written, const BundleKernel &read) {
  const Kernel &kernel = read.kernel;
  EXPECT_EQ(kernel.key, written.key);
  EXPECT_EQ(kernel.entry, written.entry);
  EXPECT_EQ(kernel.schedule, written.schedule);
  EXPECT_EQ(kernel.threads, written.threads);
  EXPECT_EQ(kernel.sharedBytes, written.sharedBytes);
  EXPECT_EQ(kernel.registers, written.registers);
  EXPECT_EQ(kernel.spillBytes, written.spillBytes);
  EXPECT_EQ(kernel.stackBytes, written.stackBytes);
  EXPECT_EQ(kernel.workspaceBytes, written.workspaceBytes);
  EXPECT_EQ(read.cubin.bytes, written.cubin);
  EXPECT_EQ(read.ptx ? read.ptx->bytes : "", written.ptx);
  ASSERT_EQ(kernel.params.size(), written.params.size());
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const KernelParam &got = kernel.params[i], &want = written.params[i];
    EXPECT_EQ(std::tie(got.kind, got.name, got.axis, got.element, got.columns, got.boxColumns, got.boxRows),
              std::tie(want.kind, want.name, want.axis, want.element, want.columns, want.boxColumns, want.boxRows));
  }
}

TEST(Bundle, RoundTrip) {
  std::vector<Kernel> kernels = sample::kernels();
  kernels[0].spillBytes = 4;
  kernels[0].stackBytes = 8;
  std::string bytes = *writeBundle(kernels, sample::metadata);
  auto bundle = parseBundle(bytes);
  ASSERT_TRUE(bundle) << bundle.error().text;
  EXPECT_STREQ(bundle->metadata, sample::metadata);
  EXPECT_EQ(bundle->verify(), "");
  std::sort(kernels.begin(), kernels.end(), [](const Kernel &a, const Kernel &b) { return a.key < b.key; });
  ASSERT_EQ(bundle->kernels.size(), kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    expectSame(kernels[i], bundle->kernels[i]);
    EXPECT_EQ(bundle->kernels[i].elf.abi, 8u);
    EXPECT_EQ(bundle->kernels[i].elf.sm, smNumber(kernels[i].key.arch));
    EXPECT_EQ((bundle->kernels[i].cubin.bytes.data() - bytes.data()) % 64, 0);
  }
}

TEST(Bundle, WithoutKernels) {
  std::string bytes = *writeBundle({}, "");
  auto bundle = parseBundle(bytes);
  ASSERT_TRUE(bundle) << bundle.error().text;
  EXPECT_TRUE(bundle->kernels.empty());
  EXPECT_STREQ(bundle->metadata, "");
}

TEST(Bundle, OrderOfInsertionDoesNotMatter) {
  std::vector<Kernel> kernels = sample::kernels();
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(kernels.begin(), kernels.end(), random);
    EXPECT_EQ(*writeBundle(kernels, sample::metadata), sample::bundle());
  }
}

TEST(Bundle, EqualImagesAreStoredOnce) {
  std::vector<Kernel> kernels = {sample::forward(sample::key(1)), sample::forward(sample::key(2))};
  std::string shared = sample::cubin(90, std::string(5000, 'x'));
  kernels[0].cubin = kernels[1].cubin = shared;
  std::string bytes = *writeBundle(kernels, "");
  auto bundle = parseBundle(bytes);
  ASSERT_TRUE(bundle);
  EXPECT_EQ(bundle->kernels[0].cubin.bytes.data(), bundle->kernels[1].cubin.bytes.data());
  EXPECT_LT(bytes.size(), 2 * shared.size());
}

TEST(Bundle, ReadsFromAnyAddress) {
  std::string shifted = "?" + sample::bundle();
  EXPECT_TRUE(parseBundle(std::string_view(shifted).substr(1)));
}

// A released version stays readable, and today's writer writes it. GDN_UPDATE_GOLDEN writes the file of a new version.
TEST(Bundle, Golden) {
  std::string path = GDN_GOLDEN "/v1.gdnb";
  if (std::getenv("GDN_UPDATE_GOLDEN"))
    std::ofstream(path, std::ios::binary) << sample::bundle();
  std::string golden = readFile(path);
  auto bundle = parseBundle(golden);
  ASSERT_TRUE(bundle) << bundle.error().text;
  EXPECT_EQ(bundle->verify(), "");
  EXPECT_EQ(describe(bundle->kernels[0].kernel.key), "forward sm_100f K=128 V=128 chunk=64 bf16 k-first split=1");
  EXPECT_EQ(describe(bundle->kernels[1].kernel.key), "forward sm_90a K=96 V=192 chunk=64 fp16 v-first split=1");
  EXPECT_EQ(describe(bundle->kernels[3].kernel.key),
            "forward sm_90a K=128 V=128 chunk=64 bf16 k-first split=1 profile");
  EXPECT_EQ(golden, sample::bundle());
}

TEST(Cubin, ReadsBothAbis) {
  for (uint32_t abi : {7u, 8u})
    for (uint32_t sm : {80u, 90u, 103u, 121u}) {
      CubinInfo info;
      EXPECT_EQ(readCubin(sample::cubin(sm, "", abi), info), "");
      EXPECT_EQ(info.abi, abi);
      EXPECT_EQ(info.sm, sm);
    }
  EXPECT_EQ(minimumDriver(7), 12000u);
  EXPECT_EQ(minimumDriver(8), 13000u);
}

TEST(Cubin, ReadsNamesOfArchitectures) {
  EXPECT_EQ(smNumber("sm_90a"), 90u);
  EXPECT_EQ(smNumber("sm_100f"), 100u);
  EXPECT_EQ(smNumber("sm_120"), 120u);
  for (const char *wrong : {"", "sm_", "90a", "sm_9x", "sm_90ab", "sm_1000", "compute_90a"})
    EXPECT_EQ(smNumber(wrong), 0u) << wrong;
}

struct Refusal {
  const char *message;
  void (*spoil)(std::vector<Kernel> &);
};

using Kernels = std::vector<Kernel>;
TEST(Writer, Refuses) {
  const Refusal refusals[] = {
      Refusal{"expected code for sm_90a, got code for sm_100", [](Kernels &k) { k[0].cubin = sample::cubin(100, ""); }},
      Refusal{"expected code for sm_90a, got code for sm_80",
              [](Kernels &k) { k[0].cubin = sample::cubin(80, "", 7); }},
      Refusal{"expected CUDA ELF ABI version 7 or 8, got 9", [](Kernels &k) { k[0].cubin = sample::cubin(90, "", 9); }},
      Refusal{"expected an ELF header of 64 bytes, got 0 bytes", [](Kernels &k) { k[0].cubin = ""; }},
      Refusal{"expected a little-endian ELF64 image", [](Kernels &k) { k[0].cubin = std::string(64, 'x'); }},
      Refusal{"expected ELF machine 190 (CUDA), got 62", [](Kernels &k) { k[0].cubin[18] = 62; }},
      Refusal{"expected one kernel of this key, got two", [](Kernels &k) { k.push_back(k[0]); }},
      Refusal{"expected an architecture like sm_90a, got 'hopper'", [](Kernels &k) { k[0].key.arch = "hopper"; }},
      Refusal{"expected an operation", [](Kernels &k) { k[0].key.operation = ""; }},
      Refusal{"K: expected 1 to 65536, got 0", [](Kernels &k) { k[0].key.keyDim = 0; }},
      Refusal{"V: expected 1 to 65536, got 65537", [](Kernels &k) { k[0].key.valueDim = 65537; }},
      Refusal{"chunk: expected 1 to 65536, got 0", [](Kernels &k) { k[0].key.chunk = 0; }},
      Refusal{"split: expected 1 to 64, got 65", [](Kernels &k) { k[0].key.split = 65; }},
      Refusal{"element type: expected 0 to 2, got 3", [](Kernels &k) { k[0].key.io = static_cast<ElementType>(3); }},
      Refusal{"expected the name of an entry", [](Kernels &k) { k[0].entry = ""; }},
      Refusal{"threads: expected 1 to 1024, got 1025", [](Kernels &k) { k[0].threads = 1025; }},
      Refusal{"threads: expected 1 to 1024, got 0", [](Kernels &k) { k[0].threads = 0; }},
      Refusal{"shared memory: expected at most", [](Kernels &k) { k[0].sharedBytes = 1 << 21; }},
      Refusal{"parameters: expected at most 64, got 65",
              [](Kernels &k) { k[0].params.assign(65, sample::pointer("q_in")); }},
      Refusal{"parameter bytes: expected at most 4096, got 8192",
              [](Kernels &k) { k[0].params.assign(64, k[0].params[0]); }},
      Refusal{"to have a name", [](Kernels &k) { k[0].params[5].name = ""; }},
      Refusal{"kind: expected 0 to 5, got 6",
              [](Kernels &k) { k[0].params[5].kind = static_cast<KernelParam::Kind>(6); }},
      Refusal{"'q_in' element type: expected 0 to 2, got 7",
              [](Kernels &k) { k[0].params[0].element = static_cast<ElementType>(7); }},
      Refusal{"axis: expected 0 to 3, got 4", [](Kernels &k) { k[0].params[5].axis = 4; }},
      Refusal{"'q_in' columns: expected 1 to 65536, got 0", [](Kernels &k) { k[0].params[0].columns = 0; }},
      Refusal{"'q_in' box columns: expected 1 to 64, got 65", [](Kernels &k) { k[0].params[0].boxColumns = 65; }},
      Refusal{"'q_in' box columns: expected 1 to 32, got 64",
              [](Kernels &k) { k[0].params[0].element = ElementType::F32; }},
      Refusal{"'q_in' box rows: expected 1 to 256, got 257", [](Kernels &k) { k[0].params[0].boxRows = 257; }},
      Refusal{"only zero byte", [](Kernels &k) { k[0].schedule = std::string("a\0b", 3); }}};
  for (const Refusal &refusal : refusals) {
    SCOPED_TRACE(refusal.message);
    std::vector<Kernel> kernels = {sample::forward(sample::key())};
    refusal.spoil(kernels);
    auto bytes = writeBundle(kernels, "");
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().kind, BundleError::Kernel);
    EXPECT_NE(bytes.error().text.find(refusal.message), std::string::npos) << bytes.error().text;
  }
}

} // namespace
} // namespace gdn
