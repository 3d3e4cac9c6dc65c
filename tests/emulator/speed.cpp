// Prints how fast the emulator runs the forward of a bundle: 16 chunks of two heads. The detectors and the host threads
// are those that the environment sets.
//   emulator-speed BUNDLE SECONDS    exits 4 where the forward takes longer
#include "tests/device/call.h"
#include "tests/reference/generate.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace gdn;

static double run(const gpu::Gpu &gpu, device::Call &call) {
  gpu.takeWork(/*counts=*/false);
  auto begin = std::chrono::steady_clock::now();
  std::clock_t used = std::clock();
  call.run();
  double core = double(std::clock() - used) / CLOCKS_PER_SEC;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double instructions = gpu.takeWork(/*counts=*/false)["issue_slots"];
  std::printf("%.0f warp instructions in %.3f s on %.2f cores: %.1f million a second of one core\n", instructions,
              seconds, core / seconds, instructions / 1e6 / core);
  return seconds;
}

int main(int, char **arguments) try {
  gpu::Gpu gpu(0);
  gpu::Bundle bundle(arguments[1]);
  reference::Recipe recipe;
  gdn_kernel_info info = bundle.kernel(0);
  recipe.io = ElementType(info.io);
  recipe.keyDim = uint32_t(info.key_dim);
  recipe.valueDim = uint32_t(info.value_dim);
  recipe.valueHeads = 2;
  recipe.lengths = {1024};
  device::Storage storage;
  storage.split = uint32_t(info.split);
  storage.valueFirst = info.state_layout == GDN_V_FIRST;
  device::Call call(gpu, bundle, reference::generate(recipe, 1), storage);
  run(gpu, call); // decodes the kernel, too
  return run(gpu, call) <= std::atof(arguments[2]) ? 0 : 4;
} catch (const gpu::Error &error) {
  std::fprintf(stderr, "emulator-speed: %s\n", error.what());
  return 3;
}
