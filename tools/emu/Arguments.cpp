#include "Arguments.h"
#include "Exec.h"
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

namespace gdn::emu {
namespace {

std::vector<std::string> split(const std::string &text, char by) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, by);)
    parts.push_back(part);
  return parts;
}

template <class T> bool number(const std::string &text, T &value) {
  std::stringstream stream(text);
  return bool(stream >> value) && stream.eof();
}

std::vector<uint64_t> numbers(const std::string &text) {
  std::vector<uint64_t> list;
  for (auto &part : split(text, 'x')) {
    uint64_t n = 0;
    list.push_back(number(part, n) ? n : 0);
  }
  return list;
}

void put(uint8_t *p, Type t, double value) {
  auto as = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  switch (t) {
  case Type::F32:
    return as(float(value));
  case Type::F64:
    return as(value);
  case Type::F16:
    return as(floatToHalf(float(value)));
  case Type::BF16:
    return as(floatToBf16(float(value)));
  default:
    return withInteger(t, [&](auto z) { as(decltype(z)(int64_t(value))); });
  }
}
double get(const uint8_t *p, Type t) {
  auto as = [&](auto x) {
    std::memcpy(&x, p, sizeof x);
    return x;
  };
  switch (t) {
  case Type::F32:
    return as(0.0f);
  case Type::F64:
    return as(0.0);
  case Type::F16:
    return halfToFloat(as(uint16_t()));
  case Type::BF16:
    return bf16ToFloat(as(uint16_t()));
  default:
    return withInteger(t, [&](auto z) { return double(as(z)); });
  }
}

} // namespace

const char *Arguments::help() {
  return "an argument of the entry, in order: TYPE=VALUE, a scalar (u32=5, f32=0.5); "
         "buffer=NAME:TYPE:COUNT[:zeros|ones|"
         "nan|iota|randn|FILE], the address of a new buffer; buffer=NAME, of one made before; "
         "map=NAME,dims=AxB,strides=BYTES,box=AxB[,swizzle=32|64|128], a tensor map over a buffer, innermost first";
}

bool Arguments::scalar(const std::string &type, const std::string &value, std::string &error) {
  Type t = typeNamed(type);
  double x = 0;
  long long whole = 0;
  if (t == Type::None || t == Type::Pred || sizeOf(t) > 8)
    return error = "unknown type '" + type + "'", false;
  params.emplace_back(sizeOf(t));
  if (!isFloat(t) && number(value, whole))
    std::memcpy(params.back().data(), &whole, sizeOf(t));
  else if (isFloat(t) && number(value, x))
    put(params.back().data(), t, x);
  else
    return error = "expected a number, got '" + value + "'", false;
  return true;
}

const Arguments::Buffer *Arguments::find(const std::string &name) const {
  for (auto &b : buffers)
    if (b.name == name)
      return &b;
  return nullptr;
}

bool Arguments::buffer(const std::string &text, std::string &error) {
  auto parts = split(text, ':');
  const Buffer *known = find(parts.empty() ? "" : parts[0]);
  if (parts.size() > 1) {
    Type t = typeNamed(parts[1]);
    Buffer b;
    if (known || t == Type::None || t == Type::Pred || sizeOf(t) > 8 || parts.size() < 3 ||
        !number(parts[2], b.count) || b.count > size_t(1) << 32)
      return error = "expected NAME:TYPE:COUNT[:FILL] with a new name", false;
    b.name = parts[0], b.type = parts[1];
    b.words.resize(b.count * sizeOf(t) / 8 + 40);
    b.offset = (256 - reinterpret_cast<uintptr_t>(b.words.data()) % 256) % 256;
    buffers.push_back(std::move(b));
    Buffer &made = buffers.back();
    std::string fill = parts.size() > 3 ? parts[3] : "zeros";
    std::mt19937_64 random(buffers.size());
    std::normal_distribution<double> normal;
    bool named = fill == "zeros" || fill == "ones" || fill == "nan" || fill == "iota" || fill == "randn";
    std::ifstream file;
    if (!named) {
      file.open(fill, std::ios::binary);
      if (!file.read(reinterpret_cast<char *>(made.data()), std::streamsize(made.count * sizeOf(t))))
        return error = "cannot read " + std::to_string(made.count * sizeOf(t)) + " bytes from '" + fill + "'", false;
    }
    if (fill == "nan")
      std::memset(made.data(), 0xff, made.count * sizeOf(t));
    for (size_t n = 0; named && fill != "nan" && n < made.count; n++)
      put(made.data() + n * sizeOf(t), t,
          fill == "randn"  ? normal(random)
          : fill == "iota" ? double(n)
                           : fill == "ones");
    machine.map(made.data(), made.count * sizeOf(t), made.name);
    known = &made;
  }
  if (!known)
    return error = "no buffer of that name was made before", false;
  uint64_t address = reinterpret_cast<uint64_t>(known->data());
  params.emplace_back(8);
  std::memcpy(params.back().data(), &address, 8);
  return true;
}

bool Arguments::map(const std::string &text, std::string &error) {
  auto parts = split(text, ',');
  const Buffer *b = find(parts.empty() ? "" : parts[0]);
  if (!b)
    return error = "no buffer of that name was made before", false;
  TensorMapSpec spec;
  spec.base = reinterpret_cast<uint64_t>(b->data());
  spec.elementBytes = sizeOf(typeNamed(b->type));
  for (size_t n = 1; n < parts.size(); n++) {
    auto pair = split(parts[n], '=');
    auto list = pair.size() == 2 ? numbers(pair[1]) : std::vector<uint64_t>();
    if (list.empty() || list.size() > 5)
      return error = "expected KEY=AxBxC with up to five numbers, got '" + parts[n] + "'", false;
    for (size_t d = 0; d < list.size(); d++) {
      if (pair[0] == "dims")
        spec.dims[d] = list[d], spec.rank = unsigned(list.size());
      else if (pair[0] == "strides" && d < 4)
        spec.strides[d] = list[d];
      else if (pair[0] == "box")
        spec.box[d] = uint32_t(list[d]);
      else if (pair[0] == "swizzle")
        spec.swizzle = list[d] == 128 ? 3 : list[d] == 64 ? 2 : list[d] == 32 ? 1 : 0;
      else
        return error = "unknown key '" + pair[0] + "'", false;
    }
  }
  alignas(64) uint8_t encoded[128];
  error = encodeTensorMap(encoded, spec);
  params.emplace_back(encoded, encoded + sizeof encoded);
  return error.empty();
}

bool Arguments::add(const std::string &text, std::string &error) {
  size_t equals = text.find('=');
  if (equals == text.npos)
    return error = "expected KIND=VALUE", false;
  std::string kind = text.substr(0, equals), value = text.substr(equals + 1);
  return kind == "buffer" ? buffer(value, error) : kind == "map" ? map(value, error) : scalar(kind, value, error);
}

bool Arguments::print(const std::string &nameAndCount, std::ostream &out, std::string &error) const {
  auto parts = split(nameAndCount, ':');
  const Buffer *b = find(parts.empty() ? "" : parts[0]);
  size_t count = b ? b->count : 0, wanted = 0;
  if (!b || (parts.size() > 1 && !number(parts[1], wanted)))
    return error = "expected NAME or NAME:COUNT of a buffer, got '" + nameAndCount + "'", false;
  Type t = typeNamed(b->type);
  for (size_t n = 0; n < (parts.size() > 1 ? std::min(count, wanted) : count); n++)
    out << (n ? " " : "") << get(b->data() + n * sizeOf(t), t);
  out << "\n";
  return true;
}

bool Arguments::save(const std::string &nameAndFile, std::string &error) const {
  auto parts = split(nameAndFile, '=');
  const Buffer *b = parts.size() == 2 ? find(parts[0]) : nullptr;
  if (!b)
    return error = "expected NAME=FILE of a buffer, got '" + nameAndFile + "'", false;
  std::ofstream file(parts[1], std::ios::binary);
  if (!file.write(reinterpret_cast<const char *>(b->data()), std::streamsize(b->count * sizeOf(typeNamed(b->type)))))
    return error = "cannot write '" + parts[1] + "'", false;
  return true;
}

} // namespace gdn::emu
