// After the last step of a replicated job, whose version the workers have.
#include <catch2/catch.hpp>
#include <string>

#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

// A replicated job of one step, which is over; its version is not stored yet.
struct UnsavedJob {
  UnsavedJob() {
    f.Register(0, 10);
    f.Register(1, 20);
    f.Step();
    REQUIRE(f.ps.saves.size() == 1);
  }
  static JobPlan Plan(const std::string& folder) {
    JobPlan plan = TwoWorkerPlan(1);
    plan.job.mutable_sync()->set_replicas_to_aggregate(2);
    plan.job.mutable_strategy()->mutable_replicated();
    plan.job.mutable_checkpoint()->set_folder(folder);
    return plan;
  }

  const test::TemporaryFolder folder;
  JobFixture f{Plan(folder.path()), {.waits_for_disk = true}};
};

TEST_CASE("the last version is stored by the worker that is left") {
  UnsavedJob job;
  Got<HeartbeatReply> beat;
  for (int second = 0; second < 6; ++second) {
    beat = job.f.Beat(1, 20);
    job.f.Pass(absl::Seconds(1));
  }
  REQUIRE(beat->has_value());
  const GroupView& group = (**beat)->group();
  CHECK(group.step() == 1);
  REQUIRE(group.members_size() == 1);
  CHECK(group.members(0).worker() == 1);
  CHECK(group.members(0).has_variables());
}

TEST_CASE("a replicated job ends when all that have its unsaved last version are lost") {
  UnsavedJob job;
  job.f.Register(1, 21);
  job.f.Pass(absl::Seconds(6));
  for (int second = 0; second < 60 && !job.f.ended.has_value(); ++second) {
    job.f.Beat(1, 21);
    job.f.Pass(absl::Seconds(1));
  }
  job.f.Pass(absl::Seconds(3));  // for worker 0 to hear it
  REQUIRE(job.f.ended.has_value());
  CHECK(ExitCodeFor(*job.f.ended) == ExitCode::kPeersLost);
  CHECK(std::string(job.f.ended->message())
            .find("every worker that had the variables and slots of step 1 is lost") == 0);
}

TEST_CASE("time in which the chief stands still is not of its patience with a lost last version") {
  UnsavedJob job;
  job.f.Register(1, 21);
  job.f.Pass(absl::Seconds(6));
  int second = 0;
  for (; second < 90 && !job.f.ended.has_value(); ++second) {
    if (second == 20) job.f.clock.Advance(absl::Seconds(200));
    job.f.Beat(1, 21);
    job.f.Pass(absl::Seconds(1));
  }
  CHECK(second >= 50);
  REQUIRE(job.f.ended.has_value());
  CHECK(ExitCodeFor(*job.f.ended) == ExitCode::kPeersLost);
}

}  // namespace
}  // namespace lockstep::chief
