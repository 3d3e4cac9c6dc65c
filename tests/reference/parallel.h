// Work over all cores. Results never depend on the number of threads: every index is computed by itself.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace gdn::reference {

// Calls work(i) for every i in [0, count), each on some thread.
template <typename Work> void parallelFor(size_t count, Work work) {
  size_t threads = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<size_t> next = 0;
  auto run = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;)
      work(i);
  };
  std::vector<std::thread> pool;
  for (size_t i = 1; i < threads; ++i)
    pool.emplace_back(run);
  run();
  for (std::thread &thread : pool)
    thread.join();
}

// Calls work(begin, end) for consecutive pieces of [0, count).
template <typename Work> void parallelRanges(size_t count, Work work) {
  constexpr size_t piece = 1 << 16;
  parallelFor((count + piece - 1) / piece, [&](size_t i) { work(i * piece, std::min(count, (i + 1) * piece)); });
}

} // namespace gdn::reference
