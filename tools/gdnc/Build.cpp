#include "tools/gdnc/Build.h"
#include "compiler/backend/Toolkit.h"
#include "compiler/config/Costs.h"
#include "runtime/format/bundle.h"
#include "tools/gdnc/Cache.h"
#include "tools/gdnc/Common.h"
#include "tools/gdnc/Llvm.h"
#include "tools/gdnc/Version.h"
#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <unistd.h>

using namespace gdnc;
using nlohmann::json;

namespace {

std::string ptxasVersion(const std::string &arch) {
  ToolSearch search = findPtxas(findTarget(arch)->ptxas);
  if (!search.tool)
    throw Failure(EnvironmentError, "{}", search.error);
  return search.tool->versionText;
}

std::string nvrtcVersion() {
  ToolSearch search = findNvrtc();
  if (!search.tool)
    throw Failure(EnvironmentError, "{}", search.error);
  return search.tool->versionText;
}

// One line on a terminal, rewritten in place; nothing elsewhere.
class Progress {
public:
  explicit Progress(size_t total) : total(total), terminal(isatty(STDERR_FILENO)) {}

  void done(const std::string &name) {
    std::lock_guard lock(mutex);
    ++count;
    if (terminal)
      fmt::print(stderr, "\r\x1b[K[{}/{}] {}{}", count, total, name, count == total ? "\r\x1b[K" : "");
  }

private:
  std::mutex mutex;
  size_t count = 0, total;
  bool terminal;
};

// Compiles the variants that threads take from it by turns.
class Batch {
public:
  Batch(const std::vector<Variant> &variants, std::optional<Cache> cache)
      : variants(variants), cache(std::move(cache)), progress(variants.size()), built(variants.size()),
        failures(variants.size()) {
    // Whatever is compiled into this program, and what it calls, is part of what decides a kernel.
    toolHash = sha256(readFile("/proc/self/exe") + llvmVersion());
    for (const Variant &variant : variants) {
      if (std::string &version = ptxas[variant.key.arch]; version.empty())
        version = ptxasVersion(variant.key.arch);
      if (variant.key.operation == planTemplate && planner.empty()) {
        planner = nvrtcVersion();
        for (auto &[file, path] : plannerFiles())
          planner += '\n' + file + '\n' + readFile(path.string());
      }
    }
  }

  void work() {
    for (size_t i; !failed && (i = next++) < variants.size();) {
      try {
        built[i] = build(variants[i]);
      } catch (...) {
        failures[i] = std::current_exception();
        failed = true;
      }
      progress.done(gdn::describe(variants[i].key));
    }
  }

  std::vector<BuiltKernel> results() {
    for (std::exception_ptr &failure : failures)
      if (failure)
        std::rethrow_exception(failure);
    return std::move(built);
  }

private:
  BuiltKernel build(const Variant &variant) const {
    BuiltKernel result;
    std::string name;
    if (cache) {
      name = cacheName(variant);
      if (std::optional<gdn::Kernel> kernel = cache->load(name, variant.key)) {
        result.kernel = std::move(*kernel);
        result.cached = true;
        return result;
      }
    }
    auto start = std::chrono::steady_clock::now();
    result.kernel = compileVariant(variant);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (cache)
      cache->store(name, result.kernel);
    return result;
  }

  static gdn::Kernel compileVariant(const Variant &variant) {
    CompileResult result = compile(variant.request, Phase::Cubin);
    if (!result.ok)
      throw Failure(result.environmentError ? EnvironmentError : CompileError, "{}: {}", gdn::describe(variant.key),
                    result.diagnostics);
    result.kernel.key = variant.key;
    result.kernel.schedule = variant.schedule;
    return std::move(result.kernel);
  }

  std::string cacheName(const Variant &variant) const {
    std::string text = toolHash + ptxas.at(variant.key.arch) + '\n' + readFile(variant.request.templateFile) + '\0' +
                       gdn::describe(variant.key);
    if (variant.key.operation == planTemplate)
      text += '\n' + planner;
    for (auto &[name, value] : variant.request.values)
      text += fmt::format("\n{}={}", name, value);
    return sha256(text);
  }

  const std::vector<Variant> &variants;
  std::optional<Cache> cache;
  std::string toolHash;
  std::map<std::string, std::string> ptxas; // version, by architecture
  std::string planner;                      // what else decides a planner
  Progress progress;
  std::vector<BuiltKernel> built;
  std::vector<std::exception_ptr> failures;
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
};

json describeModel(const Model &model) {
  return {{"name", model.name.empty() ? json() : json(model.name)},
          {"key_heads", model.keyHeads},
          {"value_heads", model.valueHeads},
          {"key_dim", model.keyDim},
          {"value_dim", model.valueDim}};
}

} // namespace

std::vector<BuiltKernel> gdnc::compileVariants(const std::vector<Variant> &variants, const BuildOptions &options) {
  Batch batch(variants, options.noCache ? std::nullopt : std::optional(Cache::standard()));
  size_t jobs = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(jobs, variants.size()); ++i)
      threads.emplace_back([&] { batch.work(); });
  }
  return batch.results();
}

std::string gdnc::describeBuild(const BuildOptions &options, const std::optional<Model> &model,
                                const std::vector<BuiltKernel> &kernels) {
  std::set<std::string> archs, dtypes, states, features;
  std::map<std::string, std::string> ptxas;
  std::set<uint32_t> splits, abis;
  for (const BuiltKernel &built : kernels) {
    const gdn::KernelKey &key = built.kernel.key;
    if (archs.insert(key.arch).second)
      ptxas[key.arch] = ptxasVersion(key.arch);
    gdn::CubinInfo info;
    if (gdn::readCubin(built.kernel.cubin, info).empty())
      abis.insert(info.abi);
    if (key.operation == planTemplate)
      continue;
    dtypes.insert(gdn::describe(key.io));
    states.insert(key.stateVFirst ? "v-first" : "k-first");
    splits.insert(key.split);
    for (size_t i = 0; i < gdn::featureNames.size(); ++i)
      if (key.features >> i & 1)
        features.insert(gdn::featureNames[i]);
  }
  auto hash = [](const std::filesystem::path &path) { return sha256(readFile(path.string())); };
  const std::filesystem::path costs = costsFile(options.costs);
  json metadata = {
      {"gdnc", {{"version", version}, {"commit", *commit ? json(commit) : json()}, {"modified", modified}}},
      {"llvm", llvmVersion()},
      {"ptxas", ptxas},
      {"nvrtc", nvrtcVersion()},
      {"elf_abi", abis},
      {"flags",
       {{"arch", archs},
        {"dtype", dtypes},
        {"state", states},
        {"split", splits},
        {"features", features},
        {"profile", options.profile},
        {"ptx", options.withPtx}}},
      {"model", model ? describeModel(*model) : json()},
      {"tp", options.ranks},
      {"templates", {{std::string(forwardTemplate) + ".mlir", hash(templateFile(forwardTemplate))}}},
      {"coefs", {{"schedule.csv", hash(dataFolder() / "coefs/schedule.csv")}}},
      {"costs", {{"file", costs.filename().string()}, {"clocks", readCosts(costs.string())}}},
  };
  for (auto &[file, path] : plannerFiles())
    metadata["templates"][file] = hash(path);
  return metadata.dump();
}
