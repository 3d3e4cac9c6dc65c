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
  for (uint32_t m = exec; m; m &= m - 1) {
    unsigned l = std::countr_zero(m);
    uint64_t a = address[l];
    Space s = space;
    if (s == Space::Generic) {
      s = a & sharedWindow ? Space::Shared : a & localWindow ? Space::Local : Space::Global;
      a &= windowMask;
    }
    if (s == Space::Shared) {
      if (a >= sharedBase && a + bytes <= block->sharedEnd && a % bytes == 0) [[likely]]
        out[l] = block->shared.data() + a;
      else
        out[l] = block->sharedAt(*this, a > ~0u ? ~0u : uint32_t(a), bytes, bytes);
      continue;
    }
    if (a % bytes)
      fail("address " + hex(a) + " of lane " + std::to_string(l) + " is not aligned to " + std::to_string(bytes) +
           " bytes");
    if (s == Space::Local) {
      if (a + bytes > program->localBytes)
        fail("local access at " + hex(a) + ", outside the thread's " + std::to_string(program->localBytes) + " bytes");
      out[l] = local.data() + size_t(program->localBytes) * l + a;
    } else {
      out[l] = global(a, bytes, kind != Access::Read, l);
    }
  }
  if (block->detector && (space == Space::Shared || space == Space::Generic))
    block->detector->access(*this, i, kind, out, bytes);
  if (block->counters)
    block->counters->memory(block->shared.data(), block->shared.data() + block->sharedEnd, out, exec, bytes);
}

} // namespace gdn::emu
