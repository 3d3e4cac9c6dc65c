// Kernels of kernels.cu against plain loops in fp64, under every schedule, with the detectors on.
#include "harness.h"
#include <bit>
#include <cmath>
#include <ctime>
#include <random>

using namespace gdn::emu;
using namespace gdn::emu::test;

namespace {

const char *const ptx =
#include GDN_KERNELS_PTX
    ;

struct alignas(64) Map {
  uint8_t bytes[128];
};

struct Way {
  Schedule schedule;
  uint64_t seed;
};
void PrintTo(const Way &way, std::ostream *out) { *out << "schedule " << int(way.schedule) << " seed " << way.seed; }
class Kernels : public testing::TestWithParam<Way> {
protected:
  std::string launchKernel(const char *entry, Dim grid, Dim block, std::vector<std::vector<uint8_t>> params) {
    Launch what;
    what.entry = entry;
    what.grid = grid, what.block = block;
    what.params = std::move(params);
    Options options;
    options.schedule = GetParam().schedule;
    options.seed = GetParam().seed;
    options.detect = true;
    return run(machine, ptx, what, options).error;
  }
  Map map(const void *base, uint64_t columns, uint64_t rows) {
    Map m;
    TensorMapSpec spec;
    spec.rank = 2;
    spec.base = reinterpret_cast<uint64_t>(base);
    spec.dims[0] = columns, spec.dims[1] = rows;
    spec.strides[0] = 2 * columns;
    spec.box[0] = spec.box[1] = 64;
    spec.swizzle = 3;
    EXPECT_EQ(encodeTensorMap(&m, spec), "");
    return m;
  }
  Machine machine;
};
INSTANTIATE_TEST_SUITE_P(All, Kernels,
                         testing::Values(Way{Schedule::Earliest, 0}, Way{Schedule::Latest, 0}, Way{Schedule::Random, 1},
                                         Way{Schedule::Random, 2}),
                         [](auto &info) { return "way" + std::to_string(info.index); });

// Small integers: products and sums are exact in every format.
template <class T> void fill(Buffer<T> &b, unsigned seed, bool isHalf) {
  std::mt19937 random(seed);
  for (size_t n = 0; n < b.size(); n++) {
    float value = float(int(random() % 9) - 4);
    b[n] = isHalf ? std::bit_cast<uint16_t>(_Float16(value)) : uint16_t(std::bit_cast<uint32_t>(value) >> 16);
  }
}
float value(uint16_t bits, bool isHalf) {
  return isHalf ? float(std::bit_cast<_Float16>(bits)) : std::bit_cast<float>(uint32_t(bits) << 16);
}

TEST_P(Kernels, ProductsOfTiles) {
  Buffer<uint16_t> a(machine, 4096), b(machine, 4096);
  fill(a, 1, false), fill(b, 2, false);
  for (const char *entry : {"matmul_shared", "matmul_registers", "matmul_transposed"}) {
    Buffer<float> c(machine, 4096, NAN);
    ASSERT_EQ(launchKernel(entry, {1, 1, 1}, {128, 1, 1},
                           {param(map(a.data(), 64, 64)), param(map(b.data(), 64, 64)), param(c.data())}),
              "")
        << entry;
    bool transposed = std::string(entry) == "matmul_transposed";
    for (int i = 0; i < 64; i++)
      for (int j = 0; j < 64; j++) {
        double sum = 0;
        for (int k = 0; k < 64; k++)
          sum += double(value(a[i * 64 + k], false)) * value(transposed ? b[k * 64 + j] : b[j * 64 + k], false);
        ASSERT_EQ(c[i * 64 + j], float(sum)) << entry << " at " << i << ", " << j;
      }
  }
}

TEST_P(Kernels, ProductsOfWarps) {
  Buffer<uint16_t> a(machine, 16 * 64), b(machine, 64 * 8);
  Buffer<float> c(machine, 128, NAN);
  fill(a, 3, true), fill(b, 4, true);
  ASSERT_EQ(launchKernel("matmul_warp", {1, 1, 1}, {32, 1, 1}, {param(a.data()), param(b.data()), param(c.data())}),
            "");
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      double sum = 0;
      for (int k = 0; k < 64; k++)
        sum += double(value(a[i * 64 + k], true)) * value(b[k * 8 + j], true);
      EXPECT_EQ(c[i * 8 + j], float(sum));
    }
}

TEST_P(Kernels, BulkCopies) {
  constexpr int pieces = 7;
  Buffer<float> x(machine, 256 * pieces), y(machine, 256 * pieces), sum(machine, 256);
  for (size_t n = 0; n < x.size(); n++)
    x[n] = float(n % 1000);
  ASSERT_EQ(launchKernel("bulk_copy", {1, 1, 1}, {256, 1, 1},
                         {param(x.data()), param(y.data()), param(sum.data()), param(pieces)}),
            "");
  for (size_t n = 0; n < x.size(); n++)
    EXPECT_EQ(y[n], x[n] + 1);
  for (size_t n = 0; n < 256; n++) {
    float expected = 0;
    for (int p = 0; p < pieces; p++)
      expected += x[256 * p + n] + 1;
    EXPECT_EQ(sum[n], expected);
  }
}

TEST_P(Kernels, Reductions) {
  constexpr int n = 10000;
  Buffer<float> x(machine, n), sum(machine, 1);
  double expected = 0;
  for (int i = 0; i < n; i++)
    expected += x[i] = float(i % 17 - 8);
  ASSERT_EQ(launchKernel("reduce", {4, 1, 1}, {128, 1, 1}, {param(x.data()), param(n), param(sum.data())}), "");
  EXPECT_EQ(sum[0], float(expected));
}

// Counts of a kernel whose work is known.
TEST(Counts, OfAProduct) {
  Machine machine;
  Buffer<uint16_t> a(machine, 16 * 64), b(machine, 64 * 8);
  Buffer<float> c(machine, 128);
  Launch what;
  what.entry = "matmul_warp";
  what.block = {32, 1, 1};
  what.params = {param(a.data()), param(b.data()), param(c.data())};
  Options options;
  options.count = true;
  Outcome outcome = run(machine, ptx, what, options);
  ASSERT_EQ(outcome.error, "");
  const Counts &n = outcome.counts;
  ASSERT_EQ(n.tensorProducts.size(), 1u);
  EXPECT_EQ(n.tensorProducts.begin()->first, "mma.m16n8k16.row.col.f32.f16.f16.f32");
  EXPECT_EQ(n.tensorProducts.begin()->second, 4u * 16 * 8 * 16);
  auto byName = n.byName();
  EXPECT_EQ(byName["tensor_clocks"], 4);
  EXPECT_EQ(byName["tensor_clocks.mma.m16n8k16.row.col.f32.f16.f16.f32"], 4);
  EXPECT_EQ(byName["shared_conflicts"], double(n.sharedConflicts));
  EXPECT_EQ(n.sharedBytes, 2u * (16 * 64 + 64 * 8) + 4 * (16 * 64 / 4 * 2 + 16 * 16));
  // Rows of A are 128 bytes apart: the eight rows of a matrix fall into the same banks.
  EXPECT_EQ(n.sharedConflicts, 4u * 4 * 7);
  EXPECT_EQ(n.globalSectors, 2u * (16 * 64 + 64 * 8) / 32 + 512 / 32 * 2);
}

// Prints the emulator's speed.
TEST(Speed, OfArithmetic) {
  Machine machine;
  constexpr unsigned blocks = 4, threads = 256, rounds = 4000;
  Buffer<float> x(machine, blocks * threads, 1.0f);
  Launch what;
  what.entry = "arithmetic";
  what.grid = {blocks, 1, 1}, what.block = {threads, 1, 1};
  what.params = {param(x.data()), param(rounds)};
  std::string error;
  auto image = loadPtx(ptx, error);
  ASSERT_TRUE(image) << error;
  for (bool detect : {false, true}) {
    Options options;
    options.detect = detect;
    auto begin = std::clock();
    Result result = launch(machine, *image, what, options);
    double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC, rate = double(result.instructions) / 1e6 / seconds;
    ASSERT_EQ(result.error, "");
    std::printf("%.1f million warp instructions a second on one core, detectors %s\n", rate, detect ? "on" : "off");
#ifndef __SANITIZE_ADDRESS__
    EXPECT_GT(rate, detect ? 2 : 20);
#endif
  }
}

} // namespace
