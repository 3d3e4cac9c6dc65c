#include "tools/gdnc/Build.h"
#include "tools/gdnc/BundleText.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Options.h"
#include "tools/gdnc/Run.h"
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;

static void printTable(const LoadedBundle &loaded, const std::vector<BuiltKernel> &kernels, const std::string &path,
                       const std::optional<RunReport> &run) {
  std::vector<TableRow> rows{kernelHead};
  rows.front().push_back("time");
  for (size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back(kernelRow(loaded.bundle.kernels[i]));
    rows.back().push_back(kernels[i].cached ? "cached" : fmt::format("{:.1f} s", kernels[i].seconds));
  }
  fmt::print("{}\n{}: {} kernels, {} bytes, needs {}\n", formatTable(rows), path, kernels.size(), loaded.bytes.size(),
             driverNeeded(loaded.bundle));
  if (!run)
    return;
  std::vector<TableRow> results{{"io", "state", "split", "output error", "state error", "ms"}};
  for (const RunResult &result : run->results)
    results.push_back({result.io, result.state, std::to_string(result.split), fmt::format("{:.2e}", result.outputError),
                       fmt::format("{:.2e}", result.stateError), fmt::format("{:.3f}", result.milliseconds)});
  fmt::print("\n{}, one sequence of {} tokens; errors relative to fp64\n{}", run->device, run->tokens,
             formatTable(results));
}

static void printJson(const LoadedBundle &loaded, const std::vector<BuiltKernel> &kernels, const std::string &path,
                      const std::optional<RunReport> &run) {
  json list = json::array();
  for (size_t i = 0; i < kernels.size(); ++i) {
    list.push_back(kernelJson(loaded.bundle.kernels[i]));
    list.back()["seconds"] = kernels[i].seconds;
    list.back()["cached"] = kernels[i].cached;
  }
  json report = {{"bundle", path},
                 {"bytes", loaded.bytes.size()},
                 {"kernels", std::move(list)},
                 {"metadata", json::parse(loaded.bundle.metadata)}};
  if (run) {
    json results = json::array();
    for (const RunResult &result : run->results)
      results.push_back({{"io", result.io},
                         {"state", result.state},
                         {"split", result.split},
                         {"output_error", result.outputError},
                         {"state_error", result.stateError},
                         {"milliseconds", result.milliseconds}});
    report["run"] = {{"device", run->device}, {"tokens", run->tokens}, {"results", std::move(results)}};
  }
  fmt::print("{}\n", report.dump(2));
}

static void runBuild(const BuildOptions &options) {
  Model model = selectModel(options);
  Model rank = divideHeads(model, options.ranks);
  std::vector<Variant> variants = planBuild(options, model); // sorted by key, as a bundle is
  std::vector<BuiltKernel> built = compileVariants(variants, options);
  std::vector<gdn::Kernel> kernels;
  for (const BuiltKernel &each : built)
    kernels.push_back(each.kernel);
  gdn::BundleResult<std::string> bytes = gdn::writeBundle(kernels, describeBuild(options, model, built));
  if (!bytes)
    throw Failure(CompileError, "{}", bytes.error().text);
  writeFile(options.output, *bytes);
  auto loaded = parseLoaded(std::move(*bytes), options.output);
  std::optional<RunReport> run;
  if (options.runTokens)
    run = runForward(options.output, rank, options.runTokens);
  (options.json ? printJson : printTable)(*loaded, built, options.output, run);
  for (const RunResult &result : run ? run->results : std::vector<RunResult>())
    if (!result.accurate)
      throw Failure(CheckMismatch, "{} {} split={}: errors past the bound", result.io, result.state, result.split);
}

void gdnc::addBuild(CLI::App &app) {
  auto options = std::make_shared<BuildOptions>();
  CLI::App *command = app.add_subcommand("build", "compile the kernels for a model's heads into a bundle");
  CLI::Option_group *heads = command->add_option_group("model", "whose heads; exactly one of");
  heads->add_option("--config", options->config, "a model's config.json (Hugging Face or flash-linear-attention keys)");
  heads->add_option("--model", options->model, "a public model's name; gdnc list shows them");
  heads->require_option(1);
  command->add_option("--tp", options->ranks, "tensor-parallel ranks that share the heads; recorded")
      ->check(positive());
  command->add_option("--arch", options->archs, "targets, such as sm_90a")->delimiter(',')->required();
  command->add_option("-o,--output", options->output, "the bundle to write")->required();
  command->add_option("--dtype", options->dtypes, "of q, k, v and o: bf16,f16 (default: both)")
      ->delimiter(',')
      ->check(oneOf({"bf16", "f16"}));
  command->add_option("--state", options->states, "layouts of the state: k-first,v-first (default: both)")
      ->delimiter(',')
      ->check(oneOf({"k-first", "v-first"}));
  command->add_option("--split", options->splits, "numbers of blocks that share a head's V (default: all served)")
      ->delimiter(',')
      ->check(positive());
  command->add_flag("--profile", options->profile, "also the variants that write clock stamps");
  command->add_flag("--with-ptx", options->withPtx, "keep each kernel's PTX in the bundle");
  command->add_option("--jobs,-j", options->jobs, "kernels to compile at a time (default: one a core)")
      ->check(positive());
  command
      ->add_option("--run", options->runTokens,
                   "then run it on a sequence of so many tokens, on the GPU or what GDN_DRIVER names")
      ->check(positive());
  command->add_flag("--json", options->json, "print JSON instead of a table");
  command->add_flag("--no-cache", options->noCache, "neither read nor write cached kernels");
  command->callback([options] { runBuild(*options); });
}
