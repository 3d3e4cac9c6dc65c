// gdn-calibrate: how far the emulator is from a GPU. Records what a device computes, and compares two records.
#include "tests/device/calibration.h"
#include <CLI/CLI.hpp>
#include <cstdio>

using namespace gdn;

namespace {

enum Exit { Ok = 0, Usage = 2, Environment = 3, Mismatch = 4 };

int record(const std::string &path, const std::string &bundle, int ordinal) {
  gpu::Gpu gpu(ordinal);
  device::Record record =
      bundle.empty() ? device::recordInstructions(gpu) : device::recordForward(gpu, gpu::Bundle(bundle));
  device::save(record, path);
  std::printf("%s: %zu results of %s\n", path.c_str(), record.size(), gpu.info().name);
  return Ok;
}

} // namespace

int main(int count, char **arguments) {
  CLI::App app("How far the emulator is from a GPU, instruction by instruction and for whole kernels.\n"
               "    gdn-calibrate record gpu.rec && GDN_DRIVER=emu gdn-calibrate record emu.rec\n"
               "    gdn-calibrate compare gpu.rec emu.rec\n"
               "Exit code: 0 done, 2 usage, 3 no device, bundle or file, 4 a difference past its bound.");
  app.require_subcommand(1);
  std::string path, bundle, other;
  int ordinal = 0;
  auto *recording =
      app.add_subcommand("record", "run single instructions, or a bundle's kernels, and keep the results");
  recording->add_option("file", path, "what to write")->required();
  recording->add_option("--bundle", bundle, "run this bundle's forward instead of single instructions");
  recording->add_option("--device", ordinal, "ordinal of the GPU");
  auto *comparing = app.add_subcommand("compare", "compare a GPU's record with the emulator's");
  comparing->add_option("gpu", path, "record of a GPU, or its digest")->required();
  comparing->add_option("emulator", other, "record of the emulator")->required();
  auto *digesting = app.add_subcommand("digest", "keep of a record what tells whether another has the same bits");
  digesting->add_option("record", path, "a record")->required();
  digesting->add_option("file", other, "what to write")->required();
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? Usage : Ok;
  }
  try {
    if (recording->parsed())
      return record(path, bundle, ordinal);
    if (digesting->parsed())
      return device::save(device::digest(device::load(path)), other), Ok;
    return device::compare(device::load(path), device::load(other)) ? Ok : Mismatch;
  } catch (const gpu::Error &error) {
    std::fprintf(stderr, "gdn-calibrate: %s\n", error.what());
    return Environment;
  }
}
