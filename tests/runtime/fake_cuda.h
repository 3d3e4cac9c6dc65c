// A libcuda for tests: it launches nothing, records what it is asked, and fails where it is told to.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

struct FakeDevice {
  std::string name;
  int capability, sms;
};

struct FakeMap { // arguments of cuTensorMapEncodeTiled
  int type;
  uintptr_t address;
  std::vector<uint64_t> dims, strides;
  std::vector<uint32_t> box, steps;
  int interleave, swizzle, promotion, fill;
};

struct FakeLaunch {
  std::string entry;
  int device;
  std::array<unsigned, 3> grid, block;
  unsigned shared;
  void *stream;
  bool overlaps;                   // the launch before it
  std::vector<std::string> params; // the bytes of each; a map's begin with its number among `maps`
};

struct FakeCuda {
  // What the test sets.
  int version = 13000;
  std::vector<FakeDevice> devices = {{"Fake H200", 90, 132}, {"Fake RTX", 120, 100}, {"Fake slice", 90, 8}};
  int current = 0;                                         // the current context's device; -1 without a context
  std::map<std::string, int> failures;                     // CUresult by function
  std::map<std::string, std::vector<uint32_t>> paramSizes; // by entry

  // What it is asked.
  std::mutex mutex;
  std::map<std::string, int> calls; // by function
  std::vector<FakeMap> maps;
  std::vector<FakeLaunch> launches;
  std::map<std::pair<std::string, int>, int> sharedLimit; // by entry and device
  int libraries = 0;                                      // loaded now
  int captureModeOfLoad = 0;
};

[[gnu::visibility("default")]] FakeCuda &fakeCuda();
