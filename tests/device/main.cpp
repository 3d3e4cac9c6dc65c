// gdn-device-test: runs the kernels of a bundle on inputs of every kind and compares them with the fp64 reference.
#include "tests/device/checks.h"
#include "tests/reference/numbers.h"
#include "tests/reference/random.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>
#include <unistd.h>

using namespace gdn;
using namespace gdn::device;

namespace {

enum Exit { Ok = 0, Usage = 2, Environment = 3, Mismatch = 4 };
constexpr int64_t quickChunks = 24;

struct Options {
  std::string bundle, dims, type, member, cut;
  std::vector<std::string> kinds;
  uint64_t seed = 0;
  int64_t maxChunks = INT64_MAX;
  int device = 0;
  unsigned timeout = 300;
  bool quick = false;
};

std::string describe(const Config &config) {
  return std::to_string(config.keyDim) + "x" + std::to_string(config.valueDim) + " " + reference::name(config.io);
}

// What the bundle has kernels for on a device of this compute capability.
std::vector<Config> configs(const gpu::Bundle &bundle, int capability) {
  std::vector<Config> found;
  std::string arch = "sm_" + std::to_string(capability);
  for (size_t i = 0; i < bundle.size(); ++i) {
    gdn_kernel_info info = bundle.kernel(i);
    std::string infoArch = info.arch, schedule = " " + std::string(info.schedule) + " ";
    if (infoArch.substr(0, infoArch.find_first_of("af")) != arch || info.profile ||
        info.operation != std::string("forward"))
      continue;
    auto io = ElementType(info.io);
    auto same = [&](const Config &c) {
      return c.keyDim == uint32_t(info.key_dim) && c.valueDim == uint32_t(info.value_dim) && c.io == io;
    };
    auto at = std::find_if(found.begin(), found.end(), same);
    if (at == found.end())
      at = found.insert(at, Config{uint32_t(info.key_dim), uint32_t(info.value_dim), io, io, {}, {}});
    if (schedule.find(" tw=") != std::string::npos)
      at->chain = schedule.find(" tw=f16 ") != std::string::npos ? ElementType::F16 : ElementType::BF16;
    at->normalises |= (info.features & GDN_NORMALISE_QK) != 0;
    at->checkpoints |= (info.features & GDN_CHECKPOINTS_AFTER) != 0;
    bool valueFirst = info.state_layout == GDN_V_FIRST;
    if (std::find(at->layouts.begin(), at->layouts.end(), valueFirst) == at->layouts.end())
      at->layouts.push_back(valueFirst);
    if (std::find(at->splits.begin(), at->splits.end(), uint32_t(info.split)) == at->splits.end())
      at->splits.push_back(info.split);
  }
  return found;
}

bool chosen(const Options &options, const Member &member) {
  auto &kinds = options.kinds;
  return (kinds.empty() || std::find(kinds.begin(), kinds.end(), member.kind) != kinds.end()) &&
         member.name.find(options.member) != std::string::npos && member.chunks() <= options.maxChunks;
}

// The flags of a way to cut the work; a warm-up needs keys of norm 1.
uint32_t cutsOf(const std::string &name, const reference::Recipe &recipe) {
  if (name == "off")
    return GDN_CUT_OFF;
  if (name == "exact")
    return GDN_CUT_EXACT;
  uint32_t normalised = recipe.keyNorm <= 1 ? GDN_KEYS_NORMALISED : 0;
  return normalised | (name == "invariant" ? GDN_CUT_INVARIANT : GDN_CUT_AUTO);
}

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
};

void report(const Member &member, const Config &config, const Verdict &verdict, Counts &counts) {
  std::printf("%-10s  %-34s  %-12s  ", member.kind.c_str(), member.name.c_str(), describe(config).c_str());
  if (!verdict.skipped.empty()) {
    std::printf("skipped: %s\n", verdict.skipped.c_str());
    ++counts.skipped;
    return;
  }
  std::printf("%9.2e  %9.2e  %9.2e  %9.2e  %s%s%s\n", verdict.output.relative, verdict.outputBound.relative,
              verdict.state.relative, verdict.stateBound.relative, verdict.passed ? "pass" : "FAIL",
              verdict.note.empty() ? "" : ": ", verdict.note.c_str());
  ++(verdict.passed ? counts.passed : counts.failed);
}

// False once the device no longer answers.
bool runMember(const Session &session, const Member &member, const Options &options, Counts &counts) {
  gpu::watchdog(options.timeout, member.kind + ", " + member.name);
  uint64_t seed = reference::Random(options.seed, std::hash<std::string>()(member.kind + member.name)).bits(0);
  Verdict verdict;
  bool answers = true;
  try {
    verdict = judge(session, member, seed);
  } catch (const gpu::Error &error) {
    verdict.require(false, error.what());
    try {
      session.gpu.synchronize();
    } catch (const gpu::Error &) {
      answers = false;
    }
  }
  gpu::watchdog(0);
  report(member, session.config, verdict, counts);
  std::fflush(stdout);
  return answers;
}

int run(const Options &options) {
  gpu::Bundle bundle(options.bundle);
  gpu::Gpu gpu(options.device);
  gpu::check(gdn_bundle_load(bundle.get()), "gdn_bundle_load");
  std::printf("%s, driver %d.%d (%s), seed %llu\n", gpu.info().name, gpu.info().driver_version / 1000,
              gpu.info().driver_version % 1000 / 10, gpu.info().driver_path, (unsigned long long)options.seed);
  std::printf("%-10s  %-34s  %-12s  %9s  %9s  %9s  %9s\n", "kind", "member", "K x V", "error O", "bound", "error S",
              "bound");
  Counts counts;
  bool answers = true;
  for (const Config &config : configs(bundle, gpu.info().compute_capability)) {
    if (!options.dims.empty() && describe(config).find(options.dims + " ") != 0)
      continue;
    if (!options.type.empty() && reference::name(config.io) != options.type)
      continue;
    Session session{gpu, bundle, config};
    for (Member &member : members(config))
      if (answers && chosen(options, member)) {
        if (!options.cut.empty())
          member.storage.cuts = cutsOf(options.cut, member.recipe);
        answers = runMember(session, member, options, counts);
      }
  }
  if (!answers)
    std::printf("stopped: the device no longer answers\n");
  if (counts.skipped)
    std::printf("%d skipped\n", counts.skipped);
  if (counts.passed + counts.failed == 0)
    std::printf("nothing was tested: no kernel of the bundle and no member fits what was asked for\n");
  std::printf("%d passed, %d failed\n", counts.passed, counts.failed);
  std::fflush(stdout);
  bool good = answers && counts.failed == 0 && counts.passed > 0;
  if (!answers)
    _exit(Mismatch); // nothing can be released any more
  return good ? Ok : Mismatch;
}

} // namespace

int main(int count, char **arguments) {
  Options options;
  CLI::App app("Runs the kernels of a bundle on inputs of every kind and compares them with an fp64 reference.\n"
               "Exit code: 0 all passed, 2 usage, 3 no GPU or no bundle, 4 a member failed.");
  app.add_option("--bundle", options.bundle, "the bundle (.gdnb) to test")->required();
  app.add_option(
         "--kind", options.kinds,
         "only these kinds: lengths, packed, dense, heads, gates, beta, keys, values, state, pools, checkpoints, "
         "invariance, fusions, norms, cuts, sizes")
      ->check(CLI::IsMember({"lengths", "packed", "dense", "heads", "gates", "beta", "keys", "values", "state", "pools",
                             "checkpoints", "invariance", "fusions", "norms", "cuts", "sizes"}));
  app.add_option("--cut", options.cut, "cut all members' work in this way (default: as each member says)")
      ->check(CLI::IsMember({"off", "exact", "auto", "invariant"}));
  app.add_option("--member", options.member, "only members whose name contains this");
  app.add_option("--dims", options.dims, "only kernels of these dimensions, KxV");
  app.add_option("--type", options.type, "only kernels of this element type")->check(CLI::IsMember({"bf16", "f16"}));
  auto *seed = app.add_option("--seed", options.seed, "repeats a run (default: a fresh seed, which is printed)");
  app.add_flag("--quick", options.quick, "only members of at most 24 chunks over all heads");
  app.add_option("--max-chunks", options.maxChunks, "only members of at most so many chunks over all heads");
  app.add_option("--device", options.device, "ordinal of the GPU");
  app.add_option("--timeout", options.timeout, "seconds after which a member is taken for a deadlock");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? Usage : Ok;
  }
  if (options.quick)
    options.maxChunks = std::min(options.maxChunks, quickChunks);
  if (!seed->count()) {
    std::random_device fresh;
    options.seed = uint64_t(fresh()) << 32 | fresh();
  }
  try {
    return run(options);
  } catch (const gpu::Error &error) {
    std::fprintf(stderr, "gdn-device-test: %s\n", error.what());
    return Environment;
  }
}
