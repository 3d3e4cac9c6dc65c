// gdn-bench: times the forward of a bundle on a GPU, takes it apart, and measures what its parts cost.
#include "tests/reference/numbers.h"
#include "tools/bench/report.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace gdn;
using namespace gdn::bench;
using nlohmann::json;

namespace {

enum Exit { Ok = 0, Usage = 2, Environment = 3, Mismatch = 4 };

struct Options {
  std::string bundle, csv, output, dims = "128x128", type = "bf16", gates = "quarter", layout = "k-first", cut = "auto";
  std::vector<std::string> heads, lengths;
  int repetitions = 20, errorHeads = 2, device = 0, rounds = 5;
  uint32_t split = 0;
  unsigned timeout = 300;
  uint64_t seed = 0;
  double limit = 5; // percent
  bool normalise = false, printsJson = false;
};

uint32_t cutsOf(const std::string &name) {
  if (name == "off")
    return GDN_CUT_OFF;
  uint32_t mode = name == "exact" ? GDN_CUT_EXACT : name == "fast" ? GDN_CUT_FAST : GDN_CUT_AUTO;
  return mode | GDN_KEYS_NORMALISED | (name == "invariant" ? GDN_CUT_INVARIANT : 0);
}

// Two positive numbers with `separator` between; false if `text` is anything else.
bool pair(const std::string &text, char separator, uint32_t &first, uint32_t &second) {
  char between = 0, rest = 0;
  return std::sscanf(text.c_str(), "%u%c%u%c", &first, &between, &second, &rest) == 3 && between == separator &&
         first && second;
}

std::string headsError(const std::string &text) {
  uint32_t heads, valueHeads;
  return pair(text, '/', heads, valueHeads) && valueHeads % heads == 0
             ? ""
             : "expected heads as H/HV with HV a multiple of H, got " + text;
}

std::string lengthsError(const std::string &text) {
  return reference::parseLengths(text).empty() ? "expected lengths as NxL, L+L+.. or mixed, got " + text : "";
}

std::string dimsError(const std::string &text) {
  uint32_t k, v;
  return pair(text, 'x', k, v) ? "" : "expected dimensions as KxV, got " + text;
}

// The GPU, the bundle and what was asked of them.
struct Run {
  explicit Run(const Options &options)
      : options(options), bundle(options.bundle), gpu(options.device), origin(originOf(gpu, bundle)) {
    gpu::check(gdn_bundle_load(bundle.get()), "gdn_bundle_load");
  }

  Setup setup() const {
    return {gpu,
            bundle,
            options.split,
            cutsOf(options.cut),
            options.layout == "v-first",
            options.repetitions,
            options.errorHeads,
            options.seed};
  }

  // Heads and lengths are the caller's.
  Case plainCase() const {
    Case c = {};
    pair(options.dims, 'x', c.keyDim, c.valueDim);
    c.io = options.type == "bf16" ? ElementType::BF16 : ElementType::F16;
    c.allDecay = options.gates == "decay";
    c.rawGates = options.gates == "raw";
    c.normalise = options.normalise;
    return c;
  }

  // Calls visit(case) for each of the heads and lengths, which must be through in time.
  template <typename Visit> void eachCase(Visit visit) const {
    Case c = plainCase();
    for (const std::string &heads : options.heads)
      for (const std::string &lengths : options.lengths) {
        pair(heads, '/', c.keyHeads, c.valueHeads);
        c.label = lengths;
        c.lengths = reference::parseLengths(lengths);
        gpu::watchdog(options.timeout, "gdn-bench: " + heads + " " + lengths);
        visit(std::as_const(c));
        gpu::watchdog(0);
      }
  }

  void print(const std::string &text) const {
    if (!options.printsJson)
      std::fputs(text.c_str(), stdout), std::fflush(stdout);
  }

  void printJson(json results) const {
    if (options.printsJson)
      std::printf("%s\n", toJson(origin, std::move(results)).dump(2).c_str());
  }

  const Options &options;
  gpu::Bundle bundle;
  gpu::Gpu gpu;
  Origin origin;
};

// Appended to row by row, so that a run that breaks off loses little.
std::ofstream appendTo(const std::string &path) {
  std::ofstream file;
  if (path.empty())
    return file;
  std::error_code none;
  bool fresh = std::filesystem::file_size(path, none) == 0 || none;
  file.open(path, std::ios::app);
  if (!file)
    throw gpu::Error("cannot write " + path);
  if (fresh)
    file << csvHead << std::flush;
  return file;
}

Exit forward(const Options &options) {
  Run run(options);
  std::ofstream csv = appendTo(options.csv);
  const Setup setup = run.setup();
  json rows = json::array();
  run.print(kernelsText(run.origin, run.bundle, run.plainCase()) + "\n" + forwardHead);
  run.eachCase([&](const Case &c) {
    Measurement m = measure(setup, c);
    if (csv.is_open())
      csv << csvRow(run.origin, setup.cuts, c, m) << std::flush;
    rows.push_back(toJson(setup.cuts, c, m));
    run.print(text(c, m));
  });
  run.printJson(std::move(rows));
  return Ok;
}

Exit takeApart(const Options &options) {
  Run run(options);
  const Setup setup = run.setup();
  json rows = json::array();
  run.eachCase([&](const Case &c) {
    Profile result = profile(setup, c);
    rows.push_back(toJson(setup.cuts, c, result));
    run.print(text(c, result) + "\n");
  });
  run.printJson(std::move(rows));
  return Ok;
}

Exit host(const Options &options) {
  Run run(options);
  const Setup setup = run.setup();
  json rows = json::array();
  run.print("heads    lengths      us a call\n");
  run.eachCase([&](const Case &c) {
    double microseconds = hostTime(setup, c);
    rows.push_back({{"heads_k", c.keyHeads}, {"heads_v", c.valueHeads}, {"lengths", c.label}, {"us", microseconds}});
    char line[128];
    std::snprintf(line, sizeof line, "%-8s %-12s %9.2f\n",
                  (std::to_string(c.keyHeads) + "/" + std::to_string(c.valueHeads)).c_str(), c.label.c_str(),
                  microseconds);
    run.print(line);
  });
  run.printJson(std::move(rows));
  return Ok;
}

Exit calibrate(const Options &options) {
  Run run(options);
  gpu::watchdog(options.timeout, "gdn-bench: calibrate");
  const std::vector<Cost> costs = costsOf(measureRounds(run.setup(), options.rounds));
  gpu::watchdog(0);
  run.print(text(costs));
  run.printJson(toJson(costs));
  if (const Cost *worst = noisiest(costs, options.limit / 100)) {
    std::fprintf(stderr, "gdn-bench: %s: expected rounds within %g %% of each other, got %.1f %%: nothing is written\n",
                 worst->name, options.limit, 100 * worst->spread);
    return Mismatch;
  }
  std::ofstream file(options.output);
  file << costsFile(costs, run.origin.gpu, run.origin.date, size_t(options.rounds)) << std::flush;
  if (!file)
    throw gpu::Error("cannot write " + options.output);
  return Ok;
}

void addCommon(CLI::App &app, Options &options) {
  app.add_option("--bundle", options.bundle, "the bundle (.gdnb) whose forward is timed")->required();
  app.add_option("--device", options.device, "ordinal of the GPU")->capture_default_str();
  app.add_option("--timeout", options.timeout, "seconds after which a measurement is taken for a deadlock")
      ->capture_default_str();
  app.add_flag("--json", options.printsJson, "prints JSON instead of the table");
}

void addCase(CLI::App &app, Options &options, std::vector<std::string> heads, std::vector<std::string> lengths) {
  addCommon(app, options);
  options.heads = std::move(heads);
  options.lengths = std::move(lengths);
  app.add_option("--heads", options.heads, "head counts H/HV, separated by commas")
      ->delimiter(',')
      ->check(headsError)
      ->capture_default_str();
  app.add_option(
         "--lengths", options.lengths,
         "batches, separated by commas: 4x8192 is four sequences of 8192 tokens, 1+7+2x63 an uneven batch, mixed "
         "1+7+63+64+65+1000+4096+16384")
      ->delimiter(',')
      ->check(lengthsError)
      ->capture_default_str();
  app.add_option("--dims", options.dims, "dimensions KxV of a head")->check(dimsError)->capture_default_str();
  app.add_option("--type", options.type, "element type of q, k, v and o")
      ->check(CLI::IsMember({"bf16", "f16"}))
      ->capture_default_str();
  app.add_option("--layout", options.layout, "layout of the states")
      ->check(CLI::IsMember({"k-first", "v-first"}))
      ->capture_default_str();
  app.add_option(
         "--gates", options.gates,
         "quarter: every fourth head has no decay (op forward); decay: every head "
         "decays (op forward_all_decay); raw: the kernel computes them, and beta from logits (op forward_raw_gates)")
      ->check(CLI::IsMember({"quarter", "decay", "raw"}))
      ->capture_default_str();
  app.add_flag("--l2norm", options.normalise, "the kernel normalises q and k (op ..._l2norm)");
  app.add_option("--cut", options.cut, "how work is cut along the tokens, as gdn.h names it; the keys are normalised")
      ->check(CLI::IsMember({"auto", "off", "exact", "fast", "invariant"}))
      ->capture_default_str();
  app.add_option("--split", options.split, "blocks that share one head's V; 0: as the runtime picks")
      ->capture_default_str();
  app.add_option("--reps", options.repetitions, "timed replays of the graph, of which the median is reported")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "seed of the inputs")->capture_default_str();
}

void addForward(CLI::App &app, Options &options) {
  addCase(app, options, {"16/64", "2/8"}, {"4x8192", "1x32768"});
  app.add_option("--error-heads", options.errorHeads, "heads compared with the fp64 reference; 0: none")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--csv", options.csv, "appends the results to this file");
}

void addCalibrate(CLI::App &app, Options &options) {
  addCommon(app, options);
  app.add_option("-o,--output", options.output, "the file to write, as coefs/h200.csv")->required();
  app.add_option("--rounds", options.rounds, "how often everything is measured")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  app.add_option("--limit", options.limit, "percent by which the rounds may differ")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
}

struct Command {
  const char *name, *help;
  void (*add)(CLI::App &, Options &);
  Exit (*run)(const Options &);
};

const Command commands[] = {
    {"forward",
     "Times calls: a CUDA graph is replayed, the L2 cache overwritten before each replay.\n\n"
     "ms         median time of a replay; about 0.004 ms of it is the graph's own\n"
     "us/chunk   that time spread over all 64-token chunks of all heads, for one SM\n"
     "clk/chunk  clocks from an item's first chunk to its end, divided by its chunks; median over the blocks\n"
     "MHz        the SM clock inside the kernel\n"
     "of floor   clocks the tensor cores need for a chunk, of those it took\n"
     "error      relative Frobenius error against a token-by-token fp64 reference, the worst of the heads compared\n\n"
     "Clocks need a bundle with the profile variant of the kernel. Inputs: q, k normalised normal; v normal; g = "
     "logsigmoid(normal)/16; beta = sigmoid(normal); an fp32 initial state of 0.1 normal and a final state.",
     addForward, forward},
    {"profile",
     "Takes a call apart: into its kernels, by the GPU's timer, and a chunk into what each role does, in clocks of an "
     "SM (medians over pieces of work). The bundle must hold the profile variant.",
     [](CLI::App &app, Options &options) { addCase(app, options, {"16/64"}, {"4x8192"}); }, takeApart},
    {"host", "Times how long a call of gdn_forward keeps the host, without a graph: the median of --reps times 20.",
     [](CLI::App &app, Options &options) { addCase(app, options, {"2/8"}, {"1x2048"}); }, host},
    {"calibrate",
     "Measures what the parts of a forward cost on this GPU, for gdnc build --costs. The bundle must hold the profile "
     "variant of K = V = 128 in bf16, k-first, split 1. Exit code 4 if the rounds differ by more than the limit.",
     addCalibrate, calibrate},
};

} // namespace

int main(int count, char **arguments) {
  CLI::App app(
      "Times the forward of a bundle on a GPU.\n"
      "Exit code: 0 done, 2 usage, 3 no GPU, no bundle or no kernel for what was asked, 4 a deadlock or noise.");
  app.require_subcommand(1);
  Options options[std::size(commands)]; // each has defaults of its own
  for (size_t i = 0; i < std::size(commands); ++i)
    commands[i].add(*app.add_subcommand(commands[i].name, commands[i].help), options[i]);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? Usage : Ok;
  }
  try {
    for (size_t i = 0; i < std::size(commands); ++i)
      if (app.got_subcommand(commands[i].name))
        return commands[i].run(options[i]);
  } catch (const gpu::Error &error) {
    std::fprintf(stderr, "gdn-bench: %s\n", error.what());
  }
  return Environment;
}
