// Runs PTX given as text.
#pragma once
#include "Emulator.h"
#include <cstring>
#include <gtest/gtest.h>

namespace gdn::emu::test {

inline std::string module(const std::string &body) { return ".version 8.6\n.target sm_90a\n.address_size 64\n" + body; }

template <class T> std::vector<uint8_t> param(const T &value) {
  std::vector<uint8_t> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Memory that a kernel may use, at an address that is a multiple of 256.
template <class T> class Buffer {
public:
  Buffer(Machine &machine, size_t count, T fill = {}) : count(count), words(count * sizeof(T) / 8 + 40) {
    size_t misaligned = reinterpret_cast<uintptr_t>(words.data()) % 256;
    base = reinterpret_cast<T *>(reinterpret_cast<uint8_t *>(words.data()) + (256 - misaligned) % 256);
    for (size_t n = 0; n < count; n++)
      base[n] = fill;
    machine.map(base, count * sizeof(T), "buffer");
  }
  T &operator[](size_t n) { return base[n]; }
  T *data() { return base; }
  size_t size() const { return count; }

private:
  size_t count;
  std::vector<uint64_t> words;
  T *base;
};

struct Outcome {
  std::string error;
  Counts counts;
};

inline Outcome run(const Machine &machine, const std::string &ptx, const Launch &what, const Options &options = {}) {
  std::string error;
  auto image = loadPtx(ptx, error);
  if (!image)
    return {error, {}};
  Result result = launch(machine, *image, what, options);
  return {result.error, result.counts};
}

// A kernel around `body`, which has registers, 4 KB of shared memory from %base on and the address of `out` at hand.
inline std::string kernelOf(const std::string &body) {
  return module(
      ".extern .shared .align 1024 .b8 s[];\n.visible .entry k(.param .u64 out) {\n.reg .b64 %out, %d<9>;\n"
      ".reg .b32 %tid, %lane, %id, %base, %r<32>;\n.reg .pred %p, %q, %first, %done;\nld.param.u64 %out, [out];\n"
      "mov.u32 %tid, %tid.x;\nmov.u32 %lane, %laneid;\nmov.u32 %id, %ctaid.x;\nmov.u32 %base, s;\n"
      "setp.eq.u32 %first, %tid, 0;\n" +
      body + "ret;\n}\n");
}

// What the kernel leaves in `out`, 16 KB.
inline std::vector<uint32_t> outcome(const std::string &body, unsigned blocks, unsigned threads, Options options = {},
                                     Dim cluster = {1, 1, 1}) {
  Machine machine;
  Buffer<uint32_t> out(machine, 4096);
  Launch what;
  what.entry = "k";
  what.grid = {blocks, 1, 1}, what.block = {threads, 1, 1}, what.cluster = cluster;
  what.sharedBytes = 4096;
  what.params = {param(out.data())};
  EXPECT_EQ(run(machine, kernelOf(body), what, options).error, "");
  return {out.data(), out.data() + 4096};
}

} // namespace gdn::emu::test
