// How long it takes to gather rows from all over some large tables into one place and to scatter
// them back, with one copy each way, on all processors. Other rows each time.
//
//   row_copies ROWS TABLE_ROWS WIDTH TABLES    prints milliseconds, of each of some times
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/bench/peers/huge_pages.h"

namespace lockstep::bench {
namespace {

constexpr int kRounds = 15;

int Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// work(i) on a thread of its own for each i below `count`.
template <typename Work>
void OnThreads(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

void Measure(int64_t rows, int64_t table_rows, int64_t width, int num_tables) {
  std::vector<HugePageVector<float>> tables(num_tables);
  for (auto& table : tables) table.assign(table_rows * width, 1);
  HugePageVector<float> gathered(num_tables * rows * width);
  const size_t row_bytes = width * sizeof(float);
  const int threads = Processors();
  std::mt19937_64 random(1);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int64_t> chosen(rows);
    for (int64_t& row : chosen) row = static_cast<int64_t>(random() % table_rows);
    std::ranges::sort(chosen);
    const auto for_part = [&](int thread, auto copy) {
      for (int t = 0; t < num_tables; ++t) {
        for (int64_t i = rows * thread / threads; i < rows * (thread + 1) / threads; ++i) {
          copy(&tables[t][chosen[i] * width], &gathered[(t * rows + i) * width]);
        }
      }
    };
    const auto start = std::chrono::steady_clock::now();
    OnThreads(threads, [&](int thread) {
      for_part(thread,
               [&](float* in_table, float* beside) { std::memcpy(beside, in_table, row_bytes); });
      for_part(thread,
               [&](float* in_table, float* beside) { std::memcpy(in_table, beside, row_bytes); });
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%.3f ", 1000 * took.count());
  }
  std::printf("\n");
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  int64_t numbers[4] = {};
  for (int i = 0; i < 4 && argc == 5; ++i) numbers[i] = std::atoll(argv[i + 1]);
  if (*std::ranges::min_element(numbers) < 1) {
    std::fprintf(stderr, "usage: %s ROWS TABLE_ROWS WIDTH TABLES\n", argv[0]);
    return 64;
  }
  lockstep::bench::Measure(numbers[0], numbers[1], numbers[2], static_cast<int>(numbers[3]));
}
