#include "Device.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace gdn::emu::cuda {
namespace {

// Addresses of device memory are never used twice, and a gap follows each allocation.
constexpr size_t arenaBytes = size_t(1) << 40, gap = 1 << 16;

// An environment variable's number. One that is no number ends the program: a typing error must not pass for a setting.
uint64_t setting(const char *name, uint64_t otherwise, uint64_t most) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return otherwise;
  char *end;
  uint64_t value = std::strtoull(text, &end, 10);
  if (*end || value > most) {
    std::fprintf(stderr, "libgdn-emu-cuda: %s: expected a number up to %llu, got '%s'\n", name,
                 static_cast<unsigned long long>(most), text);
    std::exit(2);
  }
  return value;
}

Schedule scheduleSetting() {
  const char *text = std::getenv("GDN_EMU_SCHEDULE");
  std::string value = text ? text : "";
  if (value.empty() || value == "earliest")
    return Schedule::Earliest;
  if (value == "latest" || value == "random")
    return value == "latest" ? Schedule::Latest : Schedule::Random;
  std::fprintf(stderr, "libgdn-emu-cuda: GDN_EMU_SCHEDULE: expected 'earliest', 'latest' or 'random', got '%s'\n",
               text);
  std::exit(2);
}

} // namespace

Device &Device::get() {
  static Device *device = new Device; // outlives whatever the program does at its end
  return *device;
}

Device::Device() {
  options.schedule = scheduleSetting();
  options.seed = setting("GDN_EMU_SEED", 0, ~uint64_t(0));
  options.threads = unsigned(setting("GDN_EMU_THREADS", std::max(1u, std::thread::hardware_concurrency()), 256));
  options.detect = setting("GDN_EMU_DETECT", 0, 1);
  machine.multiprocessors = uint32_t(setting("GDN_EMU_SMS", 132, 1024));
  options.resident = uint32_t(setting("GDN_EMU_RESIDENT", 0, 1024));
  memoryBytes = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGE_SIZE)) / 2;
  void *base = mmap(nullptr, arenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    std::perror("libgdn-emu-cuda: mmap");
    std::exit(3);
  }
  arena = next = reinterpret_cast<uint64_t>(base);
  machine.acceptHostMemory(arena, arena + arenaBytes);
}

std::string &Device::message() {
  thread_local std::string words;
  return words;
}

int Device::fail(int status, std::string words) {
  message() = std::move(words);
  return status;
}

int Device::allocate(uint64_t &address, size_t bytes) {
  if (!bytes || bytes > memoryBytes)
    return fail(bytes ? outOfMemory : invalidValue, "cannot allocate " + std::to_string(bytes) + " bytes");
  std::unique_lock lock(mutex);
  size_t reserved = (bytes + gap - 1) / gap * gap;
  if (next + reserved + gap > arena + arenaBytes ||
      mprotect(reinterpret_cast<void *>(next), reserved, PROT_READ | PROT_WRITE))
    return fail(outOfMemory, "cannot allocate " + std::to_string(bytes) + " bytes");
  address = next;
  next += reserved + gap;
  allocations[address] = reserved;
  machine.map(reinterpret_cast<void *>(address), bytes, "allocation of " + std::to_string(bytes) + " bytes");
  return success;
}

int Device::release(uint64_t address) {
  if (!address)
    return success;
  std::unique_lock lock(mutex);
  auto it = allocations.find(address);
  if (it == allocations.end())
    return fail(invalidValue, "no allocation begins at this address");
  void *p = reinterpret_cast<void *>(address);
  machine.unmap(p);
  mmap(p, it->second, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  allocations.erase(it);
  return success;
}

int Device::submit(Stream *stream, Work work) {
  if (stream && stream->recording)
    return stream->recording->work.push_back(std::move(work)), success;
  return work();
}

int Device::launch(const Launch &what, Library &library) {
  std::shared_lock lock(mutex);
  Result result = emu::launch(machine, *library.image, what, options);
  if (result.ok()) {
    std::lock_guard workLock(workMutex);
    if (!options.count)
      work["issue_slots"] += double(result.instructions);
    else
      for (auto &[name, value] : result.counts.byName())
        work[name] += value;
    return success;
  }
  std::fprintf(stderr, "libgdn-emu-cuda: %s\n", result.error.c_str());
  return fail(launchFailed, result.error);
}

std::map<std::string, double> Device::takeWork(bool counts) {
  std::unique_lock lock(mutex);
  options.count = counts;
  return std::exchange(work, {});
}

} // namespace gdn::emu::cuda
