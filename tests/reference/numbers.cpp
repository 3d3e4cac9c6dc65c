#include "tests/reference/numbers.h"
#include "tests/reference/parallel.h"
#include <cstring>

namespace gdn::reference {

uint16_t encodeF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000) // 65520 and above round to infinity
    return sign | 0x7c00;
  if (magnitude < 0x38800000) { // below 2^-14: subnormal, in units of 2^-24; adding 0.5 makes the hardware round
    float units = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | uint16_t(std::bit_cast<uint32_t>(units) - std::bit_cast<uint32_t>(0.5f));
  }
  magnitude -= 0x38000000;
  return sign | uint16_t((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

float decodeF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0)
    return std::bit_cast<float>(std::bit_cast<uint32_t>(float(fraction) * 0x1p-24f) | sign);
  uint32_t biased = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | biased << 23 | fraction << 13);
}

const char *name(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "f32";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F16:
    break;
  }
  return "f16";
}

std::vector<std::byte> encode(ElementType type, const std::vector<float> &values) {
  std::vector<std::byte> storage(values.size() * bytes(type));
  if (type == ElementType::F32) {
    if (!values.empty())
      std::memcpy(storage.data(), values.data(), storage.size());
    return storage;
  }
  auto *out = reinterpret_cast<uint16_t *>(storage.data());
  parallelRanges(values.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      out[i] = type == ElementType::BF16 ? encodeBf16(values[i]) : encodeF16(values[i]);
  });
  return storage;
}

std::vector<float> decode(ElementType type, const void *storage, size_t count) {
  std::vector<float> values(count);
  if (type == ElementType::F32) {
    if (count)
      std::memcpy(values.data(), storage, count * sizeof(float));
    return values;
  }
  const auto *in = static_cast<const uint16_t *>(storage);
  parallelRanges(count, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      values[i] = type == ElementType::BF16 ? decodeBf16(in[i]) : decodeF16(in[i]);
  });
  return values;
}

} // namespace gdn::reference
