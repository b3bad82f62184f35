#include "worker/data/prefetcher.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

std::vector<Batch> OneNumber() {
  std::vector<Batch> batches(1);
  batches[0].features = Tensor(DType::kFloat32, Shape({1}));
  return batches;
}

void WriteStep(int64_t step, std::vector<Batch>* batches) {
  (*batches)[0].features.as<float>()[0] = static_cast<float>(step);
}

float Number(const std::vector<Batch>* batches) { return (*batches)[0].features.as<float>()[0]; }

TEST_CASE("Steps come in order, out of order and repeated") {
  for (int64_t ahead : {1, 2, 5}) {
    Prefetcher prefetcher(ahead, kNoEnd, OneNumber, WriteStep);
    for (int64_t step : {0, 1, 2, 3, 3, 5, 4, 0, 0, 1, 100, 101, 103, 99, 100, 7}) {
      CAPTURE(ahead, step);
      CHECK(Number(prefetcher.Get(step)) == step);
    }
  }
}

TEST_CASE("Any sequence of steps gives each step its own batches") {
  std::mt19937 random(1);
  for (int run = 0; run < 20; ++run) {
    Prefetcher prefetcher(1 + run % 4, 40, OneNumber, WriteStep);
    int64_t step = 0;
    for (int i = 0; i < 500; ++i) {
      const bool jump = random() % 4 == 0;
      step = jump ? random() % 41 : std::min<int64_t>(step + 1, 40);
      REQUIRE(Number(prefetcher.Get(step)) == step);
    }
  }
}

TEST_CASE("Buffers are used again and the one in use is left alone") {
  Prefetcher prefetcher(2, kNoEnd, OneNumber, WriteStep);
  std::set<const void*> seen;
  for (int64_t step = 0; step < 1000; ++step) {
    const auto* batches = prefetcher.Get(step);
    seen.insert((*batches)[0].features.data());
    for (int i = 0; i < 100; ++i) {
      if (Number(batches) != step) FAIL("overwritten while in use");
    }
  }
  CHECK(seen.size() <= 3);
}

TEST_CASE("Work goes on ahead of the consumer, by as many steps as asked for and no more") {
  std::atomic<int64_t> filled = 0;
  absl::Notification three_filled;
  const auto fill = [&](int64_t step, std::vector<Batch>* batches) {
    WriteStep(step, batches);
    if (++filled == 4) three_filled.Notify();
  };
  Prefetcher prefetcher(3, kNoEnd, OneNumber, fill);
  prefetcher.Get(0);
  // Step 0 is in use, 1 to 3 get ready although nobody asks for them.
  three_filled.WaitForNotification();
  prefetcher.Get(0);
  CHECK(filled == 4);
}

TEST_CASE("A Get that waits ends when the prefetcher is stopped, while a step is being filled") {
  absl::Notification begun, release;
  const auto fill = [&](int64_t, std::vector<Batch>*) {
    begun.Notify();
    release.WaitForNotification();
  };
  Prefetcher prefetcher(1, kNoEnd, OneNumber, fill);
  const std::vector<Batch>* got = nullptr;
  std::thread consumer([&] { got = prefetcher.Get(0); });
  begun.WaitForNotification();
  prefetcher.Stop();
  consumer.join();
  CHECK(got == nullptr);
  release.Notify();
  // What was filled meanwhile may be of no use.
  CHECK(prefetcher.Get(0) == nullptr);
}

TEST_CASE("Steps that were passed over are skipped without starting again") {
  std::atomic<int> fills = 0;
  absl::Notification ready;
  const auto fill = [&](int64_t step, std::vector<Batch>* batches) {
    WriteStep(step, batches);
    ++fills;
    if (step == 3) ready.Notify();
  };
  Prefetcher prefetcher(3, 5, OneNumber, fill);
  prefetcher.Get(0);
  ready.WaitForNotification();
  CHECK(Number(prefetcher.Get(2)) == 2);
  CHECK(Number(prefetcher.Get(3)) == 3);
  CHECK(Number(prefetcher.Get(5)) == 5);
  // Step 4 is passed over before or after its turn; none is filled twice.
  CHECK(fills >= 5);
  CHECK(fills <= 6);
}

TEST_CASE("What is ready, or in use, is there without waiting") {
  absl::Notification may_fill_two;
  absl::Notification fills_two;
  const auto fill = [&](int64_t step, std::vector<Batch>* batches) {
    if (step == 2) {
      fills_two.Notify();  // step 1 is ready
      may_fill_two.WaitForNotification();
    }
    WriteStep(step, batches);
  };
  Prefetcher prefetcher(2, kNoEnd, OneNumber, fill);
  prefetcher.Get(0);
  fills_two.WaitForNotification();
  CHECK(prefetcher.Has(0));
  CHECK(prefetcher.Has(1));
  CHECK_FALSE(prefetcher.Has(2));
  may_fill_two.Notify();
  prefetcher.Get(2);
  CHECK(prefetcher.Has(2));
  CHECK_FALSE(prefetcher.Has(1));
}

TEST_CASE("Nothing is prepared beyond the last step") {
  std::atomic<int64_t> highest = -1;
  {
    const auto fill = [&](int64_t step, std::vector<Batch>* batches) {
      highest = std::max(highest.load(), step);
      WriteStep(step, batches);
    };
    Prefetcher prefetcher(4, 6, OneNumber, fill);
    for (int64_t step = 0; step <= 6; ++step) CHECK(Number(prefetcher.Get(step)) == step);
    CHECK(Number(prefetcher.Get(6)) == 6);
    CHECK(Number(prefetcher.Get(2)) == 2);
  }
  CHECK(highest <= 6);
}

TEST_CASE("It can be destroyed while full, while filling and untouched") {
  for (int i = 0; i < 50; ++i) Prefetcher untouched(2, kNoEnd, OneNumber, WriteStep);

  absl::Notification full;
  const auto count = [&](int64_t step, std::vector<Batch>* batches) {
    WriteStep(step, batches);
    if (step == 4) full.Notify();
  };
  {
    Prefetcher prefetcher(4, kNoEnd, OneNumber, count);
    CHECK(Number(prefetcher.Get(0)) == 0);
    full.WaitForNotification();
  }

  absl::Notification filling, go_on;
  const auto wait = [&](int64_t step, std::vector<Batch>* batches) {
    if (step == 1) {
      filling.Notify();
      go_on.WaitForNotification();
    }
    WriteStep(step, batches);
  };
  {
    Prefetcher prefetcher(1, kNoEnd, OneNumber, wait);
    CHECK(Number(prefetcher.Get(0)) == 0);
    filling.WaitForNotification();
    go_on.Notify();
  }
}

TEST_CASE("What was being filled when the consumer jumped is thrown away") {
  absl::Notification filling, go_on;
  const auto fill = [&](int64_t step, std::vector<Batch>* batches) {
    if (step == 2 && !filling.HasBeenNotified()) {
      filling.Notify();
      go_on.WaitForNotification();
    }
    WriteStep(step, batches);
  };
  Prefetcher prefetcher(2, kNoEnd, OneNumber, fill);
  prefetcher.Get(0);
  filling.WaitForNotification();
  std::thread release([&] { go_on.Notify(); });
  CHECK(Number(prefetcher.Get(50)) == 50);
  release.join();
  CHECK(Number(prefetcher.Get(51)) == 51);
  CHECK(Number(prefetcher.Get(2)) == 2);
}

}  // namespace
}  // namespace lockstep::worker
