#include "tools/gdnc/BundleText.h"
#include "tools/gdnc/Common.h"
#include <CLI/CLI.hpp>
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

// What a kernel costs; less is better everywhere.
const char *const metrics[] = {"registers", "spill_bytes", "stack_bytes", "shared_bytes", "code_bytes"};

struct Change {
  std::string kernel, metric;
  uint64_t before = 0, after = 0;

  // Growth from nothing is past every threshold.
  bool grewPast(double percent) const { return after > before && 100.0 * (after - before) > percent * before; }
  std::string percent() const {
    return before ? fmt::format("{:+.1f}%", 100.0 * (double(after) - double(before)) / before) : "new";
  }
};

struct Comparison {
  std::vector<Change> changes;
  std::vector<std::string> removed, added;
  size_t compared = 0;
};

std::map<gdn::KernelKey, json> measure(const LoadedBundle &loaded) {
  std::map<gdn::KernelKey, json> kernels;
  for (const gdn::BundleKernel &kernel : loaded.bundle.kernels)
    kernels[kernel.kernel.key] = kernelJson(kernel);
  return kernels;
}

Comparison compare(const LoadedBundle &before, const LoadedBundle &after) {
  Comparison comparison;
  auto old = measure(before), now = measure(after);
  for (auto &[key, was] : old) {
    auto match = now.find(key);
    if (match == now.end()) {
      comparison.removed.push_back(gdn::describe(key));
      continue;
    }
    ++comparison.compared;
    for (const char *metric : metrics)
      if (was[metric] != match->second[metric])
        comparison.changes.push_back({gdn::describe(key), metric, was[metric], match->second[metric]});
  }
  for (auto &[key, is] : now)
    if (!old.contains(key))
      comparison.added.push_back(gdn::describe(key));
  return comparison;
}

void print(const Comparison &comparison, double threshold) {
  std::vector<TableRow> rows{{"kernel", "metric", "old", "new", "change", ""}};
  for (const Change &change : comparison.changes)
    rows.push_back({change.kernel, change.metric, std::to_string(change.before), std::to_string(change.after),
                    change.percent(), change.grewPast(threshold) ? "past the threshold" : ""});
  if (rows.size() > 1)
    fmt::print("{}", formatTable(rows));
  for (const std::string &name : comparison.removed)
    fmt::print("only in old: {}\n", name);
  for (const std::string &name : comparison.added)
    fmt::print("only in new: {}\n", name);
  fmt::print("{} kernels compared, {} differences\n", comparison.compared, comparison.changes.size());
}

void printJson(const Comparison &comparison, double threshold) {
  json changes = json::array();
  for (const Change &change : comparison.changes)
    changes.push_back({{"kernel", change.kernel},
                       {"metric", change.metric},
                       {"old", change.before},
                       {"new", change.after},
                       {"regression", change.grewPast(threshold)}});
  json report = {{"compared", comparison.compared},
                 {"changes", std::move(changes)},
                 {"removed", comparison.removed},
                 {"added", comparison.added},
                 {"threshold_percent", threshold}};
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
      app.add_subcommand("diff", "compare two bundles kernel by kernel; exit 4 where one got worse or is missing");
  command->add_option("old", options->before, "bundle")->required();
  command->add_option("new", options->after, "bundle")->required();
  command->add_option("--threshold", options->threshold, "growth in percent that still passes (default: 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] { runDiff(*options); });
}
