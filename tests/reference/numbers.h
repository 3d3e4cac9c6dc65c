// Element types of tensors and states: conversions that round to nearest even, and the precisions the rounding model
// uses.
#pragma once
#include "runtime/format/kernel.h"
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace gdn::reference {

inline uint16_t encodeBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float decodeBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

uint16_t encodeF16(float value);
float decodeF16(uint16_t bits);

inline size_t bytes(ElementType type) { return type == ElementType::F32 ? 4 : 2; }
const char *name(ElementType type);

// `value` as it comes back from storage in `type`.
inline float rounded(ElementType type, float value) {
  switch (type) {
  case ElementType::BF16:
    return decodeBf16(encodeBf16(value));
  case ElementType::F16:
    return decodeF16(encodeF16(value));
  case ElementType::F32:
    break;
  }
  return value;
}

// Storage of `values` in `type`, and back. Both use all cores.
std::vector<std::byte> encode(ElementType type, const std::vector<float> &values);
std::vector<float> decode(ElementType type, const void *storage, size_t count);

} // namespace gdn::reference
