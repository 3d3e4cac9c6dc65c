#include "tests/device/calibration.h"
#include "tests/reference/generate.h"
#include "tests/reference/numbers.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace gdn::device {

namespace {

using reference::Recipe;

// The benchmark's mix, and what it leaves out of decays, strengths and keys.
std::vector<std::pair<const char *, Recipe>> recipes() {
  std::vector<std::pair<const char *, Recipe>> list;
  auto add = [&](const char *name) -> Recipe & {
    list.emplace_back(name, Recipe{});
    Recipe &recipe = list.back().second;
    recipe.valueHeads = 2;
    recipe.lengths = {130};
    return recipe;
  };
  add("mix");
  add("no decay").gates = Recipe::Gates::Constant;
  Recipe &strong = add("strong decay");
  strong.gates = Recipe::Gates::Softplus;
  strong.gate = 16;
  Recipe &over = add("beta to 2");
  over.beta = Recipe::Beta::Uniform;
  over.strength = 2;
  add("keys alike").correlation = 0.9f;
  return list;
}

// As an integer whose order is that of the values, -0 right below 0.
template <typename Bits> int64_t ordered(Bits bits) {
  constexpr Bits sign = Bits(1) << (8 * sizeof(Bits) - 1);
  return bits & sign ? ~int64_t(bits & ~sign) : int64_t(bits);
}

struct Difference {
  size_t count = 0, differ = 0, nanBits = 0, past = 0, first = 0;
  int64_t ulps = 0;          // the most
  double relative = 0;       // in the Frobenius norm
  uint64_t bits[2] = {0, 0}; // of the first that differs
};

template <typename Bits> Difference differenceOf(const Section &device, const Section &emulator) {
  Difference d;
  d.count = device.bytes.size() / sizeof(Bits);
  d.past = device.bytes.size() != emulator.bytes.size();
  if (d.past)
    return d;
  std::vector<float> x = reference::decode(device.type, device.bytes.data(), d.count),
                     y = reference::decode(device.type, emulator.bytes.data(), d.count);
  double difference = 0, norm = 0;
  for (size_t n = 0; n < d.count; ++n) {
    Bits bits[2];
    std::memcpy(&bits[0], &device.bytes[n * sizeof(Bits)], sizeof(Bits));
    std::memcpy(&bits[1], &emulator.bytes[n * sizeof(Bits)], sizeof(Bits));
    if (std::isfinite(y[n]))
      norm += double(y[n]) * y[n];
    if (bits[0] == bits[1])
      continue;
    if (std::isnan(x[n]) && std::isnan(y[n])) {
      ++d.nanBits;
      continue;
    }
    if (!d.differ++)
      d.first = n, d.bits[0] = bits[0], d.bits[1] = bits[1];
    int64_t ulps = std::isnan(x[n]) || std::isnan(y[n]) ? INT32_MAX : std::abs(ordered(bits[0]) - ordered(bits[1]));
    double error = std::fabs(double(x[n]) - y[n]);
    d.ulps = std::max(d.ulps, ulps);
    d.past += ulps > device.ulps && !(error <= device.absolute);
    difference += error * error;
  }
  d.relative = difference == 0 ? 0 : norm > 0 ? std::sqrt(difference / norm) : INFINITY;
  return d;
}

} // namespace

Record recordForward(const gpu::Gpu &gpu, const gpu::Bundle &bundle) {
  Record record;
  for (size_t i = 0; i < bundle.size(); ++i) {
    gdn_kernel_info info = bundle.kernel(i);
    if (info.profile)
      continue;
    for (auto &[kind, recipe] : recipes()) {
      recipe.io = ElementType(info.io);
      recipe.keyDim = uint32_t(info.key_dim);
      recipe.valueDim = uint32_t(info.value_dim);
      Storage storage;
      storage.valueFirst = info.state_layout == GDN_V_FIRST;
      storage.split = uint32_t(info.split);
      reference::Problem problem = reference::generate(recipe, 1);
      uint64_t inputs = 0;
      for (auto *values : {&problem.q, &problem.k, &problem.v, &problem.g, &problem.beta, &problem.state})
        inputs = hashed(*values, inputs);
      Outcome outcome = Call(gpu, bundle, problem, storage).run();
      std::string name = std::to_string(recipe.keyDim) + "x" + std::to_string(recipe.valueDim) + " " +
                         reference::name(recipe.io) + (storage.valueFirst ? " v-first" : " k-first") + " split " +
                         std::to_string(storage.split) + ", " + kind;
      record[name + ": o"] = {recipe.io, 0, 0, inputs, reference::encode(recipe.io, outcome.output)};
      record[name + ": state"] = {ElementType::F32, 0, 0, inputs, reference::encode(ElementType::F32, outcome.state)};
    }
  }
  return record;
}

Record digest(Record record) {
  std::erase_if(record, [](auto &entry) { return entry.second.ulps || entry.second.absolute; });
  for (auto &[name, section] : record) {
    section.hash = hashed(section.bytes);
    section.bytes.clear();
  }
  return record;
}

// Each section is a line "type ulps absolute inputs hash bytes name" and the bytes.
void save(const Record &record, const std::string &path) {
  std::ofstream file(path, std::ios::binary);
  file.precision(17);
  for (auto &[name, s] : record) {
    file << int(s.type) << ' ' << s.ulps << ' ' << s.absolute << ' ' << s.inputs << ' ' << s.hash << ' '
         << s.bytes.size() << ' ' << name << '\n';
    file.write(reinterpret_cast<const char *>(s.bytes.data()), std::streamsize(s.bytes.size()));
  }
  if (!file.flush())
    throw gpu::Error("cannot write " + path);
}

Record load(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  Record record;
  int type;
  size_t size;
  std::string name;
  for (Section s;
       file >> type >> s.ulps >> s.absolute >> s.inputs >> s.hash >> size && std::getline(file >> std::ws, name);) {
    s.type = ElementType(type);
    s.bytes.resize(size);
    file.read(reinterpret_cast<char *>(s.bytes.data()), std::streamsize(size));
    record[name] = s;
  }
  if (record.empty() || !file.eof())
    throw gpu::Error(path + ": expected a record");
  return record;
}

bool compare(const Record &device, const Record &emulator) {
  std::printf("%-60s %9s %9s %8s %10s %9s\n", "", "elements", "differ", "NaN bits", "ulps", "relative");
  size_t failed = 0, equal = 0;
  for (auto &[name, section] : device) {
    auto other = emulator.find(name);
    bool comparable = other != emulator.end() && other->second.inputs == section.inputs;
    if (!comparable || section.bytes.empty()) {
      bool same = comparable && section.hash == hashed(other->second.bytes);
      std::printf("%-60s %s\n", name.c_str(),
                  same         ? "the same bits"
                  : comparable ? "OTHER BITS"
                               : "not in the emulator's record, or of other inputs");
      same ? ++equal : ++failed;
      continue;
    }
    Difference d = section.type == ElementType::F32 ? differenceOf<uint32_t>(section, other->second)
                                                    : differenceOf<uint16_t>(section, other->second);
    failed += d.past > 0;
    equal += !d.differ && !d.nanBits;
    std::printf("%-60s %9zu %9zu %8zu %10lld %9.1e%s\n", name.c_str(), d.count, d.differ, d.nanBits, (long long)d.ulps,
                d.relative, d.past ? "  PAST THE BOUND" : "");
    if (d.differ)
      std::printf("    element %zu: device %llx, emulator %llx\n", d.first, (unsigned long long)d.bits[0],
                  (unsigned long long)d.bits[1]);
  }
  std::printf("%zu of %zu sections have the same bits, %zu are past their bound\n", equal, device.size(), failed);
  return failed == 0;
}

} // namespace gdn::device
