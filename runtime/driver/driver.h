// The CUDA driver, opened at run time. Its types are declared here, so that no CUDA header is needed.
#pragma once
#include "gdn/gdn.h"
#include <cstdint>
#include <string>
#include <vector>

namespace gdn {

using CUresult = int;
using CUdevice = int;
using CUstream = struct CUstream_st *;
using CUlibrary = struct CUlib_st *;
using CUkernel = struct CUkern_st *;
using CUfunction = struct CUfunc_st *;
struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};

struct CUlaunchAttribute {
  int id;
  alignas(8) int value;
  char rest[60];
};
struct CUlaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56);

// Values of the driver's enumerations.
namespace cu {
inline constexpr CUresult success = 0, errorNoDevice = 100, errorInvalidContext = 201;
inline constexpr int attributeSmCount = 16, attributeMajor = 75, attributeMinor = 76; // CUdevice_attribute
inline constexpr int maxDynamicSharedBytes = 8;                                       // CUfunction_attribute
inline constexpr int captureRelaxed = 2;                                              // CUstreamCaptureMode
inline constexpr int mapFloat16 = 6, mapFloat32 = 7, mapBfloat16 = 9;                 // CUtensorMapDataType
inline constexpr int overlapsPrevious = 6; // CUlaunchAttributeID: PROGRAMMATIC_STREAM_SERIALIZATION
inline constexpr int interleaveNone = 0, swizzle128 = 3, promotion256 = 3, fillZeros = 0;
} // namespace cu

struct Device {
  std::string name;
  int capability; // major * 10 + minor
  int sms;
};

// Immutable once open; lives as long as the process.
struct Driver {
#define GDN_DRIVER_FUNCTION(NAME, ...) CUresult (*NAME)(__VA_ARGS__);
#include "symbols.def"
#undef GDN_DRIVER_FUNCTION
  std::string path;
  int version = 0;       // major * 1000 + minor * 10
  bool takesPtx = false; // an emulator: it runs the PTX beside an image, not the image
  std::vector<Device> devices;

  // The process's driver, opened by the first call that succeeds.
  static gdn_status get(const Driver *&driver);

  // Turns a failure into GDN_DRIVER_ERROR with the driver's words; `call` says what was called, and on what.
  gdn_status check(CUresult result, const char *call) const;

  // The device of the calling thread's context.
  gdn_status currentDevice(CUdevice &device) const;
};

} // namespace gdn
