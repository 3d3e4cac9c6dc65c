// Addresses of lanes to host pointers, with their checks.
#include "Detector.h"
#include "Exec.h"

namespace gdn::emu {
namespace {
std::string hex(uint64_t x) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", (unsigned long long)x);
  return text;
}
} // namespace

void Machine::map(const void *address, size_t bytes, std::string name) {
  uint64_t first = reinterpret_cast<uint64_t>(address);
  ranges[first] = {first, first + bytes, std::move(name)};
}
void Machine::unmap(const void *address) { ranges.erase(reinterpret_cast<uint64_t>(address)); }
void Machine::acceptHostMemory(uint64_t first, uint64_t end) {
  constexpr uint64_t page = 4096; // null pointers stay invalid
  host = {{page, first, "host memory"}, {end, sharedWindow, "host memory"}};
}
const Machine::Range *Machine::find(uint64_t address) const {
  auto it = ranges.upper_bound(address);
  if (it != ranges.begin() && address < std::prev(it)->second.end)
    return &std::prev(it)->second;
  for (auto &r : host)
    if (address >= r.first && address < r.end)
      return &r;
  return nullptr;
}

uint8_t *Warp::global(uint64_t address, uint64_t bytes, bool write, unsigned lane) {
  if (!lastRange || address < lastRange->first || address >= lastRange->end) {
    const Machine::Range *found = block->grid.find(address);
    if (!found)
      fail(std::string("global ") + (write ? "write" : "read") + " of " + std::to_string(bytes) + " bytes at " +
           hex(address) + " by lane " + std::to_string(lane) + ": no allocation there");
    lastRange = found;
  }
  if (bytes > lastRange->end - address)
    fail(std::string("global ") + (write ? "write" : "read") + " of " + std::to_string(bytes) + " bytes by lane " +
         std::to_string(lane) + " passes the end of allocation '" + lastRange->name + "' at byte " +
         std::to_string(address - lastRange->first) + " of " + std::to_string(lastRange->end - lastRange->first));
  return reinterpret_cast<uint8_t *>(address);
}

Block &Block::owner(const Warp &w, uint32_t &address) {
  uint32_t of = address >> 24;
  address &= 0xffffff;
  if (of > cluster.blocks.size())
    w.fail("shared address " + hex(address) + ": no block of rank " + std::to_string(of - 1) + " in the cluster");
  return of ? *cluster.blocks[of - 1] : *this;
}

uint8_t *Block::sharedAt(const Warp &w, uint32_t address, uint32_t bytes, uint32_t align) {
  Block &of = owner(w, address);
  if (address < sharedBase || address + uint64_t(bytes) > of.sharedEnd)
    w.fail("shared access of " + std::to_string(bytes) + " bytes at " + hex(address) + ", outside the block's " +
           hex(sharedBase) + " to " + hex(of.sharedEnd));
  if (address % align)
    w.fail("shared address " + hex(address) + " is not aligned to " + std::to_string(align) + " bytes");
  return of.shared.data() + address;
}

uint8_t *Warp::resolveLane(uint64_t a, Space s, unsigned bytes, Access kind, unsigned lane) {
  if (s == Space::Generic) {
    s = a & sharedWindow ? Space::Shared : a & localWindow ? Space::Local : Space::Global;
    a &= windowMask;
  }
  if (s == Space::Shared)
    return block->sharedAt(*this, a > ~0u ? ~0u : uint32_t(a), bytes, bytes);
  if (a & (bytes - 1))
    fail("address " + hex(a) + " of lane " + std::to_string(lane) + " is not aligned to " + std::to_string(bytes) +
         " bytes");
  if (s != Space::Local)
    return global(a, bytes, kind != Access::Read, lane);
  if (a + bytes > program->localBytes)
    fail("local access at " + hex(a) + ", outside the thread's " + std::to_string(program->localBytes) + " bytes");
  return local.data() + size_t(program->localBytes) * lane + a;
}

void Warp::resolve(const Inst &i, Slot base, Space space, unsigned bytes, Access kind, uint8_t *out[32]) {
  alignas(32) uint64_t address[lanes];
  if (i.wide) {
    const uint64_t *x = at<uint64_t>(base);
    for (unsigned l = 0; l < lanes; l++)
      address[l] = x[l] + uint64_t(i.imm);
  } else {
    const uint32_t *x = at<uint32_t>(base);
    for (unsigned l = 0; l < lanes; l++)
      address[l] = uint32_t(x[l] + uint32_t(i.imm));
  }
  // The common case is checked for all lanes at once; addresses of other lanes are of no account.
  int64_t some = int64_t(address[std::countr_zero(exec)]), least = some, most = some, bits = some;
  for (unsigned l = 0; l < lanes; l++) {
    int64_t a = exec >> l & 1 ? int64_t(address[l]) : some;
    least = a < least ? a : least;
    most = a > most ? a : most;
    bits |= a;
  }
  bool aligned = !(bits & (bytes - 1)), shared = space == Space::Shared;
  uint64_t first = shared ? sharedBase : lastRange ? lastRange->first : 1;
  uint64_t end = shared ? block->sharedEnd : lastRange ? lastRange->end : 0;
  bool inside = least >= int64_t(first) && most + int64_t(bytes) <= int64_t(end);
  if (aligned && inside && (shared || space == Space::Global)) [[likely]] {
    uintptr_t origin = shared ? reinterpret_cast<uintptr_t>(block->shared.data()) : 0;
    for (unsigned l = 0; l < lanes; l++)
      out[l] = reinterpret_cast<uint8_t *>(origin + address[l]);
  } else {
    for (uint32_t m = exec; m; m &= m - 1) {
      unsigned l = std::countr_zero(m);
      out[l] = resolveLane(address[l], space, bytes, kind, l);
    }
  }
  if (block->detector && (shared || space == Space::Generic))
    block->detector->access(*this, i, kind, out, bytes);
  if (block->counters && space != Space::Param)
    block->counters->memory(block->shared.data(), block->shared.data() + block->sharedEnd, out, exec, bytes);
}

} // namespace gdn::emu
