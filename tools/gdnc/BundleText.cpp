#include "tools/gdnc/BundleText.h"
#include "tools/gdnc/Common.h"
#include <cstring>
#include <elf.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;

std::unique_ptr<LoadedBundle> gdnc::parseLoaded(std::string bytes, const std::string &path) {
  auto loaded = std::make_unique<LoadedBundle>();
  loaded->bytes = std::move(bytes);
  gdn::BundleResult<gdn::Bundle> bundle = gdn::parseBundle(loaded->bytes);
  if (!bundle)
    throw Failure(CheckMismatch, "{}: {}", path, bundle.error().text);
  loaded->bundle = std::move(*bundle);
  return loaded;
}

std::unique_ptr<LoadedBundle> gdnc::loadBundle(const std::string &path) { return parseLoaded(readFile(path), path); }

uint64_t gdnc::codeBytes(std::string_view image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof header)
    return 0;
  std::memcpy(&header, image.data(), sizeof header);
  if (header.e_shoff > image.size() || header.e_shnum > (image.size() - header.e_shoff) / sizeof(Elf64_Shdr))
    return 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_flags & SHF_EXECINSTR)
      bytes += section.sh_size;
  }
  return bytes;
}

std::string gdnc::driverNeeded(const gdn::Bundle &bundle) {
  uint32_t cuda = 0;
  for (const gdn::BundleKernel &kernel : bundle.kernels)
    cuda = std::max(cuda, gdn::minimumDriver(kernel.elf.abi));
  return fmt::format("CUDA {}.{} (driver {} or newer)", cuda / 1000, cuda % 1000 / 10, cuda < 13000 ? 525 : 580);
}

static std::vector<std::string> featureList(const gdn::KernelKey &key) {
  std::vector<std::string> names;
  for (size_t i = 0; i < gdn::featureNames.size(); ++i)
    if (key.features >> i & 1)
      names.push_back(gdn::featureNames[i]);
  return names;
}

std::string gdnc::featureText(const gdn::KernelKey &key) {
  return key.features ? fmt::format("{}", fmt::join(featureList(key), " ")) : "-";
}

json gdnc::kernelJson(const gdn::BundleKernel &entry) {
  const gdn::Kernel &kernel = entry.kernel;
  const gdn::KernelKey &key = kernel.key;
  return {{"operation", key.operation},
          {"arch", key.arch},
          {"key_dim", key.keyDim},
          {"value_dim", key.valueDim},
          {"chunk", key.chunk},
          {"io", gdn::describe(key.io)},
          {"state", key.stateVFirst ? "v-first" : "k-first"},
          {"split", key.split},
          {"features", featureList(key)},
          {"profile", key.profile},
          {"entry", kernel.entry},
          {"schedule", kernel.schedule},
          {"threads", kernel.threads},
          {"registers", kernel.registers},
          {"shared_bytes", kernel.sharedBytes},
          {"spill_bytes", kernel.spillBytes},
          {"stack_bytes", kernel.stackBytes},
          {"workspace_bytes", kernel.workspaceBytes},
          {"code_bytes", codeBytes(entry.cubin.bytes)},
          {"image_bytes", entry.cubin.bytes.size()},
          {"image_hash", fmt::format("{:016x}", entry.cubin.hash)},
          {"ptx", entry.ptx.has_value()},
          {"elf_abi", entry.elf.abi}};
}

const TableRow gdnc::kernelHead = {"kernel",   "target",  "K",       "V",         "io",     "state",  "split",
                                   "features", "profile", "threads", "registers", "shared", "spills", "code bytes"};

TableRow gdnc::kernelRow(const gdn::BundleKernel &entry) {
  const gdn::Kernel &kernel = entry.kernel;
  const gdn::KernelKey &key = kernel.key;
  auto ofForward = [&](const std::string &value) { return key.operation == "plan" ? "-" : value; };
  return {key.operation,
          key.arch,
          ofForward(std::to_string(key.keyDim)),
          ofForward(std::to_string(key.valueDim)),
          ofForward(gdn::describe(key.io)),
          ofForward(key.stateVFirst ? "v-first" : "k-first"),
          ofForward(std::to_string(key.split)),
          ofForward(featureText(key)),
          ofForward(key.profile ? "yes" : "no"),
          std::to_string(kernel.threads),
          std::to_string(kernel.registers),
          std::to_string(kernel.sharedBytes),
          std::to_string(kernel.spillBytes),
          std::to_string(codeBytes(entry.cubin.bytes))};
}
