#include "tools/gdnc/Plan.h"
#include "compiler/config/Costs.h"
#include "tools/gdnc/Common.h"
#include <algorithm>
#include <fmt/ranges.h>
#include <set>

using namespace gdnc;

const char *const gdnc::forwardTemplate = "forward", *const gdnc::planTemplate = "plan";

std::filesystem::path gdnc::costsFile(const std::string &given) {
  return given.empty() ? dataFolder() / "coefs/h200.csv" : std::filesystem::path(given);
}

std::map<std::string, std::filesystem::path> gdnc::plannerFiles() {
  std::map<std::string, std::filesystem::path> files = {{"plan.cu", templateFile(planTemplate)},
                                                        {"work.h", dataFolder() / "runtime/format/work.h"}};
  for (auto &entry : std::filesystem::directory_iterator(dataFolder() / "templates/plan"))
    files["plan/" + entry.path().filename().string()] = entry.path();
  return files;
}

std::vector<Schedule> gdnc::servedSchedules() {
  std::vector<std::string> archs = servedArchs();
  std::vector<Schedule> schedules = readSchedules((dataFolder() / "coefs/schedule.csv").string());
  std::erase_if(schedules, [&](const Schedule &schedule) {
    return std::find(archs.begin(), archs.end(), schedule.arch) == archs.end();
  });
  return schedules;
}

std::optional<Model> gdnc::selectModel(const BuildOptions &options) {
  if (options.all)
    return std::nullopt;
  if (!options.config.empty())
    return parseModel(readFile(options.config), options.config);
  std::vector<Model> models = readModels((dataFolder() / "coefs/models.csv").string());
  std::vector<std::string> names;
  for (const Model &model : models) {
    if (model.name == options.model)
      return model;
    names.push_back(model.name);
  }
  throw ConfigError(fmt::format("--model: expected one of {}, got \"{}\"", fmt::join(names, ", "), options.model));
}

static void checkArchs(const std::vector<Schedule> &schedules, const std::vector<std::string> &archs) {
  std::set<std::string> served;
  for (const Schedule &schedule : schedules)
    served.insert(schedule.arch);
  for (const std::string &arch : archs)
    if (!served.contains(arch))
      throw ConfigError(fmt::format("--arch: expected one of {}, for which there are templates, got \"{}\"",
                                    fmt::join(served, ", "), arch));
}

// The rows for one architecture: those of the model's dimensions, if there is one, with a split that was asked for.
static std::vector<Schedule> selectSchedules(const std::vector<Schedule> &schedules, const std::string &arch,
                                             const std::optional<Model> &model, const std::vector<uint32_t> &splits) {
  std::vector<Schedule> rows;
  std::set<std::pair<uint32_t, uint32_t>> dims;
  std::set<uint32_t> served;
  for (const Schedule &schedule : schedules) {
    if (schedule.arch != arch)
      continue;
    dims.insert({schedule.keyDim, schedule.valueDim});
    if (model && (schedule.keyDim != model->keyDim || schedule.valueDim != model->valueDim))
      continue;
    served.insert(schedule.split);
    if (splits.empty() || std::find(splits.begin(), splits.end(), schedule.split) != splits.end())
      rows.push_back(schedule);
  }
  if (served.empty()) {
    std::vector<std::string> names;
    for (auto [keyDim, valueDim] : dims)
      names.push_back(fmt::format("K={} V={}", keyDim, valueDim));
    throw ConfigError(fmt::format("{}: expected dimensions served on {} ({}), got K={} V={}", model->where, arch,
                                  fmt::join(names, ", "), model->keyDim, model->valueDim));
  }
  for (uint32_t split : splits)
    if (!served.contains(split))
      throw ConfigError(fmt::format("--split: expected one of {}, served{} on {}, got {}", fmt::join(served, ", "),
                                    model ? fmt::format(" for K={} V={}", model->keyDim, model->valueDim) : "", arch,
                                    split));
  return rows;
}

static Variant makeVariant(const Schedule &schedule, const std::string &dtype, bool vFirst, uint8_t features,
                           bool profile) {
  Variant variant;
  gdn::KernelKey &key = variant.key;
  key.operation = forwardTemplate;
  key.arch = schedule.arch;
  key.keyDim = schedule.keyDim;
  key.valueDim = schedule.valueDim;
  key.io = dtype == "f16" ? gdn::ElementType::F16 : gdn::ElementType::BF16;
  key.stateVFirst = vFirst;
  key.split = schedule.split;
  key.features = features;
  key.profile = profile;
  variant.request.templateFile = templateFile(forwardTemplate).string();
  variant.request.arch = schedule.arch;
  variant.request.values = schedule.values;
  variant.request.values.insert({{"K", std::to_string(key.keyDim)},
                                 {"V", std::to_string(key.valueDim)},
                                 {"chunk", std::to_string(key.chunk)},
                                 {"io", dtype},
                                 {"v_first", vFirst ? "1" : "0"},
                                 {"split", std::to_string(key.split)},
                                 {"profile", profile ? "1" : "0"}});
  for (size_t i = 0; i < gdn::featureNames.size(); ++i)
    variant.request.values.insert({gdn::featureNames[i], features >> i & 1 ? "1" : "0"});
  for (auto &[name, value] : schedule.values)
    variant.schedule += fmt::format("{}{}={}", variant.schedule.empty() ? "" : " ", name, value);
  return variant;
}

// One serves all forward kernels of an architecture: it knows of K and V what it is told.
static Variant makePlanner(const std::string &arch, const std::map<std::string, uint32_t> &costs) {
  Variant variant;
  variant.key.operation = planTemplate;
  variant.key.arch = arch;
  variant.key.keyDim = variant.key.valueDim = 1;
  variant.request.templateFile = templateFile(planTemplate).string();
  variant.request.arch = arch;
  for (auto &[name, value] : costs) {
    variant.request.values[name] = std::to_string(value);
    variant.schedule += fmt::format("{}{}={}", variant.schedule.empty() ? "" : " ", name, value);
  }
  return variant;
}

// Every set of the features that were asked for, the empty one first.
static std::vector<uint8_t> featureSets(const std::vector<std::string> &names) {
  std::vector<uint8_t> sets = {0};
  for (size_t i = 0; i < gdn::featureNames.size(); ++i)
    if (std::find(names.begin(), names.end(), gdn::featureNames[i]) != names.end())
      for (size_t known = sets.size(), n = 0; n < known; ++n)
        sets.push_back(static_cast<uint8_t>(sets[n] | 1u << i));
  return sets;
}

std::vector<Variant> gdnc::planBuild(const BuildOptions &options, const std::optional<Model> &model) {
  std::vector<Schedule> schedules = servedSchedules();
  checkArchs(schedules, options.archs);
  const std::map<std::string, uint32_t> costs = readCosts(costsFile(options.costs).string());
  std::vector<Variant> variants;
  for (const std::string &arch : options.archs) {
    variants.push_back(makePlanner(arch, costs));
    for (const Schedule &schedule : selectSchedules(schedules, arch, model, options.splits))
      for (const std::string &dtype : options.dtypes)
        for (const std::string &state : options.states)
          for (uint8_t features : featureSets(options.features))
            for (bool profile : {false, true}) // others have no registers left for stamps
              if (!profile || (options.profile && dtype == "bf16" && !features))
                variants.push_back(makeVariant(schedule, dtype, state == "v-first", features, profile));
  }
  std::sort(variants.begin(), variants.end(), [](const Variant &a, const Variant &b) { return a.key < b.key; });
  auto twice =
      std::unique(variants.begin(), variants.end(), [](const Variant &a, const Variant &b) { return a.key == b.key; });
  variants.erase(twice, variants.end()); // an option's value was given twice
  return variants;
}
