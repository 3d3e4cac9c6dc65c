// gdn-emu: runs entries of a PTX file, or of a bundle that carries PTX, on the CPU.
#include "Arguments.h"
#include "format/bundle.h"
#include <CLI/CLI.hpp>
#include <algorithm>
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

std::string readFile(const std::string &path, std::string &error) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    error = "cannot read '" + path + "'";
  return text.str();
}

// The PTX texts of a file: itself, or those that a bundle carries beside its cubins.
std::vector<std::string> textsOf(const std::string &path, std::string &error) {
  std::string bytes = readFile(path, error);
  if (!error.empty() || !bytes.starts_with("\x89GDNB"))
    return {bytes};
  std::vector<std::string> texts;
  auto bundle = gdn::parseBundle(bytes);
  if (!bundle) {
    error = path + ": " + bundle.error().text;
    return {};
  }
  for (auto &kernel : bundle->kernels)
    if (kernel.ptx)
      texts.emplace_back(kernel.ptx->bytes);
  if (texts.empty())
    error = path + ": the bundle carries no PTX: it was built without --with-ptx";
  return texts;
}

std::vector<std::shared_ptr<Image>> open(const std::string &path, std::string &error) {
  std::vector<std::shared_ptr<Image>> images;
  for (auto &text : textsOf(path, error)) {
    if (error.empty())
      images.push_back(loadPtx(text, error));
    if (!error.empty()) {
      error = error.starts_with("cannot") ? error : path + ": " + error;
      return {};
    }
  }
  return images;
}

bool describe(Image &image, const std::string &entry) {
  EntryInfo info;
  std::string error;
  if (!describeEntry(image, entry, info, error)) {
    std::cout << entry << ": " << error << "\n";
    return false;
  }
  std::cout << entry << ": parameters of";
  for (auto bytes : info.paramBytes)
    std::cout << " " << bytes;
  std::cout << " bytes, at most " << (info.maxThreads ? info.maxThreads : 1024) << " threads, " << info.sharedStatic
            << " bytes of static shared memory, registers of a warp in " << info.registerBytes << " bytes\n";
  return true;
}

int list(const std::string &path) {
  std::string error;
  auto images = open(path, error);
  if (!error.empty())
    return fail(compileError, error);
  bool all = true;
  for (auto &image : images)
    for (auto &entry : entriesOf(*image))
      all &= describe(*image, entry);
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

void printCounts(const Counts &counts, bool json) {
  const char *separator = json ? "{" : "";
  std::cout.precision(15);
  for (auto &[name, value] : counts.byName()) {
    std::cout << separator << (json ? "\"" + name + "\": " : name + " ") << value;
    separator = json ? ", " : "\n";
  }
  std::cout << (json ? "}\n" : "\n");
}

int run(RunFlags &f) {
  std::string error;
  auto images = open(f.path, error);
  if (!error.empty())
    return fail(compileError, error);
  if (f.entry.empty() && images.size() == 1 && entriesOf(*images[0]).size() == 1)
    f.entry = entriesOf(*images[0])[0];
  auto image = std::find_if(images.begin(), images.end(), [&](auto &candidate) {
    auto names = entriesOf(*candidate);
    return std::find(names.begin(), names.end(), f.entry) != names.end();
  });
  if (image == images.end())
    return fail(usageError, f.path + ": expected --entry with the name of an entry (gdn-emu list shows them), got '" +
                                f.entry + "'");
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
  Result result = launch(machine, **image, f.launch, f.options);
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
    printCounts(result.counts, f.json);
  std::cerr << "gdn-emu: " << result.instructions << " warp instructions in " << seconds.count() << " s, "
            << double(result.instructions) / 1e6 / seconds.count() << " million a second\n";
  return ok;
}

void runOptions(CLI::App &app, RunFlags &f) {
  app.add_option("file", f.path, "PTX file, or bundle built with --with-ptx")->required();
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
  auto *listing =
      app.add_subcommand("list", "entries of a PTX file or a bundle, and whether all their instructions are known");
  std::string path;
  listing->add_option("file", path, "PTX file, or bundle built with --with-ptx")->required();
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
