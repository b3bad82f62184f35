#include "common/base/thread_pool.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

// How often each of `count` places was visited.
std::vector<int> Visits(ThreadPool* pool, size_t count, size_t step) {
  std::vector<std::atomic<int>> visits(count);
  pool->ForRanges(count, step, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) ++visits[i];
  });
  return {visits.begin(), visits.end()};
}

TEST_CASE("every place is visited once, whatever the number of threads and the step") {
  for (const int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    CHECK(pool.num_threads() == threads);
    for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{99}, size_t{1000}}) {
      for (const size_t step : {size_t{1}, size_t{7}, size_t{100}, ~size_t{0}}) {
        CAPTURE(threads, count, step);
        CHECK(Visits(&pool, count, step) == std::vector<int>(count, 1));
      }
    }
  }
}

TEST_CASE("ranges begin at multiples of the step and only the last one is shorter") {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::pair<size_t, size_t>> ranges;
  pool.ForRanges(25, 10, [&](size_t begin, size_t end) {
    const std::lock_guard<std::mutex> lock(mutex);
    ranges.emplace(begin, end);
  });
  CHECK(ranges == std::set<std::pair<size_t, size_t>>{{0, 10}, {10, 20}, {20, 25}});
}

TEST_CASE("other threads take part when the caller's is busy") {
  ThreadPool pool(3);
  std::atomic<int> inside = 0;
  // Each range waits until all three are being worked on.
  pool.ForRanges(3, 1, [&](size_t, size_t) {
    ++inside;
    while (inside.load() < 3) std::this_thread::yield();
  });
  CHECK(inside.load() == 3);
}

TEST_CASE("a loop that fits one step, and a loop within a loop, stay on their caller's thread") {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  pool.ForRanges(5, 5, [&](size_t, size_t) { CHECK(std::this_thread::get_id() == caller); });
  std::atomic<int> visited = 0;
  std::atomic<int> elsewhere = 0;
  pool.ForRanges(8, 1, [&](size_t, size_t) {
    const auto outer = std::this_thread::get_id();
    pool.ForRanges(10, 1, [&](size_t, size_t) {
      ++visited;
      if (std::this_thread::get_id() != outer) ++elsewhere;
    });
  });
  CHECK(visited.load() == 80);
  CHECK(elsewhere.load() == 0);
}

TEST_CASE("loops within a thread that helps end, though the caller has done its part already") {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> is_helped = false;
  std::atomic<int> visited = 0;
  pool.ForRanges(2, 1, [&](size_t, size_t) {
    if (std::this_thread::get_id() == caller) {
      while (!is_helped.load()) std::this_thread::yield();
      return;
    }
    is_helped.store(true);
    for (int i = 0; i < 100'000; ++i) pool.ForRanges(2, 1, [&](size_t, size_t) { ++visited; });
  });
  CHECK(visited.load() == 200'000);
}

TEST_CASE("loops that several threads bring at once all end with all of their work done") {
  ThreadPool pool(3);
  std::atomic<size_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.ForRanges(50, 3, [&](size_t begin, size_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(sum.load() == 4 * 200 * 50);
}

}  // namespace
}  // namespace lockstep
