// The library's interface: modules, entries, launches.
#include "Decoder.h"
#include "Detector.h"
#include "Machine.h"
#include <algorithm>
#include <cstring>
#include <mutex>

namespace gdn::emu {

std::shared_ptr<Image> loadPtx(std::string text, std::string &error) {
  auto image = std::make_shared<Image>();
  try {
    parsePtx(std::move(text), image->module);
  } catch (const Error &e) {
    error = e.what();
    return nullptr;
  }
  for (auto *list : {&image->module.global, &image->module.constant})
    for (auto &v : *list) {
      auto bytes = std::make_unique<uint8_t[]>(v.bytes + 1);
      std::copy(v.init.begin(), v.init.end(), bytes.get());
      image->variables[v.name] = std::move(bytes);
      image->variableBytes[v.name] = v.bytes;
    }
  return image;
}

std::vector<std::string> entriesOf(const Image &image) {
  std::vector<std::string> names;
  for (auto &fn : image.module.entries)
    names.push_back(fn.name);
  return names;
}

namespace {

const Program &programOf(Image &image, const std::string &entry) {
  static std::mutex mutex; // launches of several host threads decode an entry once
  std::lock_guard lock(mutex);
  auto &program = image.programs[entry];
  if (program)
    return *program;
  auto fn =
      std::find_if(image.module.entries.begin(), image.module.entries.end(), [&](auto &f) { return f.name == entry; });
  if (fn == image.module.entries.end()) {
    std::string known;
    for (auto &f : image.module.entries)
      known += (known.empty() ? "'" : ", '") + f.name + "'";
    throw Error("no entry '" + entry + "' in the module" + (known.empty() ? "" : ": it has " + known));
  }
  program = decode(image, *fn);
  return *program;
}

std::vector<uint8_t> parameterBuffer(const Function &fn, const Launch &launch) {
  if (launch.params.size() != fn.params.size())
    throw Error("entry '" + fn.name + "' takes " + std::to_string(fn.params.size()) + " parameters, got " +
                std::to_string(launch.params.size()));
  std::vector<uint8_t> buffer(fn.paramBytes + 256);
  for (size_t n = 0; n < fn.params.size(); n++) {
    const Variable &v = fn.params[n];
    if (launch.params[n].size() != v.bytes)
      throw Error("parameter " + std::to_string(n) + " of entry '" + fn.name + "' has " + std::to_string(v.bytes) +
                  " bytes, got " + std::to_string(launch.params[n].size()));
    std::copy(launch.params[n].begin(), launch.params[n].end(), buffer.begin() + ptrdiff_t(v.offset));
  }
  return buffer;
}

void checkDimensions(const Function &fn, const Program &program, const Launch &l) {
  auto product = [](const Dim &d) { return uint64_t(d[0]) * d[1] * d[2]; };
  uint64_t threads = product(l.block), shared = uint64_t(program.sharedStatic) + l.sharedBytes;
  if (!threads || threads > 1024 || l.block[2] > 64)
    throw Error("expected a block of 1 to 1024 threads, at most 64 of them along z, got " + std::to_string(threads));
  if (fn.maxThreads && threads > fn.maxThreads)
    throw Error("entry '" + fn.name + "' allows " + std::to_string(fn.maxThreads) + " threads, got " +
                std::to_string(threads));
  if (!product(l.grid) || l.grid[0] > 0x7fffffff || l.grid[1] > 65535 || l.grid[2] > 65535)
    throw Error("expected a grid of 1 to 2^31-1 x 65535 x 65535 blocks, got " + std::to_string(l.grid[0]) + " x " +
                std::to_string(l.grid[1]) + " x " + std::to_string(l.grid[2]));
  if (shared > 227 * 1024)
    throw Error("expected at most " + std::to_string(227 * 1024) + " bytes of shared memory, got " +
                std::to_string(shared));
  if (!product(l.cluster) || product(l.cluster) > 16)
    throw Error("expected a cluster of 1 to 16 blocks, got " + std::to_string(product(l.cluster)));
  for (unsigned k = 0; k < 3; k++)
    if (l.grid[k] % l.cluster[k])
      throw Error("the grid is not a multiple of the cluster");
}

// Clusters, each by its first block.
std::vector<uint64_t> clustersToRun(const Launch &l, const Options &o) {
  std::vector<uint64_t> first;
  const Dim &g = l.grid, &c = l.cluster;
  if (c[0] * c[1] * c[2] == 1 && !o.blocks.empty()) {
    first = o.blocks;
  } else {
    for (uint32_t z = 0; z < g[2]; z += c[2])
      for (uint32_t y = 0; y < g[1]; y += c[1])
        for (uint32_t x = 0; x < g[0]; x += c[0])
          first.push_back(x + uint64_t(g[0]) * (y + uint64_t(g[1]) * z));
  }
  for (uint64_t b : first)
    if (b >= uint64_t(g[0]) * g[1] * g[2])
      throw Error("block " + std::to_string(b) + " is outside the grid");
  return first;
}

} // namespace

const Machine::Range *Grid::find(uint64_t address) const {
  for (auto &r : own)
    if (address >= r.first && address < r.end)
      return &r;
  return machine.find(address);
}

bool describeEntry(Image &image, const std::string &entry, EntryInfo &info, std::string &error) {
  try {
    const Program &p = programOf(image, entry);
    info = {};
    for (auto &v : p.fn->params) {
      info.paramBytes.push_back(v.bytes);
      info.paramOffsets.push_back(v.offset);
    }
    info.maxThreads = p.fn->maxThreads;
    info.sharedStatic = p.sharedStatic;
    info.localBytes = p.localBytes;
    info.registerBytes = p.registerBytes;
    return true;
  } catch (const Error &e) {
    error = e.what();
    return false;
  }
}

Result launch(const Machine &machine, Image &image, const Launch &launch, const Options &options) {
  Result result;
#if defined(__AVX2__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    result.error = "the emulator was built for a processor with AVX2 and FMA, which this one has not";
    return result;
  }
#endif
  try {
    const Program &program = programOf(image, launch.entry);
    Launch l = launch;
    if (l.cluster == Dim{1, 1, 1})
      l.cluster = {program.fn->cluster[0], program.fn->cluster[1], program.fn->cluster[2]};
    checkDimensions(*program.fn, program, l);
    if (options.detect && l.cluster != Dim{1, 1, 1})
      throw Error("the detectors do not cover clusters of blocks");
    Grid grid{machine, image, program, l, options, parameterBuffer(*program.fn, l), {}};
    // Tensor maps among the parameters are aligned as the device aligns the buffer.
    uint64_t params = reinterpret_cast<uint64_t>(grid.params.data());
    grid.own.push_back({params, params + program.fn->paramBytes, "parameters"});
    for (auto &[name, bytes] : image.variableBytes) {
      uint64_t first = reinterpret_cast<uint64_t>(image.variables.at(name).get());
      grid.own.push_back({first, first + bytes, name});
    }
    try {
      runGrid(grid, clustersToRun(l, options), result);
    } catch (const Error &e) {
      throw Error("kernel '" + l.entry + "': " + e.what());
    }
  } catch (const Error &e) {
    result.error = e.what();
  }
  return result;
}

} // namespace gdn::emu
