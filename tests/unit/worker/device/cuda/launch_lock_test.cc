// The lock that keeps other calls of CUDA out of NCCL's launches.
#include "worker/device/cuda/launch_lock.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"

namespace lockstep::worker::cuda {
namespace {

using Hold = LaunchLock::Hold;

TEST_CASE("calls of several threads run beside each other, and may be nested") {
  constexpr int kThreads = 4;
  absl::Barrier all_inside(kThreads);  // hangs where one keeps another out
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      {
        const LaunchLock::Shared call;
        all_inside.Block();
        const LaunchLock::Shared nested;
        wrong += LaunchLock::held() != Hold::kShared;
      }
      wrong += LaunchLock::held() != Hold::kNone;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a launch waits for the calls of other threads, and they for it") {
  constexpr int kRounds = 1000;
  int launches = 0;  // guarded by the lock alone
  int64_t seen = 0;
  std::atomic<int> wrong = 0;
  const auto launch = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const LaunchLock::Exclusive lock;
      wrong += LaunchLock::held() != Hold::kExclusive;
      const int before = launches;
      const LaunchLock::Shared nested;  // a library that NCCL calls
      launches = before + 1;
    }
  };
  std::thread first(launch);
  std::thread second(launch);
  for (int round = 0; round < kRounds; ++round) {
    const LaunchLock::Shared call;
    const int before = launches;
    seen += before;
    wrong += launches != before;
  }
  first.join();
  second.join();
  CHECK(launches == 2 * kRounds);
  CHECK(seen <= int64_t{kRounds} * launches);
  CHECK(wrong == 0);
}

struct Library {
  Hold (*held)() = &LaunchLock::held;
};

TEST_CASE("a function of a library is called under the lock") {
  const Library library;
  CHECK(LockedCalls<Library>(&library)->held() == Hold::kShared);
  CHECK(LaunchLock::held() == Hold::kNone);
}

}  // namespace
}  // namespace lockstep::worker::cuda
