// How long no step is made when the chief of a job is killed, stopped or told to end, and another
// one stands by: a lease, and at most a second more.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/checkpoint/owner.h"
#include "tests/integration/standby_job.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr int kSteps = 1000;
const CalmRun& UndisturbedRun() {
  static const CalmRun calm(kSteps);
  return calm;
}

TEST_CASE("a standby takes the place of a killed chief within a lease, and no bit changes") {
  UndisturbedRun();
  const bool has_token = GENERATE(false, true);
  CAPTURE(has_token);
  StandbyJob job(kSteps, 2, has_token);
  job.cluster.chief(0).Signal(SIGKILL);
  const absl::Duration pause = job.LongestPause(1);
  CHECK(pause <= absl::Seconds(3));
  job.CheckEndsWell(1);
  CHECK_THAT(job.cluster.chief(1).Output(),
             Contains("taking command: chief 0 (") &&
                 Contains("has been silent for longer than its lease of 2.0 s"));
  CheckSameBits(&job, 1, UndisturbedRun());
  // As the same processes.
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(job.cluster.worker(i).Output(), !Contains("joining anew"));
  }
}

TEST_CASE("a worker that is killed with the chief and started again costs no second lease") {
  UndisturbedRun();
  StandbyJob job(kSteps);
  job.cluster.chief(0).Signal(SIGKILL);
  job.cluster.worker(1).Signal(SIGKILL);
  REQUIRE(job.cluster.worker(1).Wait(kEnd) == 137);
  job.cluster.StartWorker(1);
  const absl::Duration pause = job.LongestPause(1);
  INFO(job.cluster.Logs());
  CHECK(pause <= absl::Seconds(3));
  job.CheckEndsWell(1);
  CheckSameBits(&job, 1, UndisturbedRun());
  CHECK_THAT(job.cluster.worker(0).Output(), !Contains("joining anew"));
}

TEST_CASE("a chief that is told to end leaves at once to its standby") {
  UndisturbedRun();
  StandbyJob job(kSteps);
  job.cluster.chief(0).Signal(SIGTERM);
  const absl::Duration pause = job.LongestPause(1);
  CHECK(pause < absl::Seconds(1));
  CHECK(job.cluster.chief(0).Wait(kEnd) == 143);
  job.CheckEndsWell(1);
  CHECK_THAT(job.cluster.chief(1).Output(), Contains("has ended and leaves the job to the next"));
  CheckSameBits(&job, 1, UndisturbedRun());
}

TEST_CASE("a chief that was stopped finds its standby in its place, and harms nothing") {
  StandbyJob job(kForeverSteps);
  job.cluster.chief(0).Signal(SIGSTOP);
  const absl::Duration pause = job.LongestPause(1);
  CHECK(pause <= absl::Seconds(3));
  const auto owner = ReadOwner(job.folder());
  REQUIRE(owner.ok());
  // Workers do not wait for the one that is stopped either.
  for (int i = 0; i < 2; ++i) {
    CHECK(job.cluster.worker(i).WaitForOutput("the chief at " + job.cluster.spec().other_chiefs[0],
                                              kEnd));
  }
  job.cluster.chief(0).Signal(SIGCONT);
  CHECK(job.cluster.chief(0).Wait(kEnd) == 80);
  CHECK_THAT(job.cluster.chief(0).Output(), Contains("another one has its place"));
  CHECK(*ReadOwner(job.folder()) == *owner);
  const auto closed = job.ClosedSteps();
  CHECK(job.cluster.WaitForStep(closed.value() + 100, kWhole, 1));
  INFO(job.cluster.Logs());
  CHECK_THAT(job.cluster.chief(1).Output(), !Contains("is lost: silent"));
}

// Chiefs are killed in turn, and started again as standbys. Before each kill, all train for so
// long.
void KillManyTimes(int kills, absl::Duration between) {
  StandbyJob job(kForeverSteps);
  std::vector<double> pauses;
  int chief = 0;
  for (int i = 0; i < kills; ++i) {
    const absl::Duration next = Clock::Real()->Monotonic() + between;
    while (Clock::Real()->Monotonic() < next) job.WaitForNextLook();
    job.cluster.chief(chief).Signal(SIGKILL);
    pauses.push_back(absl::ToDoubleSeconds(job.LongestPause(1 - chief)));
    REQUIRE(job.cluster.chief(chief).Wait(kEnd) == 137);
    job.StandBy(chief);
    chief = 1 - chief;
  }
  std::sort(pauses.begin(), pauses.end());
  const std::string result = absl::StrFormat(
      "%d kills of the chief, --lease=2: %.2f s without a step (median), %.2f worst", kills,
      pauses[pauses.size() / 2], pauses.back());
  std::cout << result << "\n";
  INFO(result);
  CHECK(pauses.back() <= 3);
  // What it has come to is what a calm run comes to.
  job.cluster.chief(1 - chief).Signal(SIGTERM);
  REQUIRE(job.cluster.chief(1 - chief).Wait(kEnd) == 143);
  job.cluster.chief(chief).Signal(SIGTERM);
  REQUIRE(job.cluster.chief(chief).Wait(kEnd) == 143);
  const std::string saved = job.cluster.folder().Read("checkpoints/LATEST");
  const int steps = std::stoi(saved.substr(saved.find('-') + 1));
  CHECK(TensorsOf(job.folder() + "/ckpt-" + std::to_string(steps)) == CalmRun(steps).tensors);
}

TEST_CASE("chiefs that are killed again and again cost a lease each, and no bit") {
  KillManyTimes(3, absl::ZeroDuration());
}

// ./lockstep test //tests/integration:standby_time_test --test_arg='[.kills]' --test_output=all
TEST_CASE("twenty-four killed chiefs", "[.kills]") {
  // Beyond a lease, a standby is no longer a new one.
  KillManyTimes(24, absl::Milliseconds(2130));
}

}  // namespace
}  // namespace lockstep::test
