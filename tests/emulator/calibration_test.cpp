// The comparison of two devices' records: what counts as the same, and that anything else is found.
#include "tests/device/calibration.h"
#include "tests/reference/numbers.h"
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::device;

namespace {

Section section(std::vector<float> values, uint32_t ulps = 0, double absolute = 0) {
  return {ElementType::F32, ulps, absolute, 7, reference::encode(ElementType::F32, values)};
}
bool close(const Section &gpu, const Section &emulator) { return compare({{"s", gpu}}, {{"s", emulator}}); }

TEST(Calibration, CountsUnitsInTheLastPlace) {
  float one = 1, next = std::nextafter(one, 2.0f), below = std::nextafter(one, 0.0f);
  EXPECT_TRUE(close(section({one}), section({one})));
  EXPECT_FALSE(close(section({next}), section({one})));
  EXPECT_TRUE(close(section({next}, 1), section({one})));
  EXPECT_FALSE(close(section({next}, 1), section({below})));
  EXPECT_TRUE(close(section({0.0f}, 1), section({-0.0f})));
  EXPECT_FALSE(close(section({0.0f}), section({0.001f})));
  EXPECT_TRUE(close(section({0.0f}, 0, 0.01), section({0.001f})));
}

TEST(Calibration, OnlyNansEqualNans) {
  float other = std::bit_cast<float>(0x7fffffff);
  EXPECT_TRUE(close(section({NAN}), section({other})));
  EXPECT_FALSE(close(section({NAN}, 1000, 1000), section({1})));
  EXPECT_FALSE(close(section({1}, 1000, 1000), section({NAN})));
  EXPECT_FALSE(close(section({INFINITY}, 0, 1000), section({1})));
}

TEST(Calibration, MissesWhatIsNotThere) {
  Section s = section({1}), other = s;
  EXPECT_FALSE(compare({{"s", s}}, {{"t", s}}));
  other.inputs = 8;
  EXPECT_FALSE(close(s, other));
  EXPECT_FALSE(close(s, section({1, 2})));
}

TEST(Calibration, RecordsAreKept) {
  std::string path = testing::TempDir() + "calibration.rec";
  Record record = {{"a name, with blanks", section({1, 10, -3}, 5, 0x1p-22)}, {"b", section({13})}};
  save(record, path);
  Record loaded = load(path);
  ASSERT_EQ(loaded.size(), record.size());
  for (auto &[name, s] : record) {
    EXPECT_EQ(loaded[name].bytes, s.bytes);
    EXPECT_EQ(loaded[name].inputs, s.inputs);
    EXPECT_EQ(loaded[name].ulps, s.ulps);
    EXPECT_EQ(loaded[name].absolute, s.absolute);
  }
  EXPECT_THROW(load(path + ".missing"), gpu::Error);
}

TEST(Calibration, DigestsTellBits) {
  Record record = {{"exact", section({1, 2})}, {"close", section({3}, 1)}}, other = record;
  Record brief = digest(record);
  ASSERT_EQ(brief.size(), 1u) << "what may differ cannot be told by a hash";
  EXPECT_TRUE(brief["exact"].bytes.empty());
  EXPECT_TRUE(compare(brief, record));
  other["exact"] = section({1, std::nextafter(2.0f, 3.0f)});
  EXPECT_FALSE(compare(brief, other));
}

} // namespace
