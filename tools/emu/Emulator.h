// gdn-emu: executes PTX on a CPU. Pointers that a kernel is given are host pointers; memory it may touch is registered
// with the machine first. Nothing here throws; a failure is a string.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gdn::emu {

struct Image;

// The global memory of the emulated device: which host ranges a kernel may access. Not to be changed during a launch.
class Machine {
public:
  void map(const void *address, size_t bytes, std::string name = "");
  void unmap(const void *address);
  // Host memory outside `first` .. `end` may be used without being mapped.
  void acceptHostMemory(uint64_t first, uint64_t end);
  struct Range {
    uint64_t first, end;
    std::string name;
  };
  // The range that holds `address`, or null.
  const Range *find(uint64_t address) const;
  uint32_t multiprocessors = 132; // reported in %nsmid

private:
  std::map<uint64_t, Range> ranges; // by first address
  std::vector<Range> host;
};

// Parses PTX. Null and a message in `error` where it is not PTX we know; instructions are checked at first launch.
std::shared_ptr<Image> loadPtx(std::string text, std::string &error);
std::vector<std::string> entriesOf(const Image &image);
struct EntryInfo {
  std::vector<uint32_t> paramBytes, paramOffsets; // of each parameter, in order
  uint32_t maxThreads = 0, sharedStatic = 0, localBytes = 0, registerBytes = 0;
};
bool describeEntry(Image &image, const std::string &entry, EntryInfo &info, std::string &error);

using Dim = std::array<uint32_t, 3>;

struct Launch {
  std::string entry;
  Dim grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t sharedBytes = 0;                 // dynamic
  std::vector<std::vector<uint8_t>> params; // bytes of each parameter; sizes must be those of the entry
};

enum class Schedule : uint8_t {
  Earliest, // asynchronous work is done when issued, warps run in turn
  Latest,   // asynchronous work is done when something waits for it and nothing else can run
  Random,   // both by the seed
};

struct Options {
  Schedule schedule = Schedule::Earliest;
  uint64_t seed = 0;
  unsigned threads = 1;                       // host threads; results do not depend on it
  uint32_t resident = 0;                      // clusters under way at once; 0: as many as multiprocessors
  uint64_t maxInstructions = 200'000'000'000; // warp instructions of a block before it is given up
  bool count = false;                         // fills Result::counts
  bool detect = false;                        // races, proxies, hazards, uninitialised memory
  std::vector<uint64_t> blocks;               // linear indices of those to run; empty: all
};

// Work of a launch, as far as the PTX tells it.
struct Counts {
  uint64_t instructions = 0;                      // issue slots of warps
  std::map<std::string, uint64_t> tensorProducts; // multiply-adds, by instruction
  uint64_t sharedBytes = 0;                       // of loads and stores
  uint64_t sharedWavefronts = 0;                  // passes over the banks
  uint64_t sharedConflicts = 0;                   // those beyond what the bytes need
  uint64_t globalBytes = 0, globalSectors = 0;    // of loads, stores and atomics, not of bulk copies
  uint64_t bulkLoadBytes = 0, bulkStoreBytes = 0;
  uint64_t barrierWaits = 0, mbarrierWaits = 0; // warps that had to stop
  // Each by its name, as tables and gdnc name it. "tensor_clocks", in all and, behind a dot, of each instruction, are
  // those of the tensor cores of one SM at full rate: 2048 multiply-adds of 16-bit operands a clock on sm_90.
  std::map<std::string, double> byName() const;
};

struct Result {
  std::string error;         // empty: all went well
  uint64_t instructions = 0; // warp instructions
  Counts counts;
  bool ok() const { return error.empty(); }
};

Result launch(const Machine &machine, Image &image, const Launch &launch, const Options &options = {});

// A tensor map of the emulator: 128 bytes, aligned to 64, as cuTensorMapEncodeTiled takes them.
struct TensorMapSpec {
  unsigned elementBytes = 2;
  unsigned rank = 1;
  uint64_t base = 0;
  uint64_t dims[5] = {1, 1, 1, 1, 1}; // elements, innermost first
  uint64_t strides[4] = {};           // bytes, of dimension 1 and up
  uint32_t box[5] = {1, 1, 1, 1, 1}, elementStrides[5] = {1, 1, 1, 1, 1};
  unsigned swizzle = 0;     // CUtensorMapSwizzle: 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes
  unsigned elementType = 0; // CUtensorMapDataType, for reductions
  bool fillNan = false;
};
// Empty: encoded; otherwise why not.
std::string encodeTensorMap(void *map, const TensorMapSpec &spec);

} // namespace gdn::emu
