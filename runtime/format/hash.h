// The hash of bundles and images: FNV-1a with 64 bits. It finds damage, not malice.
#pragma once
#include <cstdint>
#include <string_view>

namespace gdn {

inline uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

} // namespace gdn
