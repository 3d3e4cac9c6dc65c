#include "tools/gdnc/Common.h"
#include "tools/gdnc/Plan.h"
#include "tools/gdnc/Table.h"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <set>

using namespace gdnc;
using nlohmann::json;

static std::set<std::string> listTemplates() {
  std::set<std::string> names;
  for (auto &entry : std::filesystem::directory_iterator(dataFolder() / "templates"))
    if (entry.path().extension() == ".mlir" || entry.path().extension() == ".cu")
      names.insert(entry.path().stem().string());
  return names;
}

static void runList(bool asJson) {
  std::vector<TableRow> kernels{{"target", "K", "V", "split"}}, models{{"model", "k-heads", "v-heads", "K", "V", ""}};
  json report = {{"kernels", json::array()}, {"models", json::array()}, {"templates", listTemplates()}};
  std::set<std::pair<uint32_t, uint32_t>> served;
  for (const Schedule &row : servedSchedules()) {
    served.insert({row.keyDim, row.valueDim});
    kernels.push_back({row.arch, std::to_string(row.keyDim), std::to_string(row.valueDim), std::to_string(row.split)});
    report["kernels"].push_back(
        {{"arch", row.arch}, {"key_dim", row.keyDim}, {"value_dim", row.valueDim}, {"split", row.split}});
  }
  for (const Model &model : readModels((dataFolder() / "coefs/models.csv").string())) {
    bool isServed = served.contains({model.keyDim, model.valueDim});
    models.push_back({model.name, std::to_string(model.keyHeads), std::to_string(model.valueHeads),
                      std::to_string(model.keyDim), std::to_string(model.valueDim), isServed ? "" : "not served"});
    report["models"].push_back({{"name", model.name},
                                {"key_heads", model.keyHeads},
                                {"value_heads", model.valueHeads},
                                {"key_dim", model.keyDim},
                                {"value_dim", model.valueDim},
                                {"served", isServed}});
  }
  if (asJson) {
    fmt::print("{}\n", report.dump(2));
    return;
  }
  fmt::print("{}\n{}\n{}", formatTable(kernels), formatTable(models), "templates:");
  for (const std::string &name : listTemplates())
    fmt::print(" {}", name);
  fmt::print("\n");
}

void gdnc::addList(CLI::App &app) {
  auto asJson = std::make_shared<bool>(false);
  CLI::App *command = app.add_subcommand("list", "show targets, dimensions, models and templates");
  command->add_flag("--json", *asJson, "print JSON");
  command->callback([asJson] { runList(*asJson); });
}
