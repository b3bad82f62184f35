#include "ps/copy/state_budget.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Steps of this time, and a link of so many bytes a second: how long a step takes, in the end, as a
// multiple of one without a part.
double SlowdownOf(absl::Duration step, double bytes_per_second, uint64_t state_bytes) {
  StateBudget budget(state_bytes, kMiB);
  absl::Duration part;
  for (int i = 0; i < 40; ++i) {
    const uint64_t bytes = budget.next_bytes();
    part = absl::Seconds(static_cast<double>(bytes) / bytes_per_second);
    budget.OnPart(step, bytes, part);
  }
  return absl::FDivDuration(step + part, step);
}

TEST_CASE("parts make a step at most half as long again, and use the time that they have") {
  for (const double bytes_per_second : {50e6, 500e6, 2e9}) {
    const double slowdown = SlowdownOf(absl::Milliseconds(100), bytes_per_second, 1 << 30);
    CHECK(slowdown < 1.5);
    CHECK(slowdown > 1.05);
  }
}

TEST_CASE("a part is at least a message, at most an eighth of the state") {
  StateBudget budget(80 * kMiB, kMiB);
  CHECK(budget.next_bytes() == kMiB);
  for (int i = 0; i < 10; ++i) {
    budget.OnPart(absl::Seconds(1), budget.next_bytes(), absl::Microseconds(1));
  }
  CHECK(budget.next_bytes() == 10 * kMiB);
  for (int i = 0; i < 40; ++i) {
    budget.OnPart(absl::Microseconds(1), budget.next_bytes(), absl::Seconds(1));
  }
  CHECK(budget.next_bytes() == kMiB);
  CHECK(StateBudget(5, kMiB).next_bytes() == kMiB);
}

TEST_CASE("a part is at most twice the one before") {
  StateBudget budget(800 * kMiB, kMiB);
  budget.OnPart(absl::Seconds(1), budget.next_bytes(), absl::Microseconds(1));
  CHECK(budget.next_bytes() == 2 * kMiB);
}

TEST_CASE("a part that takes no time, or has no bytes, is no measurement of the link") {
  StateBudget budget(800 * kMiB, kMiB);
  budget.OnPart(absl::Seconds(1), 0, absl::ZeroDuration());
  CHECK(budget.next_bytes() == kMiB);
  budget.OnPart(absl::ZeroDuration(), kMiB, absl::ZeroDuration());
  CHECK(budget.next_bytes() == 2 * kMiB);
}

}  // namespace
}  // namespace lockstep::ps
