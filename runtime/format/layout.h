// Layout of a bundle file (.gdnb), little-endian. Sections follow each other in this order, so that only their counts
// are stored:
//
//   Header | ImageRecord[images] | KernelRecord[kernels] | ParamRecord[params] | strings | images
//
// Kernels are sorted by key and own consecutive parameters. Strings are unique, sorted and NUL-terminated. Images are
// unique, in the order of first use, each at the next multiple of 64 behind the one before, zeros between; the file
// ends with the last. The header's hash covers everything between itself and the first image, hence through their
// hashes the images too.
#pragma once
#include <bit>
#include <cstdint>

namespace gdn::layout {

static_assert(std::endian::native == std::endian::little, "records are copied to and from files as they are");

inline constexpr char magic[8] = {'\x89', 'G', 'D', 'N', 'B', '\r', '\n', '\x1a'}; // text-mode copies damage it
inline constexpr uint32_t version = 1;
inline constexpr uint64_t imageAlignment = 64;
inline constexpr uint32_t noImage = 0xffffffff;

struct StringRef {
  uint32_t offset, size; // in the strings, without the NUL
};

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t images, kernels, params, stringBytes;
  StringRef metadata;
  uint32_t reserved;
  uint64_t totalBytes;
  uint64_t hash; // of the bytes from the end of the header to the end of the strings
};
static_assert(sizeof(Header) == 56);

struct ImageRecord {
  uint64_t offset, size, hash;
};
static_assert(sizeof(ImageRecord) == 24);

struct KernelRecord {
  StringRef operation, arch, entry, schedule;
  uint32_t keyDim, valueDim, chunk, split;
  uint32_t firstParam, params;
  uint32_t threads, sharedBytes, registers, spillBytes, stackBytes, workspaceBytes;
  uint32_t cubin, ptx; // images; ptx may be noImage
  uint8_t io, stateVFirst, profile, features;
};
static_assert(sizeof(KernelRecord) == 92);

struct ParamRecord {
  StringRef name;
  uint32_t columns;
  uint16_t boxColumns, boxRows;
  uint8_t kind, axis, element, reserved;
};
static_assert(sizeof(ParamRecord) == 20);

} // namespace gdn::layout
