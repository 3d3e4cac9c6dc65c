#include "bundle.h"

namespace gdn {
namespace {

std::string expected(const std::string &what, const std::string &range, uint64_t value) {
  return what + ": expected " + range + ", got " + std::to_string(value);
}

std::string checkMap(const KernelParam &param, const std::string &what) {
  if (param.columns == 0 || param.columns > 65536)
    return expected(what + " columns", "1 to 65536", param.columns);
  // A row of the box is swizzled over 128 bytes.
  uint32_t widest = param.element == ElementType::F32 ? 32 : 64;
  if (param.boxColumns == 0 || param.boxColumns > widest)
    return expected(what + " box columns", "1 to " + std::to_string(widest), param.boxColumns);
  if (param.boxRows == 0 || param.boxRows > 256)
    return expected(what + " box rows", "1 to 256", param.boxRows);
  return "";
}

std::string checkParam(const KernelParam &param) {
  std::string what = "parameter '" + param.name + "'";
  if (param.kind > KernelParam::Kind::Batch)
    return expected(what + " kind", "0 to 5", static_cast<uint8_t>(param.kind));
  if (param.name.empty())
    return "expected every parameter to have a name, got one without";
  if (param.element > ElementType::F16)
    return expected(what + " element type", "0 to 2", static_cast<uint8_t>(param.element));
  if (param.axis > 3)
    return expected(what + " axis", "0 to 3", param.axis);
  return param.kind == KernelParam::Kind::Map ? checkMap(param, what) : "";
}

std::string checkKey(const KernelKey &key) {
  if (key.operation.empty())
    return "expected an operation, got an empty name";
  if (smNumber(key.arch) == 0)
    return "expected an architecture like sm_90a, got '" + key.arch + "'";
  if (key.io > ElementType::F16)
    return expected("element type", "0 to 2", static_cast<uint8_t>(key.io));
  const std::pair<const char *, uint32_t> dims[] = {{"K", key.keyDim}, {"V", key.valueDim}, {"chunk", key.chunk}};
  for (auto [name, value] : dims)
    if (value == 0 || value > 65536)
      return expected(name, "1 to 65536", value);
  if (key.split == 0 || key.split > 64)
    return expected("split", "1 to 64", key.split);
  if (key.features >> featureNames.size())
    return expected("features", "bits of " + std::to_string((1u << featureNames.size()) - 1), key.features);
  return "";
}

} // namespace

std::string checkKernel(const Kernel &kernel) {
  if (std::string error = checkKey(kernel.key); !error.empty())
    return error;
  if (kernel.entry.empty())
    return "expected the name of an entry, got an empty one";
  if (kernel.threads == 0 || kernel.threads > 1024)
    return expected("threads", "1 to 1024", kernel.threads);
  if (kernel.sharedBytes > (1u << 20))
    return expected("shared memory", "at most 1048576 bytes", kernel.sharedBytes);
  if (kernel.params.size() > maxParams)
    return expected("parameters", "at most " + std::to_string(maxParams), kernel.params.size());
  size_t bytes = 0;
  for (const KernelParam &param : kernel.params) {
    if (std::string error = checkParam(param); !error.empty())
      return error;
    bytes = (bytes + param.alignment() - 1) / param.alignment() * param.alignment() + param.size();
  }
  return bytes > maxParamBytes ? expected("parameter bytes", "at most " + std::to_string(maxParamBytes), bytes) : "";
}

const char *describe(ElementType type) {
  return type == ElementType::F32 ? "fp32" : type == ElementType::BF16 ? "bf16" : "fp16";
}

std::string describeFeatures(uint8_t bits) {
  std::string text;
  for (size_t i = 0; i < featureNames.size(); ++i)
    if (bits >> i & 1)
      text += std::string(" ") + featureNames[i];
  return text;
}

std::string describe(const KernelKey &key) {
  return key.operation + " " + key.arch + " K=" + std::to_string(key.keyDim) + " V=" + std::to_string(key.valueDim) +
         " chunk=" + std::to_string(key.chunk) + " " + describe(key.io) + (key.stateVFirst ? " v-first" : " k-first") +
         " split=" + std::to_string(key.split) + describeFeatures(key.features) + (key.profile ? " profile" : "");
}

} // namespace gdn
