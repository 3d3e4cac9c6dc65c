#include "cubin.h"
#include <cstring>

namespace gdn {
namespace {

constexpr std::string_view elf64LittleEndian("\x7f"
                                             "ELF\x02\x01",
                                             6);
constexpr size_t abiOffset = 8, machineOffset = 18, flagsOffset = 48, headerSize = 64;
constexpr uint16_t machineCuda = 190;

} // namespace

std::string readCubin(std::string_view image, CubinInfo &info) {
  if (image.size() < headerSize)
    return "expected an ELF header of 64 bytes, got " + std::to_string(image.size()) + " bytes";
  if (!image.starts_with(elf64LittleEndian))
    return "expected a little-endian ELF64 image, got other leading bytes";
  uint16_t machine;
  uint32_t flags;
  std::memcpy(&machine, image.data() + machineOffset, sizeof machine);
  std::memcpy(&flags, image.data() + flagsOffset, sizeof flags);
  if (machine != machineCuda)
    return "expected ELF machine 190 (CUDA), got " + std::to_string(machine);
  info.abi = static_cast<unsigned char>(image[abiOffset]);
  // Up to ABI 7 the SM number fills the lowest byte of e_flags; ABI 8 moved it up by one byte.
  if (info.abi != 7 && info.abi != 8)
    return "expected CUDA ELF ABI version 7 or 8, got " + std::to_string(info.abi);
  info.sm = (info.abi == 7 ? flags : flags >> 8) & 0xff;
  return "";
}

uint32_t minimumDriver(uint32_t abi) { return abi <= 7 ? 12000 : 13000; }

uint32_t smNumber(std::string_view arch) {
  if (!arch.starts_with("sm_"))
    return 0;
  arch.remove_prefix(3);
  uint32_t number = 0;
  size_t digits = 0;
  for (; digits < arch.size() && digits < 3 && arch[digits] >= '0' && arch[digits] <= '9'; ++digits)
    number = number * 10 + static_cast<uint32_t>(arch[digits] - '0');
  std::string_view suffix = arch.substr(digits);
  return suffix.empty() || suffix == "a" || suffix == "f" ? number : 0;
}

} // namespace gdn
