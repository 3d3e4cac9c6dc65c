#include "TensorMap.h"
#include <algorithm>
#include <cstring>

namespace gdn::emu {
namespace {
constexpr uint32_t magic = 0x70616d74;
} // namespace

std::string encodeTensorMap(void *to, const TensorMapSpec &s) {
  auto expected = [](const std::string &what, uint64_t got) {
    return "expected " + what + ", got " + std::to_string(got);
  };
  if (s.rank < 1 || s.rank > 5)
    return expected("a rank from 1 to 5", s.rank);
  if (s.elementBytes != 1 && s.elementBytes != 2 && s.elementBytes != 4 && s.elementBytes != 8)
    return expected("elements of 1, 2, 4 or 8 bytes", s.elementBytes);
  if (reinterpret_cast<uintptr_t>(to) % 64)
    return "expected a map that is aligned to 64 bytes";
  if (s.base % 16)
    return "expected a base address that is aligned to 16 bytes";
  if (s.swizzle > 3)
    return expected("a swizzle mode from 0 to 3", s.swizzle);
  TensorMap map{};
  map.magic = magic;
  map.rank = s.rank;
  map.elementBytes = s.elementBytes;
  map.swizzle = s.swizzle;
  map.elementType = s.elementType;
  map.base = s.base;
  map.fillNan = s.fillNan;
  for (unsigned d = 0; d < 5; d++) {
    map.dims[d] = d < s.rank ? s.dims[d] : 1;
    map.box[d] = d < s.rank ? s.box[d] : 1;
    map.elementStrides[d] = d < s.rank ? s.elementStrides[d] : 1;
    if (d >= s.rank)
      continue;
    std::string of = " of dimension " + std::to_string(d);
    if (!s.dims[d] || s.dims[d] > uint64_t(1) << 32)
      return expected("a size" + of + " from 1 to 2^32", s.dims[d]);
    if (!s.box[d] || s.box[d] > 256)
      return expected("a box" + of + " from 1 to 256", s.box[d]);
    if (s.elementStrides[d] < 1 || s.elementStrides[d] > 8)
      return expected("an element stride" + of + " from 1 to 8", s.elementStrides[d]);
    if (d && (s.strides[d - 1] % 16 || s.strides[d - 1] >= uint64_t(1) << 40))
      return expected("a stride" + of + " that is a multiple of 16 below 2^40", s.strides[d - 1]);
    if (d)
      map.strides[d - 1] = s.strides[d - 1];
  }
  uint32_t inner = s.box[0] * s.elementBytes;
  if (inner % 16)
    return expected("inner rows of a multiple of 16 bytes", inner);
  if (s.swizzle && inner > 16u << s.swizzle)
    return expected("inner rows within the swizzle's " + std::to_string(16u << s.swizzle) + " bytes", inner);
  std::memcpy(to, &map, sizeof map);
  return "";
}

TensorMap readTensorMap(const Warp &w, const uint8_t *p) {
  TensorMap map;
  std::memcpy(&map, p, sizeof map);
  if (map.magic != magic)
    w.fail("the descriptor is not a tensor map of the emulator");
  return map;
}

uint32_t boxBytes(const TensorMap &m) {
  uint32_t bytes = m.elementBytes;
  for (unsigned d = 0; d < m.rank; d++)
    bytes *= (m.box[d] + m.elementStrides[d] - 1) / m.elementStrides[d];
  return bytes;
}

std::vector<BoxRow> rowsOf(const TensorMap &m, const int32_t *at) {
  std::vector<BoxRow> rows;
  uint32_t bytes = m.box[0] * m.elementBytes, tile = 0;
  int64_t first = std::max<int64_t>(at[0], 0), end = std::min<int64_t>(int64_t(at[0]) + m.box[0], int64_t(m.dims[0]));
  uint32_t skip = uint32_t(std::min<int64_t>(first - at[0], m.box[0])) * m.elementBytes;
  uint32_t inside = end > first ? uint32_t(end - first) * m.elementBytes : 0;
  uint32_t n[5] = {};
  for (;;) {
    bool in = true;
    uint64_t address = m.base + uint64_t(first) * m.elementBytes;
    for (unsigned d = 1; d < m.rank; d++) {
      int64_t c = int64_t(at[d]) + n[d];
      in &= c >= 0 && c < int64_t(m.dims[d]);
      address += uint64_t(c) * m.strides[d - 1];
    }
    rows.push_back({address, tile, skip, in ? inside : 0, bytes});
    tile += bytes;
    unsigned d = 1;
    for (; d < m.rank; d++) {
      n[d] += m.elementStrides[d];
      if (n[d] < m.box[d])
        break;
      n[d] = 0;
    }
    if (d >= m.rank)
      return rows;
  }
}

} // namespace gdn::emu
