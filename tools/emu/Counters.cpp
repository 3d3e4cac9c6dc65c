// Work counts, for tables of regressions.
#include "Exec.h"
#include <algorithm>

namespace gdn::emu {
namespace {

// Passes over the 32 banks of four bytes: lanes are taken in groups whose accesses make up at most 128 bytes, and in a
// group each pass serves one word of every bank.
uint32_t wavefronts(const uintptr_t *at, uint32_t mask, uint32_t bytes, uint32_t &ideal) {
  uint32_t each = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8, total = 0;
  ideal = 0;
  for (uint32_t first = 0; first < lanes; first += each) {
    std::vector<uintptr_t> words;
    for (uint32_t l = first; l < first + each; l++)
      if (mask >> l & 1)
        for (uint32_t b = 0; b < std::max(bytes, 4u); b += 4)
          words.push_back((at[l] + b) / 4);
    if (words.empty())
      continue;
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    uint32_t perBank[32] = {}, most = 0;
    for (uintptr_t word : words)
      most = std::max(most, ++perBank[word % 32]);
    total += most;
    ideal++;
  }
  return total;
}

} // namespace

void Counters::memory(const uint8_t *sharedFirst, const uint8_t *sharedEnd, uint8_t *const *p, uint32_t mask,
                      uint32_t bytes) {
  uint32_t inShared = 0;
  std::vector<uintptr_t> sectors;
  uintptr_t offset[lanes] = {}; // from address 0, which the banks begin at
  for (uint32_t m = mask; m; m &= m - 1) {
    unsigned l = unsigned(std::countr_zero(m));
    if (p[l] >= sharedFirst && p[l] < sharedEnd) {
      inShared |= 1u << l;
      offset[l] = uintptr_t(p[l] - sharedFirst);
      continue;
    }
    uintptr_t first = reinterpret_cast<uintptr_t>(p[l]);
    for (uintptr_t s = first / 32; s <= (first + bytes - 1) / 32; s++)
      sectors.push_back(s);
  }
  if (inShared) {
    uint32_t ideal;
    sharedBytes += bytes * unsigned(std::popcount(inShared));
    sharedWavefronts += wavefronts(offset, inShared, bytes, ideal);
    sharedIdeal += ideal;
  }
  globalBytes += bytes * unsigned(std::popcount(mask & ~inShared));
  std::sort(sectors.begin(), sectors.end());
  globalSectors += uint64_t(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
}

void Counters::addTo(Counts &c, const Program &program) const {
  for (size_t n = 0; n < executed.size(); n++) {
    const Inst &i = program.code[n];
    c.instructions += executed[n];
    if (!executed[n] || (i.unit != Unit::Tensor && i.unit != Unit::Wgmma))
      continue;
    const Instruction &source = *program.source[n];
    std::string name = source.name;
    for (auto m : source.modifiers)
      if (m != "sync" && m != "aligned")
        name += "." + std::string(m);
    // A warp of wgmma multiplies 16 of the 64 rows.
    uint64_t each = i.unit == Unit::Wgmma ? 16 * 16 * 2 * uint64_t(i.count) : 16 * 8 * uint64_t(i.aux);
    c.tensorProducts[name] += each * executed[n];
  }
  c.sharedBytes += sharedBytes;
  c.sharedWavefronts += sharedWavefronts;
  c.sharedConflicts += sharedWavefronts - sharedIdeal;
  c.globalBytes += globalBytes;
  c.globalSectors += globalSectors;
  c.bulkLoadBytes += bulkLoadBytes;
  c.bulkStoreBytes += bulkStoreBytes;
  c.barrierWaits += barrierWaits;
  c.mbarrierWaits += mbarrierWaits;
}

std::map<std::string, double> Counts::byName() const {
  std::map<std::string, double> all = {{"issue_slots", instructions},
                                       {"shared_bytes", sharedBytes},
                                       {"shared_wavefronts", sharedWavefronts},
                                       {"shared_conflicts", sharedConflicts},
                                       {"global_bytes", globalBytes},
                                       {"global_sectors", globalSectors},
                                       {"bulk_load_bytes", bulkLoadBytes},
                                       {"bulk_store_bytes", bulkStoreBytes},
                                       {"barrier_waits", barrierWaits},
                                       {"mbarrier_waits", mbarrierWaits},
                                       {"tensor_clocks", 0}};
  for (auto &[instruction, products] : tensorProducts) {
    double clocks = double(products) / 2048;
    all["tensor_clocks." + instruction] = clocks;
    all["tensor_clocks"] += clocks;
  }
  return all;
}

} // namespace gdn::emu
