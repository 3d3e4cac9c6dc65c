// Kernel arguments as they are written on the command line.
#pragma once
#include "Emulator.h"
#include <deque>
#include <iosfwd>

namespace gdn::emu {

class Arguments {
public:
  explicit Arguments(Machine &machine) : machine(machine) {}
  static const char *help();
  bool add(const std::string &text, std::string &error);
  std::vector<std::vector<uint8_t>> bytes() const { return params; }
  bool print(const std::string &nameAndCount, std::ostream &out, std::string &error) const;
  bool save(const std::string &nameAndFile, std::string &error) const;

private:
  struct Buffer {
    std::string name, type;
    size_t count = 0;
    std::vector<uint64_t> words; // eight bytes each, aligned for every element type; tensor maps need 16
    size_t offset = 0;           // to an address aligned to 256
    uint8_t *data() { return reinterpret_cast<uint8_t *>(words.data()) + offset; }
    const uint8_t *data() const { return const_cast<Buffer *>(this)->data(); }
  };
  bool scalar(const std::string &type, const std::string &value, std::string &error);
  bool buffer(const std::string &text, std::string &error);
  bool map(const std::string &text, std::string &error);
  const Buffer *find(const std::string &name) const;

  Machine &machine;
  std::vector<std::vector<uint8_t>> params;
  std::deque<Buffer> buffers; // addresses stay
};

} // namespace gdn::emu
