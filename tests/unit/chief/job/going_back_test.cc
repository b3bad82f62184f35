// A chief whose next start is being read from a checkpoint: its status, and its own end meanwhile.
#include <catch2/catch.hpp>
#include <optional>

#include "common/base/version.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/series_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a job that goes back to a checkpoint starts again, and says what it waits for") {
  const test::TemporaryFolder folder;
  SeriesFixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  ProcessStatus status;
  f.series.GetStatus([&](absl::StatusOr<ProcessStatus> got) { status = *std::move(got); });
  CHECK(status.state() == "starting");
  CHECK(status.waiting_for() == "the checkpoint to go back to");
  RegisterTaskRequest worker;
  worker.set_incarnation(10);
  worker.set_cluster(f.series.job()->plan().cluster.Canonical());
  worker.set_version(kVersion);
  std::optional<absl::StatusOr<RegisterTaskReply>> answer;
  (*f.series.worker_calls())
      ->Register(worker, Answer<RegisterTaskReply>([&](absl::StatusOr<RegisterTaskReply> reply) {
                   answer = std::move(reply);
                 }));
  for (int ticks = 0; ticks < 100 && !answer.has_value(); ++ticks) {
    f.clock.Advance(absl::Milliseconds(100));
    f.series.Tick();
  }
  REQUIRE(answer.has_value());
  REQUIRE(answer->ok());
  CHECK((*answer)->waiting_for() == "the checkpoint to go back to");
}

TEST_CASE("a chief that leaves while its checkpoint is read waits briefly for the step shard") {
  const test::TemporaryFolder folder;
  SeriesFixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  const absl::Status why = absl::CancelledError("told to stop");
  f.series.Leave(why);
  f.series.Leave(why);
  const auto pass = [&f](absl::Duration time) {
    f.clock.Advance(time);
    f.series.Tick();
  };
  pass(absl::Milliseconds(900));
  CHECK_FALSE(f.ended.has_value());
  pass(absl::Milliseconds(200));
  CHECK(f.ended == why);
  CHECK(f.ps.renewals.size() == 1);
  f.executor.AwaitWork();
  CHECK(f.ps.get_view.size() == 0);
}

}  // namespace
}  // namespace lockstep::chief
