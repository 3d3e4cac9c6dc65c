// The device that the stand-in for libcuda presents: its memory, modules and streams.
#pragma once
#include "Emulator.h"
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace gdn::emu::cuda {

// Values of CUresult.
enum Status : int {
  success = 0,
  invalidValue = 1,
  outOfMemory = 2,
  invalidImage = 200,
  invalidContext = 201,
  notFound = 500,
  launchFailed = 719,
  notSupported = 801,
};

struct Library {
  std::shared_ptr<Image> image;
  std::map<std::string, std::unique_ptr<struct Entry>> entries;
};
struct Entry {
  Library *library;
  std::string name;
  EntryInfo info;
};

using Work = std::function<int()>;
struct Graph {
  std::vector<Work> work;
};
struct Stream {
  Graph *recording = nullptr; // work is kept, not done
};

class Device {
public:
  static Device &get();

  // The words of the last failure of the calling thread.
  static std::string &message();
  static int fail(int status, std::string words);

  int allocate(uint64_t &address, size_t bytes);
  int release(uint64_t address);
  int submit(Stream *stream, Work work);
  int launch(const Launch &launch, Library &library);
  // Work of the launches since the last call, by Counts::byName; of those behind a call without `counts` the issue
  // slots alone.
  std::map<std::string, double> takeWork(bool counts);

  Options options;
  Machine machine;
  size_t memoryBytes;

private:
  Device();
  std::shared_mutex mutex; // launches share it, allocation changes the map
  uint64_t arena, next;
  std::map<uint64_t, size_t> allocations; // reserved bytes
  std::mutex workMutex;
  std::map<std::string, double> work;
};

} // namespace gdn::emu::cuda
