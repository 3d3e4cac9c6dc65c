#include "tools/gdnc/Build.h"
#include "tools/gdnc/BundleText.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Options.h"
#include "tools/gdnc/Run.h"
#include <nlohmann/json.hpp>

using namespace gdnc;
using nlohmann::json;

static void printRun(const LoadedBundle &loaded, const RunReport &run) {
  std::vector<TableRow> rows{{"K", "V", "io", "state", "split", "features", "output error", "state error"}};
  auto add = [&](const std::string &name, const std::string &value) {
    if (rows.size() == 2)
      rows.front().push_back(name);
    rows.back().push_back(value);
  };
  for (const RunResult &result : run.results) {
    const gdn::KernelKey &key = loaded.bundle.kernels[result.kernel].kernel.key;
    rows.push_back({std::to_string(key.keyDim), std::to_string(key.valueDim), gdn::describe(key.io),
                    key.stateVFirst ? "v-first" : "k-first", std::to_string(key.split), featureText(key),
                    fmt::format("{:.2e}", result.outputError), fmt::format("{:.2e}", result.stateError)});
    if (result.milliseconds)
      add("ms", fmt::format("{:.3f}", *result.milliseconds));
    for (auto [name, title] : {std::pair("tensor_clocks", "tensor clocks"),
                               {"issue_slots", "issue slots"},
                               {"shared_conflicts", "bank conflicts"}})
      if (auto count = result.work.find(name); count != result.work.end())
        add(title, fmt::format("{}", count->second));
  }
  fmt::print("\n{}, one sequence of {} tokens; errors relative to fp64\n{}", run.device, run.tokens, formatTable(rows));
}

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
  if (run)
    printRun(loaded, *run);
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
    for (const RunResult &result : run->results) {
      results.push_back({{"kernel", gdn::describe(loaded.bundle.kernels[result.kernel].kernel.key)},
                         {"output_error", result.outputError},
                         {"state_error", result.stateError}});
      if (result.milliseconds)
        results.back()["milliseconds"] = *result.milliseconds;
      if (!result.work.empty())
        results.back()["work"] = result.work;
    }
    report["run"] = {{"device", run->device}, {"tokens", run->tokens}, {"results", std::move(results)}};
  }
  fmt::print("{}\n", report.dump(2));
}

// The bundle's bytes, with each kernel's PTX or without.
static std::string pack(const std::vector<BuiltKernel> &built, bool ptx, const std::string &metadata) {
  std::vector<gdn::Kernel> kernels;
  for (const BuiltKernel &each : built) {
    kernels.push_back(each.kernel);
    if (!ptx)
      kernels.back().ptx.clear();
  }
  gdn::BundleResult<std::string> bytes = gdn::writeBundle(kernels, metadata);
  if (!bytes)
    throw Failure(CompileError, "{}", bytes.error().text);
  return std::move(*bytes);
}

static void runBuild(const BuildOptions &options) {
  std::optional<Model> model = selectModel(options);
  std::optional<Model> rank = model ? std::optional(divideHeads(*model, options.ranks)) : std::nullopt;
  std::vector<Variant> variants = planBuild(options, model); // sorted by key, as a bundle is
  std::vector<BuiltKernel> built = compileVariants(variants, options);
  std::string metadata = describeBuild(options, model, built);
  auto loaded = parseLoaded(pack(built, options.withPtx, metadata), options.output);
  writeFile(options.output, loaded->bytes);
  std::optional<RunReport> run;
  uint32_t heads = rank ? rank->keyHeads : 1, valueHeads = rank ? rank->valueHeads : 2;
  if (options.emulatorTokens) {
    useEmulator();
    run = runForward(pack(built, /*ptx=*/true, metadata), heads, valueHeads, options.emulatorTokens);
  } else if (options.runTokens) {
    run = runForward(loaded->bytes, heads, valueHeads, options.runTokens);
  }
  (options.json ? printJson : printTable)(*loaded, built, options.output, run);
  for (const RunResult &result : run ? run->results : std::vector<RunResult>())
    if (!result.accurate)
      throw Failure(CheckMismatch, "{}: errors past the bound",
                    gdn::describe(loaded->bundle.kernels[result.kernel].kernel.key));
}

void gdnc::addBuild(CLI::App &app) {
  auto options = std::make_shared<BuildOptions>();
  CLI::App *command = app.add_subcommand("build", "compile the kernels for a model's heads into a bundle");
  CLI::Option_group *heads = command->add_option_group("model", "whose heads; exactly one of");
  heads->add_option("--config", options->config, "a model's config.json (Hugging Face or flash-linear-attention keys)");
  heads->add_option("--model", options->model, "a public model's name; gdnc list shows them");
  CLI::Option *all = heads->add_flag("--all", options->all, "no model's: all head dimensions that are served");
  heads->require_option(1);
  command->add_option("--tp", options->ranks, "tensor-parallel ranks that share the heads; recorded")
      ->check(positive())
      ->excludes(all);
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
  command
      ->add_option("--features", options->features,
                   "variants beside the plain kernels: l2norm (normalises q and k), checkpoints (stores the states "
                   "between chunks), or none (default: l2norm)")
      ->delimiter(',')
      ->check(oneOf({"l2norm", "checkpoints", "none"}));
  command->add_flag("--profile", options->profile, "also the variants that write clock stamps (bf16, no features)");
  command->add_option("--costs", options->costs,
                      "what the parts of a forward cost on the GPU, by which long sequences are cut: a file that "
                      "gdn-bench calibrate writes (default: an H200's)");
  command->add_flag("--with-ptx", options->withPtx, "keep each kernel's PTX in the bundle");
  command->add_option("--jobs,-j", options->jobs, "kernels to compile at a time (default: one a core)")
      ->check(positive());
  CLI::Option *run =
      command
          ->add_option("--run", options->runTokens,
                       "then run it on a sequence of so many tokens, on the GPU or what GDN_DRIVER names")
          ->check(positive());
  command
      ->add_option("--run-emulator", options->emulatorTokens,
                   "the same on the emulator, which also counts the work; needs no GPU")
      ->check(positive())
      ->excludes(run);
  command->add_flag("--json", options->json, "print JSON instead of a table");
  command->add_flag("--no-cache", options->noCache, "neither read nor write cached kernels");
  command->callback([options] { runBuild(*options); });
}
