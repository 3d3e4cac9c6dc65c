#include "tools/gdnc/BundleText.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Run.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;

namespace {

struct DiffOptions {
  std::string before, after;
  double threshold = 0;
  bool json = false;
};

struct Change {
  std::string kernel, metric;
  double before = 0, after = 0;

  // Growth from nothing is past every threshold.
  bool grewPast(double percent) const { return after > before && 100 * (after - before) > percent * before; }
  std::string percent() const { return before ? fmt::format("{:+.1f}%", 100 * (after - before) / before) : "new"; }
};

struct Comparison {
  std::vector<Change> changes;
  std::vector<std::string> removed, added;
  size_t compared = 0;
  bool work = false; // work counts were compared too
};

// What a kernel costs, by name; less is better everywhere.
using Metrics = std::map<std::string, double>;

std::map<gdn::KernelKey, Metrics> measure(const LoadedBundle &loaded) {
  std::map<gdn::KernelKey, Metrics> kernels;
  for (const gdn::BundleKernel &kernel : loaded.bundle.kernels) {
    json description = kernelJson(kernel);
    for (const char *name : {"registers", "spill_bytes", "stack_bytes", "shared_bytes", "code_bytes"})
      kernels[kernel.kernel.key][name] = description[name];
  }
  return kernels;
}

// 16 chunks of two heads. Both bundles are run by this gdnc's emulator, so that a change of how it counts is none of
// theirs; that is why bundles do not store counts.
void addWork(const LoadedBundle &loaded, std::map<gdn::KernelKey, Metrics> &kernels) {
  useEmulator();
  for (const RunResult &result : runForward(loaded.bytes, 1, 2, 1024).results)
    for (auto &[name, count] : result.work)
      kernels[loaded.bundle.kernels[result.kernel].kernel.key]["work." + name] = count;
}

bool carriesPtx(const LoadedBundle &loaded) {
  auto &kernels = loaded.bundle.kernels;
  return std::all_of(kernels.begin(), kernels.end(), [](auto &kernel) { return kernel.ptx.has_value(); });
}

Comparison compare(const LoadedBundle &before, const LoadedBundle &after) {
  Comparison comparison;
  auto old = measure(before), now = measure(after);
  comparison.work = carriesPtx(before) && carriesPtx(after);
  if (comparison.work) {
    addWork(before, old);
    addWork(after, now);
  }
  for (auto &[key, was] : old) {
    auto match = now.find(key);
    if (match == now.end()) {
      comparison.removed.push_back(gdn::describe(key));
      continue;
    }
    ++comparison.compared;
    Metrics &is = match->second;
    for (auto &[metric, value] : is) // what only the other kernel has is 0 here
      was[metric];
    for (auto &[metric, value] : was)
      if (value != is[metric])
        comparison.changes.push_back({gdn::describe(key), metric, value, is[metric]});
  }
  for (auto &[key, is] : now)
    if (!old.contains(key))
      comparison.added.push_back(gdn::describe(key));
  return comparison;
}

void print(const Comparison &comparison, double threshold) {
  std::vector<TableRow> rows{{"kernel", "metric", "old", "new", "change", ""}};
  for (const Change &change : comparison.changes)
    rows.push_back({change.kernel, change.metric, fmt::format("{}", change.before), fmt::format("{}", change.after),
                    change.percent(), change.grewPast(threshold) ? "past the threshold" : ""});
  if (rows.size() > 1)
    fmt::print("{}", formatTable(rows));
  for (const std::string &name : comparison.removed)
    fmt::print("only in old: {}\n", name);
  for (const std::string &name : comparison.added)
    fmt::print("only in new: {}\n", name);
  fmt::print("{} kernels compared, {} differences\n", comparison.compared, comparison.changes.size());
  if (!comparison.work)
    fmt::print("work counts were not compared: both bundles must be built --with-ptx\n");
}

void printJson(const Comparison &comparison, double threshold) {
  json changes = json::array();
  for (const Change &change : comparison.changes)
    changes.push_back({{"kernel", change.kernel},
                       {"metric", change.metric},
                       {"old", change.before},
                       {"new", change.after},
                       {"regression", change.grewPast(threshold)}});
  json report = {{"compared", comparison.compared}, {"changes", std::move(changes)}, {"removed", comparison.removed},
                 {"added", comparison.added},       {"work", comparison.work},       {"threshold_percent", threshold}};
  fmt::print("{}\n", report.dump(2));
}

void runDiff(const DiffOptions &options) {
  auto before = loadBundle(options.before), after = loadBundle(options.after);
  Comparison comparison = compare(*before, *after);
  (options.json ? printJson : print)(comparison, options.threshold);
  size_t regressions = comparison.removed.size();
  for (const Change &change : comparison.changes)
    regressions += change.grewPast(options.threshold);
  if (regressions)
    throw Failure(CheckMismatch, "{} regressions past {}%", regressions, options.threshold);
}

} // namespace

void gdnc::addDiff(CLI::App &app) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App *command =
      app.add_subcommand("diff", "compare two bundles kernel by kernel, work counts too where both carry PTX; exit "
                                 "4 where one got worse or is missing");
  command->add_option("old", options->before, "bundle")->required();
  command->add_option("new", options->after, "bundle")->required();
  command->add_option("--threshold", options->threshold, "growth in percent that still passes (default: 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] { runDiff(*options); });
}
