#include "compiler/config/Model.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace gdnc;
using nlohmann::json;

namespace {

constexpr uint32_t maxHeads = 65536, maxDim = 4096;

// A value in a config.json, and how messages name it.
struct Entry {
  const json *value = nullptr;
  std::string path; // "config.json:/text_config/linear_num_key_heads"

  explicit operator bool() const { return value; }
};

class Reader {
public:
  Reader(const json &root, std::string file) : file(std::move(file)) {
    objects.push_back({&root, ""});
    if (auto text = root.find("text_config"); text != root.end()) {
      if (!text->is_object())
        fail({&*text, this->file + ":/text_config"}, "an object");
      objects.push_back({&*text, "/text_config"});
    }
  }

  // The key's value, at the top or in text_config; null counts as absent. Both may have it if they agree.
  Entry find(const char *key) const {
    Entry found;
    for (auto &[object, pointer] : objects) {
      auto value = object->find(key);
      if (value == object->end() || value->is_null())
        continue;
      Entry entry{&*value, fmt::format("{}:{}/{}", file, pointer, key)};
      if (found && *found.value != *value)
        fail(entry, fmt::format("{} as at {}", found.value->dump(), found.path));
      found = entry;
    }
    return found;
  }

  uint32_t number(const char *key, uint32_t limit) const {
    Entry entry = find(key);
    if (!entry)
      throw ConfigError(fmt::format("{}:{}/{}: expected a whole number from 1 to {}, got nothing", file,
                                    objects.back().second, key, limit));
    const json &value = *entry.value;
    if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > limit)
      fail(entry, fmt::format("a whole number from 1 to {}", limit));
    return value.get<uint32_t>();
  }

  [[noreturn]] static void fail(const Entry &entry, const std::string &expected) {
    std::string got = entry.value->dump(-1, ' ', false, json::error_handler_t::replace);
    if (got.size() > 60)
      got = got.substr(0, 57) + "...";
    throw ConfigError(fmt::format("{}: expected {}, got {}", entry.path, expected, got));
  }

private:
  std::string file;
  std::vector<std::pair<const json *, std::string>> objects;
};

json parseObject(const std::string &text, const std::string &file) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error &error) {
    std::string message = error.what();
    constexpr std::string_view marker = "parse error";
    if (size_t at = message.find(marker, message.find(']')); at != std::string::npos)
      message = message.substr(at + marker.size() + 1);
    throw ConfigError(fmt::format("{}: expected JSON, {}", file, message));
  }
  if (!root.is_object())
    Reader::fail({&root, file + ":/"}, "an object");
  return root;
}

Model readHuggingFace(const Reader &reader) {
  Model model;
  model.keyHeads = reader.number("linear_num_key_heads", maxHeads);
  model.valueHeads = reader.number("linear_num_value_heads", maxHeads);
  model.keyDim = reader.number("linear_key_head_dim", maxDim);
  model.valueDim = reader.number("linear_value_head_dim", maxDim);
  model.where = reader.find("linear_key_head_dim").path;
  return model;
}

Model readFla(const Reader &reader) {
  Model model;
  model.keyHeads = reader.number("num_heads", maxHeads);
  model.valueHeads = reader.find("num_v_heads") ? reader.number("num_v_heads", maxHeads) : model.keyHeads;
  model.keyDim = reader.number("head_dim", maxDim);
  model.where = reader.find("head_dim").path;
  double expand = 2; // the layer's own default
  if (Entry entry = reader.find("expand_v")) {
    if (!entry.value->is_number() || !(entry.value->get<double>() > 0))
      Reader::fail(entry, "a number above zero");
    expand = entry.value->get<double>();
    double valueDim = model.keyDim * expand;
    if (valueDim != std::floor(valueDim) || valueDim > maxDim)
      Reader::fail(entry, fmt::format("a factor that makes head_dim {} a whole number up to {}", model.keyDim, maxDim));
  }
  model.valueDim = static_cast<uint32_t>(model.keyDim * expand);
  return model;
}

void checkLayerTypes(const Reader &reader) {
  Entry types = reader.find("layer_types");
  if (types && types.value->is_array() &&
      std::find(types.value->begin(), types.value->end(), "linear_attention") == types.value->end())
    Reader::fail(types, "at least one \"linear_attention\"");
}

} // namespace

Model gdnc::parseModel(const std::string &text, const std::string &file) {
  json root = parseObject(text, file);
  Reader reader(root, file);
  Entry huggingFace, fla = reader.find("num_heads");
  for (const char *key :
       {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"})
    if (!huggingFace)
      huggingFace = reader.find(key);
  if (huggingFace && fla)
    Reader::fail(fla, fmt::format("no num_heads beside {}", huggingFace.path));
  if (!huggingFace && !fla)
    throw ConfigError(fmt::format(
        "{}:/: expected linear_num_key_heads, linear_num_value_heads, linear_key_head_dim and linear_value_head_dim, "
        "or num_heads and head_dim, at the top or in text_config, got none of them",
        file));
  checkLayerTypes(reader);
  Model model = huggingFace ? readHuggingFace(reader) : readFla(reader);
  if (model.valueHeads % model.keyHeads != 0) {
    const char *key = huggingFace ? "linear_num_value_heads" : "num_v_heads";
    Reader::fail(reader.find(key), fmt::format("a multiple of the {} k-heads", model.keyHeads));
  }
  return model;
}

std::vector<Model> gdnc::readModels(const std::string &path) {
  std::vector<Model> models;
  for (const CsvRow &row : readCsv(path))
    models.push_back({row.text("model"), row.text("model"), row.number("num_key_heads"), row.number("num_value_heads"),
                      row.number("key_dim"), row.number("value_dim")});
  return models;
}

Model gdnc::divideHeads(const Model &model, uint32_t ranks) {
  Model divided = model;
  divided.keyHeads /= ranks;
  divided.valueHeads /= ranks;
  if (divided.keyHeads * ranks == model.keyHeads && divided.valueHeads * ranks == model.valueHeads)
    return divided;
  std::vector<uint32_t> allowed;
  for (uint32_t i = 1, common = std::gcd(model.keyHeads, model.valueHeads); i <= common; ++i)
    if (common % i == 0)
      allowed.push_back(i);
  throw ConfigError(fmt::format("--tp: expected a divisor of the {} k-heads and {} v-heads ({}), got {}",
                                model.keyHeads, model.valueHeads, fmt::join(allowed, ", "), ranks));
}
