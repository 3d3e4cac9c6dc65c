// Kernels to pack: what the compiler would hand over, with images that are an ELF header and a few bytes.
#pragma once
#include "format/bundle.h"
#include <cstring>

namespace gdn::sample {

inline std::string cubin(uint32_t sm, std::string_view code, uint32_t abi = 8) {
  std::string image(64, '\0');
  image.replace(0, 7,
                "\x7f"
                "ELF\x02\x01\x01");
  image[8] = static_cast<char>(abi);
  image[18] = static_cast<char>(190); // EM_CUDA
  uint32_t flags = abi == 7 ? sm : sm << 8;
  std::memcpy(image.data() + 48, &flags, sizeof flags);
  return image.append(code);
}

inline KernelParam map(const char *name, uint32_t columns, ElementType io) {
  return {KernelParam::Kind::Map, name, 0, io, columns, 64, 64};
}
inline KernelParam pointer(const char *name) { return {KernelParam::Kind::Pointer, name}; }
inline KernelParam element(const char *name) { return {KernelParam::Kind::Element, name}; }
inline KernelParam stride(const char *name, uint8_t axis) { return {KernelParam::Kind::Stride, name, axis}; }
inline KernelParam batch(const char *name) { return {KernelParam::Kind::Batch, name}; }

// A forward kernel with every kind of parameter.
inline Kernel forward(KernelKey key) {
  Kernel kernel;
  kernel.key = key;
  kernel.entry = "forward_" + std::to_string(key.keyDim) + "_" + std::to_string(key.valueDim) + "_split" +
                 std::to_string(key.split) + (key.profile ? "_profile" : "");
  kernel.params = {map("q_in", key.keyDim, key.io), map("k_in", key.keyDim, key.io), map("v_in", key.valueDim, key.io),
                   map("o_out", key.valueDim, key.io)};
  for (const char *name : {"g_in", "beta_in", "s_in", "s_out"})
    kernel.params.insert(kernel.params.end(), {pointer(name), stride(name, 0), stride(name, 1), element(name)});
  kernel.params.push_back({KernelParam::Kind::Scalar, "scale"});
  for (const char *name : {"cu_seqlens", "cu_wide", "sequences", "length", "tokens", "heads", "ratio"})
    kernel.params.push_back(batch(name));
  if (key.profile)
    kernel.params.insert(kernel.params.end(), {pointer("clocks"), stride("clocks", 0)});
  kernel.threads = 384;
  kernel.sharedBytes = 200'000 + key.split;
  kernel.registers = 168;
  kernel.schedule = "split=" + std::to_string(key.split) + " aux=2";
  kernel.cubin = cubin(smNumber(key.arch), "code of " + kernel.entry);
  return kernel;
}

inline KernelKey key(uint32_t split = 1, bool profile = false) {
  KernelKey key;
  key.operation = "forward";
  key.arch = "sm_90a";
  key.keyDim = key.valueDim = 128;
  key.split = split;
  key.profile = profile;
  return key;
}

// Splits 1 and 2, a profiling variant; other dimensions in fp16 with workspace and PTX; another family.
inline std::vector<Kernel> kernels() {
  KernelKey other = key();
  other.keyDim = 96, other.valueDim = 192, other.io = ElementType::F16, other.stateVFirst = true;
  KernelKey family = key();
  family.arch = "sm_100f";
  std::vector<Kernel> all = {forward(key()), forward(key(2)), forward(key(1, true)), forward(other), forward(family)};
  all[3].workspaceBytes = 80;
  all[3].params.push_back(pointer("workspace"));
  all[3].ptx = "// PTX of the fourth";
  all[4].entry = "forward_family";
  return all;
}

inline constexpr const char *metadata = R"({"ptxas":"13.0.88","version":"0.1.0"})";

inline std::string bundle() { return *writeBundle(kernels(), metadata); }

} // namespace gdn::sample
