// gdn-emu: runs entries of a PTX file on the CPU.
#include "Arguments.h"
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace gdn::emu;

namespace {

constexpr int ok = 0, compileError = 1, usageError = 2, checkMismatch = 4;

int fail(int code, const std::string &message) {
  std::cerr << "gdn-emu: error: " << message << "\n";
  return code;
}

std::shared_ptr<Image> open(const std::string &path, std::string &error) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    error = "cannot open '" + path + "'";
    return nullptr;
  }
  std::stringstream text;
  text << file.rdbuf();
  auto image = loadPtx(text.str(), error);
  if (!image)
    error = path + ": " + error;
  return image;
}

int list(const std::string &path) {
  std::string error;
  auto image = open(path, error);
  if (!image)
    return fail(compileError, error);
  bool all = true;
  for (auto &entry : entriesOf(*image)) {
    EntryInfo info;
    if (!describeEntry(*image, entry, info, error)) {
      all = false;
      std::cout << entry << ": " << error << "\n";
      continue;
    }
    std::cout << entry << ": parameters of";
    for (auto bytes : info.paramBytes)
      std::cout << " " << bytes;
    std::cout << " bytes, at most " << (info.maxThreads ? info.maxThreads : 1024) << " threads, " << info.sharedStatic
              << " bytes of static shared memory, registers of a warp in " << info.registerBytes << " bytes\n";
  }
  return all ? ok : compileError;
}

struct RunFlags {
  std::string path, entry, schedule = "earliest";
  std::vector<uint32_t> grid{1}, block{32}, cluster{1};
  std::vector<std::string> args, prints, outs;
  bool json = false;
  Launch launch;
  Options options;
};

Dim dim(std::vector<uint32_t> v) {
  v.resize(3, 1);
  return {v[0], v[1], v[2]};
}

std::vector<std::pair<const char *, uint64_t>> rows(const Counts &c) {
  return {{"instructions", c.instructions},          {"shared_bytes", c.sharedBytes},
          {"shared_wavefronts", c.sharedWavefronts}, {"shared_conflicts", c.sharedConflicts},
          {"global_bytes", c.globalBytes},           {"global_sectors", c.globalSectors},
          {"bulk_load_bytes", c.bulkLoadBytes},      {"bulk_store_bytes", c.bulkStoreBytes},
          {"barrier_waits", c.barrierWaits},         {"mbarrier_waits", c.mbarrierWaits}};
}

void printCounts(const Counts &c) {
  for (auto &[name, value] : rows(c))
    std::cout << name << " " << value << "\n";
  std::cout << "tensor_clocks " << c.tensorClocks() << "\n";
  for (auto &[name, value] : c.tensorProducts)
    std::cout << "products " << name << " " << value << "\n";
}

void printJson(const Counts &c) {
  std::cout << "{";
  for (auto &[name, value] : rows(c))
    std::cout << '"' << name << "\": " << value << ", ";
  std::cout << "\"tensor_clocks\": " << c.tensorClocks() << ", \"products\": {";
  const char *separator = "";
  for (auto &[name, value] : c.tensorProducts) {
    std::cout << separator << '"' << name << "\": " << value;
    separator = ", ";
  }
  std::cout << "}}\n";
}

int run(RunFlags &f) {
  std::string error;
  auto image = open(f.path, error);
  if (!image)
    return fail(compileError, error);
  auto entries = entriesOf(*image);
  if (f.entry.empty() && entries.size() == 1)
    f.entry = entries[0];
  Machine machine;
  Arguments arguments(machine);
  for (auto &text : f.args)
    if (!arguments.add(text, error))
      return fail(usageError, "argument '" + text + "': " + error);
  f.options.count |= f.json;
  f.launch.entry = f.entry;
  f.launch.grid = dim(f.grid), f.launch.block = dim(f.block), f.launch.cluster = dim(f.cluster);
  f.launch.params = arguments.bytes();
  f.options.schedule = f.schedule == "latest"   ? Schedule::Latest
                       : f.schedule == "random" ? Schedule::Random
                                                : Schedule::Earliest;
  auto begin = std::chrono::steady_clock::now();
  Result result = launch(machine, *image, f.launch, f.options);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!result.ok())
    return fail(checkMismatch, f.path + ": " + result.error);
  for (auto &name : f.prints)
    if (!arguments.print(name, std::cout, error))
      return fail(usageError, error);
  for (auto &out : f.outs)
    if (!arguments.save(out, error))
      return fail(usageError, error);
  if (f.options.count)
    f.json ? printJson(result.counts) : printCounts(result.counts);
  std::cerr << "gdn-emu: " << result.instructions << " warp instructions in " << seconds.count() << " s, "
            << double(result.instructions) / 1e6 / seconds.count() << " million a second\n";
  return ok;
}

void runOptions(CLI::App &app, RunFlags &f) {
  app.add_option("file", f.path, "PTX file")->required();
  app.add_option("--entry", f.entry, "name of the entry; may be left out where the file has one");
  app.add_option("--grid", f.grid, "blocks along x, y, z")->delimiter(',')->expected(1, 3);
  app.add_option("--block", f.block, "threads along x, y, z")->delimiter(',')->expected(1, 3);
  app.add_option("--cluster", f.cluster, "blocks of a cluster along x, y, z")->delimiter(',')->expected(1, 3);
  app.add_option("--shared", f.launch.sharedBytes, "bytes of dynamic shared memory");
  app.add_option("--arg", f.args, Arguments::help())->allow_extra_args(false);
  app.add_option("--print", f.prints, "print a buffer: NAME or NAME:COUNT")->allow_extra_args(false);
  app.add_option("--out", f.outs, "write a buffer to a file: NAME=FILE")->allow_extra_args(false);
  app.add_option("--schedule", f.schedule, "when asynchronous work is done and which warp runs")
      ->check(CLI::IsMember({"earliest", "latest", "random"}));
  app.add_option("--seed", f.options.seed, "of --schedule random");
  app.add_flag("--detect", f.options.detect, "look for races, missing fences, early reuse and unset memory");
  app.add_flag("--count", f.options.count, "print work counts");
  app.add_flag("--json", f.json, "work counts as JSON");
  app.add_option("--threads", f.options.threads, "host threads")->check(CLI::Range(1, 256));
  app.add_option("--only-block", f.options.blocks, "run these blocks of the grid (linear indices)")->delimiter(',');
  app.add_option("--max-instructions", f.options.maxInstructions, "of a block, before it is given up");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"executes PTX on the CPU"};
  app.require_subcommand(1);
  auto *listing = app.add_subcommand("list", "entries of a PTX file, and whether all their instructions are known");
  std::string path;
  listing->add_option("file", path, "PTX file")->required();
  auto *running = app.add_subcommand("run", "run an entry");
  RunFlags flags;
  runOptions(*running, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    return app.exit(e) ? usageError : ok;
  }
  return listing->parsed() ? list(path) : run(flags);
}
