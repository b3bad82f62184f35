// What a chief that ends early does when its last save fails.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/base/not_kept.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

// A job that was stopped after its first step, and is being saved.
struct Stopped {
  Stopped() : f(PlanIn(folder), {.waits_for_disk = true}) {
    f.view.set_job(9);
    f.view.set_term(f.ps.set_view.all().back().command().term());
    f.Register(0, 10);
    f.Beat(0, 10);
    f.Step();
    grants = f.ps.grants.all().size();
    f.job->Stop(WithExitCode(absl::CancelledError("told to stop"), ExitCode::kInterrupted));
    f.Settle();
    REQUIRE(f.ps.saves.size() == 1);
    REQUIRE(f.ps.saves.front().version() == 1);
  }
  static JobPlan PlanIn(const test::TemporaryFolder& folder) {
    JobPlan plan = TwoWorkerPlan(4);
    plan.job.mutable_checkpoint()->set_folder(folder.path());
    return plan;
  }
  void AnswerSave(absl::StatusOr<SaveReply> reply) {
    f.ps.saves.Answer(std::move(reply));
    f.Settle();
  }
  // Of steps, since the job was stopped.
  size_t Granted() const { return f.ps.grants.all().size() - grants; }

  const test::TemporaryFolder folder;
  JobFixture f;
  size_t grants = 0;
};

TEST_CASE("a save whose files the chief does not see is repeated, and no further step is granted") {
  Stopped job;
  SaveReply reply;
  reply.set_file("shard-0-of-1.safetensors");
  reply.set_bytes(8);
  int saves = 0;
  for (int tenths = 0; tenths < 205; ++tenths) {
    if (job.f.ps.saves.size() > 0 && ++saves > 0) job.AnswerSave(reply);
    job.f.Pass(absl::Milliseconds(100));
  }
  CHECK(saves > 5);
  CHECK(job.Granted() == 0);
  INFO(job.f.job->record().save_error);
  CHECK(
      absl::StrContains(job.f.job->record().save_error, "storage that every ps and the chief see"));
  CHECK(absl::StrContains(job.f.job->record().save_error, "not written within 20 s (--drain)"));
}

TEST_CASE("time in which the chief stands still is not of its --drain") {
  Stopped job;
  job.f.Pass(absl::Seconds(10));
  job.f.clock.Advance(absl::Seconds(200));
  job.f.Pass(absl::Seconds(9.8));
  CHECK(job.f.job->record().save_error.empty());
  job.f.Pass(absl::Seconds(0.4));
  CHECK(absl::StrContains(job.f.job->record().save_error, "not written within 20 s (--drain)"));
}

TEST_CASE("a version that a shard has no more is followed by the next one") {
  Stopped job;
  job.AnswerSave(NotKeptError(1, "the shard is at step 2"));
  CHECK(job.Granted() == 1);
  CHECK(job.f.ps.grants.all().back().step() == 1);
}

TEST_CASE("a last save ends at once where the ps has lost what was to be saved") {
  Stopped job;
  job.AnswerSave(LostVariablesError("ps 0 (127.0.0.1:1)"));
  CHECK(job.Granted() == 0);
  CHECK(HasLostVariables(absl::FailedPreconditionError(job.f.job->record().save_error)));
}

}  // namespace
}  // namespace lockstep::chief
