// gdn-bench: times the forward of a bundle on a GPU.
#include "tests/reference/numbers.h"
#include "tools/bench/measure.h"
#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

using namespace gdn;
using namespace gdn::bench;
using nlohmann::json;

namespace {

enum Exit { Ok = 0, Usage = 2, Environment = 3 };

uint32_t cutsOf(const std::string &name) {
  if (name == "off")
    return GDN_CUT_OFF;
  uint32_t mode = name == "exact" ? GDN_CUT_EXACT : name == "fast" ? GDN_CUT_FAST : GDN_CUT_AUTO;
  return mode | GDN_KEYS_NORMALISED | (name == "invariant" ? GDN_CUT_INVARIANT : 0);
}

struct Options {
  std::string bundle, csv, dims = "128x128", type = "bf16", gates = "quarter", layout = "k-first", cut = "auto";
  std::vector<std::string> heads = {"16/64", "2/8"}, lengths = {"4x8192", "1x32768"};
  int repetitions = 20, errorHeads = 2, device = 0;
  uint32_t split = 0;
  unsigned timeout = 300;
  uint64_t seed = 0;
  bool normalise = false, printsJson = false;
};

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

std::string today() {
  char text[16];
  std::time_t now = std::time(nullptr);
  std::strftime(text, sizeof(text), "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::string version(const gpu::Bundle &bundle) {
  json metadata = json::parse(gdn_bundle_metadata(bundle.get()), nullptr, false);
  json gdnc = metadata.is_object() ? metadata.value("gdnc", json::object()) : json::object();
  std::string commit = gdnc.is_object() && gdnc["commit"].is_string() ? gdnc["commit"].get<std::string>() : "";
  std::string number = gdnc.is_object() && gdnc["version"].is_string() ? gdnc["version"].get<std::string>() : "?";
  return number + (commit.empty() ? "" : "+" + commit.substr(0, 12));
}

// What is not the default has a name of its own.
std::string operation(const Setup &setup, const Case &c) {
  std::string name = "forward";
  if (setup.cuts & GDN_CUT_INVARIANT)
    name += "_invariant";
  const char *modes[] = {"", "_uncut", "_exact", "_fast"};
  name += modes[setup.cuts & GDN_CUT_MODES];
  name += c.rawGates ? "_raw_gates" : c.allDecay ? "_all_decay" : "";
  return name + (c.normalise ? "_l2norm" : "");
}

// One row a measurement, in the columns that all results share.
class Csv {
public:
  explicit Csv(const std::string &path) {
    if (path.empty())
      return;
    bool fresh = !std::filesystem::exists(path) || std::filesystem::file_size(path) == 0;
    file = std::fopen(path.c_str(), "a");
    if (!file)
      throw gpu::Error("cannot write " + path);
    if (fresh)
      std::fprintf(file, "date,gpu,clock_mhz,system,version,op,heads_k,heads_v,lengths,ms,clocks_per_chunk\n");
  }
  ~Csv() {
    if (file)
      std::fclose(file);
  }
  void add(const Setup &setup, const Case &c, const Measurement &m, const std::string &version) {
    if (!file)
      return;
    std::fprintf(file, "%s,%s,", today().c_str(), setup.gpu.info().name);
    m.clocks ? std::fprintf(file, "%.0f", m.clocks->megahertz) : 0;
    std::fprintf(file, ",gdnc,%s,%s,%u,%u,%s,%.4f,", version.c_str(), operation(setup, c).c_str(), c.keyHeads,
                 c.valueHeads, c.label.c_str(), m.milliseconds);
    m.clocks ? std::fprintf(file, "%.0f", m.clocks->perChunk) : 0;
    std::fprintf(file, "\n");
    std::fflush(file);
  }

private:
  std::FILE *file = nullptr;
};

template <typename T> json orNull(const std::optional<T> &value) { return value ? json(*value) : json(); }

json toJson(const Setup &setup, const Case &c, const Measurement &m) {
  json row = {{"op", operation(setup, c)},
              {"heads_k", c.keyHeads},
              {"heads_v", c.valueHeads},
              {"key_dim", c.keyDim},
              {"value_dim", c.valueDim},
              {"type", reference::name(c.io)},
              {"lengths", c.label},
              {"split", m.split},
              {"ms", m.milliseconds},
              {"ms_fastest", m.fastest},
              {"ms_slowest", m.slowest},
              {"us_per_chunk", m.microsecondsPerChunk},
              {"floor_clocks", m.split ? json(c.floor(m.split)) : json()},
              {"error_o", orNull(m.outputError)},
              {"error_s", orNull(m.stateError)}};
  row["clocks_per_chunk"] = m.clocks ? json(m.clocks->perChunk) : json();
  row["clock_mhz"] = m.clocks ? json(m.clocks->megahertz) : json();
  row["of_floor"] = m.clocks && m.split ? json(c.floor(m.split) / m.clocks->perChunk) : json();
  return row;
}

void printKernels(const gpu::Bundle &bundle, const Case &c) {
  for (size_t i = 0; i < bundle.size(); ++i) {
    gdn_kernel_info info = bundle.kernel(i);
    if (info.key_dim == int(c.keyDim) && info.value_dim == int(c.valueDim) && info.io == int(c.io))
      std::printf(
          "%s %s %dx%d %s %s split %d%s: %d threads, %d registers, %d bytes spilled, %d bytes shared\n", info.operation,
          info.arch, info.key_dim, info.value_dim, reference::name(c.io),
          info.state_layout == GDN_V_FIRST ? "v-first" : "k-first", info.split,
          (std::string(info.features & GDN_NORMALISE_QK ? " l2norm" : "") + (info.profile ? " profile" : "")).c_str(),
          info.threads, info.registers, info.spill_bytes, info.shared_bytes);
  }
  std::printf("\n%-8s %-12s %5s %9s %9s %9s %8s %8s %9s %9s\n", "heads", "lengths", "split", "ms", "us/chunk",
              "clk/chunk", "MHz", "of floor", "error O", "error S");
}

void print(const Case &c, const Measurement &m) {
  std::string heads = std::to_string(c.keyHeads) + "/" + std::to_string(c.valueHeads);
  std::printf("%-8s %-12s %5s %9.4f %9.3f ", heads.c_str(), c.label.c_str(),
              m.split ? std::to_string(m.split).c_str() : "auto", m.milliseconds, m.microsecondsPerChunk);
  m.clocks ? std::printf("%9.0f %8.0f ", m.clocks->perChunk, m.clocks->megahertz) : std::printf("%9s %8s ", "-", "-");
  m.clocks &&m.split ? std::printf("%7.1f%% ", 100 * c.floor(m.split) / m.clocks->perChunk) : std::printf("%8s ", "-");
  m.outputError ? std::printf("%9.2e %9.2e\n", *m.outputError, *m.stateError) : std::printf("%9s %9s\n", "-", "-");
  std::fflush(stdout);
}

int run(const Options &options) {
  gpu::Bundle bundle(options.bundle);
  gpu::Gpu gpu(options.device);
  gpu::check(gdn_bundle_load(bundle.get()), "gdn_bundle_load");
  Csv csv(options.csv);
  Setup setup{gpu,
              bundle,
              options.split,
              cutsOf(options.cut),
              options.layout == "v-first",
              options.repetitions,
              options.errorHeads,
              options.seed};
  Case c = {};
  pair(options.dims, 'x', c.keyDim, c.valueDim);
  c.io = options.type == "bf16" ? ElementType::BF16 : ElementType::F16;
  c.allDecay = options.gates == "decay";
  c.rawGates = options.gates == "raw";
  c.normalise = options.normalise;
  json rows = json::array();
  if (!options.printsJson) {
    std::printf("%s, driver %d.%d, bundle of gdnc %s\n", gpu.info().name, gpu.info().driver_version / 1000,
                gpu.info().driver_version % 1000 / 10, version(bundle).c_str());
    printKernels(bundle, c);
  }
  for (const std::string &heads : options.heads)
    for (const std::string &lengths : options.lengths) {
      pair(heads, '/', c.keyHeads, c.valueHeads);
      c.label = lengths;
      c.lengths = reference::parseLengths(lengths);
      gpu::watchdog(options.timeout, "gdn-bench: " + heads + " " + lengths);
      Measurement m = measure(setup, c);
      gpu::watchdog(0);
      csv.add(setup, c, m, version(bundle));
      options.printsJson ? rows.push_back(toJson(setup, c, m)) : print(c, m);
    }
  if (options.printsJson)
    std::printf("%s\n", json{{"gpu", gpu.info().name},
                             {"driver", gpu.info().driver_version},
                             {"version", version(bundle)},
                             {"date", today()},
                             {"results", rows}}
                            .dump(2)
                            .c_str());
  return Ok;
}

void addOptions(CLI::App &app, Options &options) {
  app.add_option("--bundle", options.bundle, "the bundle (.gdnb) whose forward is timed")->required();
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
  app.add_option("--error-heads", options.errorHeads, "heads compared with the fp64 reference; 0: none")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "seed of the inputs")->capture_default_str();
  app.add_option("--device", options.device, "ordinal of the GPU")->capture_default_str();
  app.add_option("--timeout", options.timeout, "seconds after which a measurement is taken for a deadlock")
      ->capture_default_str();
  app.add_flag("--json", options.printsJson, "prints JSON instead of the table");
  app.add_option("--csv", options.csv, "appends the results to this file");
}

} // namespace

int main(int count, char **arguments) {
  Options options;
  CLI::App app(
      "Times the forward of a bundle: a CUDA graph is replayed, the L2 cache overwritten before each replay.\n\n"
      "ms         median time of a replay; about 0.004 ms of it is the graph's own\n"
      "us/chunk   that time spread over all 64-token chunks of all heads, for one SM\n"
      "clk/chunk  clocks from an item's first chunk to its end, divided by its chunks; median over the blocks\n"
      "MHz        the SM clock inside the kernel\n"
      "of floor   clocks the tensor cores need for a chunk, of those it took\n"
      "error      relative Frobenius error against a token-by-token fp64 reference, the worst of the heads compared\n\n"
      "Clocks need a bundle with the profile variant of the kernel. Inputs: q, k normalised normal; v normal; g = "
      "logsigmoid(normal)/16; beta = sigmoid(normal); an fp32 initial state of 0.1 normal and a final state.\n"
      "Exit code: 0 done, 2 usage, 3 no GPU, no bundle or no kernel for what was asked, 4 deadlock.");
  addOptions(app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? Usage : Ok;
  }
  try {
    return run(options);
  } catch (const gpu::Error &error) {
    std::fprintf(stderr, "gdn-bench: %s\n", error.what());
    return Environment;
  }
}
