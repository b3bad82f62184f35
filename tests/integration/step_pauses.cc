#include "tests/integration/step_pauses.h"

#include "absl/time/clock.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kAnswer = absl::Seconds(1);
constexpr absl::Duration kNextLook = absl::Milliseconds(2);

absl::Duration Now() { return Clock::Real()->Monotonic(); }

}  // namespace

void StepPauses::Begin() { watch_.Begin(Now()); }

bool StepPauses::WatchUntil(const std::function<bool()>& done, Process* chief,
                            absl::Duration patience) {
  const absl::Duration deadline = Now() + patience;
  while (!done()) {
    if (Now() >= deadline || !chief->running()) return false;
    ReadStep();
    absl::SleepFor(kNextLook);
  }
  return true;
}

void StepPauses::ReadStep() {
  const auto status = reader_.Read(kAnswer);
  if (!status.ok()) return;
  step_ = status->global_step();
  watch_.OnAnswer(Now(), /*ps=*/0, step_);
}

absl::Duration StepPauses::Longest() const { return watch_.LongestPause(Now()); }

}  // namespace lockstep::test
