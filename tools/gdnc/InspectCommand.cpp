#include "tools/gdnc/BundleText.h"
#include "tools/gdnc/Common.h"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;

namespace {

struct InspectOptions {
  std::string file;
  bool verify = false, json = false;
};

void runInspect(const InspectOptions &options) {
  auto loaded = loadBundle(options.file);
  const gdn::Bundle &bundle = loaded->bundle;
  if (options.verify)
    if (std::string error = bundle.verify(); !error.empty())
      throw Failure(CheckMismatch, "{}: {}", options.file, error);
  json metadata = json::parse(bundle.metadata, nullptr, /*allow_exceptions=*/false);
  if (metadata.is_discarded())
    throw Failure(CheckMismatch, "{}: expected metadata in JSON", options.file);
  if (options.json) {
    json kernels = json::array();
    for (const gdn::BundleKernel &kernel : bundle.kernels)
      kernels.push_back(kernelJson(kernel));
    json report = {{"bytes", loaded->bytes.size()},
                   {"hash", fmt::format("{:016x}", bundle.hash)},
                   {"kernels", std::move(kernels)},
                   {"metadata", std::move(metadata)},
                   {"verified", options.verify}};
    fmt::print("{}\n", report.dump(2));
    return;
  }
  std::vector<TableRow> rows{kernelHead};
  for (const gdn::BundleKernel &kernel : bundle.kernels)
    rows.push_back(kernelRow(kernel));
  fmt::print("{}\n{}\n{}: {} kernels, {} bytes, hash {:016x}{}\n", formatTable(rows), metadata.dump(2), options.file,
             bundle.kernels.size(), loaded->bytes.size(), bundle.hash, options.verify ? ", every hash holds" : "");
  if (!bundle.kernels.empty())
    fmt::print("needs {}\n", driverNeeded(bundle));
  const auto costs = "/costs/file"_json_pointer;
  if (metadata.contains(costs) && metadata[costs].is_string())
    fmt::print("cuts work by the costs in {} on every GPU that it runs on; gdn-bench calibrate measures another's, and "
               "gdnc build --costs takes them\n",
               metadata[costs].get<std::string>());
}

} // namespace

void gdnc::addInspect(CLI::App &app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App *command = app.add_subcommand("inspect", "show what a bundle holds and which driver it needs");
  command->add_option("file", options->file, "bundle")->required();
  command->add_flag("--verify", options->verify, "check the hash of every image; exit 4 where one differs");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([options] { runInspect(*options); });
}
