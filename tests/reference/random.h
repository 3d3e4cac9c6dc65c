// Random numbers that depend on (seed, stream, index) alone, so that any thread can make any of them.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace gdn::reference {

class Random {
public:
  Random(uint64_t seed, uint64_t stream) : key(mix(seed ^ mix(stream + 0x9e3779b97f4a7c15))) {}

  uint64_t bits(uint64_t index) const { return mix(key + index * 0x9e3779b97f4a7c15); }

  // In (0, 1).
  float uniform(uint64_t index) const { return (float(bits(index) >> 41) + 0.5f) * 0x1p-23f; }

  // Standard normal; an even index and the odd one after it share a draw.
  float normal(uint64_t index) const {
    uint64_t draw = bits(index >> 1);
    float radius = std::sqrt(-2 * std::log((float(draw >> 41) + 0.5f) * 0x1p-23f));
    float angle = float(draw & 0xffffff) * float(2 * std::numbers::pi / 0x1p24);
    return radius * (index & 1 ? std::sin(angle) : std::cos(angle));
  }

private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }

  uint64_t key;
};

} // namespace gdn::reference
