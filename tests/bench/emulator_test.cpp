// That a sequence is cut into the pieces that gdn-bench calibrate takes its costs from, on the emulator.
//   bench_emulator_test BUNDLE
#include "tests/device/call.h"
#include "tests/reference/generate.h"
#include "tools/bench/measure.h"
#include <cstdio>

using namespace gdn;
using namespace gdn::bench;

int main(int, char **arguments) try {
  constexpr int middle = 2;
  gpu::Bundle bundle(arguments[1]);
  gpu::Gpu gpu(0);
  reference::Recipe recipe;
  recipe.lengths = {chainTokens(middle)};
  device::Storage storage;
  storage.split = 1;
  storage.cuts = chainCuts;
  device::Call call(gpu, bundle, generate(recipe, 0), storage);
  std::vector<int64_t> stamps(size_t(gpu.info().sm_count) * stampsOfBlock);
  gpu::Memory memory(gpu, stamps.size() * sizeof(int64_t));
  memory.fill(0);
  call.setProfile(&memory);
  call.launch();
  memory.download(stamps.data(), memory.size());

  int whole = 0, makers = 0, hops = 0, others = 0, wrong = 0;
  for (const Block &block : decode(stamps))
    for (const Piece &piece : block) {
      bool isWhole = piece.chunks() == 32 && !piece.stateOnly() && !piece.hops();
      bool makes = piece.chunks() == 32 && piece.stateOnly() == 32 && !piece.hops();
      // The chain stamps chunks of which there is an output, and nothing is left of the piece before.
      wrong += bool(piece[GDN_PROFILE_STATE_BEGIN]) != isWhole || bool(piece[GDN_PROFILE_STATE_S]) != isWhole;
      ++(isWhole ? whole : makes ? makers : piece.hops() == middle && !piece.chunks() ? hops : others);
    }
  std::printf("%d whole, %d makers, %d hops, %d others, %d with wrong stamps\n", whole, makers, hops, others, wrong);
  return whole == middle + 2 && makers == 2 * middle && hops == 2 && !others && !wrong ? 0 : 4;
} catch (const gpu::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
