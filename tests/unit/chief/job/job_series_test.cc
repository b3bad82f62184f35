#include "chief/job/job_series.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/base/version.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/series_fixture.h"

namespace lockstep::chief {
namespace {

using Fixture = SeriesFixture;

TEST_CASE("a ps that has lost its variables is told to make them again, as often as it takes") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  for (int times = 0; times < 3; ++times) {
    f.TakeCommand();
    f.LoseVariables();
    f.executor.AwaitWork();
    CHECK_FALSE(f.ended.has_value());
  }
  CHECK(f.ps.finishes.size() == 0);
  CHECK(f.series.job()->plan().mode == StartMode::kResume);
  CHECK(f.series.job()->plan().lost ==
        "ps 0 (127.0.0.1:1) was started again and has lost its variables");
}

TEST_CASE("a chief that goes back to a checkpoint keeps its lease meanwhile") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  f.executor.AwaitWork();
  REQUIRE(f.ps.get_view.size() == 1);  // of the job's next start, which waits for the ps
  for (int ticks = 0; ticks < 100; ++ticks) {
    f.clock.Advance(absl::Milliseconds(100));
    f.series.Tick();
    f.executor.Run();
  }
  CHECK(f.ps.renewals.size() == 8);
  for (const RenewLeaseRequest& renewal : f.ps.renewals.all()) {
    CHECK(renewal.end() == CommandStatus::NONE);
  }
}

TEST_CASE("of runs that another one has followed nothing is kept, however many there are") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  const auto lose = [&f] {
    f.TakeCommand();
    f.LoseVariables();
    f.executor.AwaitWork();
    f.series.Tick();
  };
  lose();
  const long users = f.clusters.use_count();
  lose();
  lose();
  CHECK(f.clusters.use_count() == users);
}

TEST_CASE("an answer to a run that is gone harms nobody") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.TakeCommand();
  f.ps.create.Answer(CreateVariablesReply());
  f.executor.Run();
  RegisterTaskRequest worker;
  worker.set_incarnation(10);
  worker.set_cluster(f.series.job()->plan().cluster.Canonical());
  worker.set_version(kVersion);
  (*f.series.worker_calls())
      ->Register(worker,
                 Answer<RegisterTaskReply>([](const absl::StatusOr<RegisterTaskReply>&) {}));
  while (f.ps.set_view.size() > 0) {
    f.ps.set_view.Answer(WithVariables());
    f.executor.Run();
  }
  REQUIRE(f.ps.grants.size() == 2);
  f.ps.grants.Answer(LostVariablesError("ps 0 (127.0.0.1:1)"));
  f.executor.Run();
  f.series.Tick();
  GrantReply late;
  late.set_shard_step(1);
  f.ps.grants.Answer(late);
  f.TakeCommand();
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.series.job()->record().global_step == GlobalStep(0));
}

TEST_CASE("a chief that goes back while another one takes command does not take it back") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  // It is stopped for longer than its lease, and goes on.
  f.clock.Advance(absl::Seconds(10));
  f.series.Tick();
  REQUIRE(f.ps.renewals.size() == 1);
  SetViewReply seen;
  seen.set_job(9);
  seen.set_term(2);
  SECTION("as the step shard answers its lease") {
    f.ps.renewals.Answer(absl::AbortedError("another chief commands"));
    seen.set_term(GENERATE(1, 2));
    // Told before it had the other chief.
    const bool names_this_chief = GENERATE(false, true);
    if (names_this_chief) seen.mutable_command_status()->set_term(seen.term());
  }
  SECTION("as the shards' term says") {}
  SECTION("as the shards' job says, which were all started again") {
    seen.set_job(10);
    seen.set_term(1);
  }
  f.executor.AwaitWork();
  REQUIRE(f.ps.get_view.size() == 1);
  f.ps.get_view.Answer(seen);
  f.executor.Run();
  CHECK(f.ps.set_view.size() == 0);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
  f.series.Tick();
}

TEST_CASE("a chief that goes back and finds its next term taken does not take the one after that") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.GoBack();
  f.ps.set_view.Answer(absl::AbortedError("term 2 belongs to another chief"));
  f.executor.Run();
  SetViewReply seen;
  seen.set_job(9);
  seen.set_term(2);
  f.ps.get_view.Answer(seen);
  f.executor.Run();
  CHECK(f.ps.set_view.size() == 0);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
}

TEST_CASE("a chief that goes back takes the term after its own, which only the step shard has") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  const Command sent = f.GoBack();
  f.ps.set_view.Answer(absl::FailedPreconditionError("its copy has another cluster spec"));
  f.executor.Run();
  SetViewReply seen;
  seen.set_job(9);
  seen.set_term(2);
  seen.mutable_command_status()->set_term(2);
  seen.mutable_command_status()->set_chief(sent.chief());
  f.ps.get_view.Answer(seen);
  f.executor.Run();
  REQUIRE(f.ps.set_view.size() == 1);
  CHECK(f.ps.set_view.front().command().term() == 3);
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a job that goes back stays the same, though no ps knows it any more") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  SetViewReply seen;
  seen.set_job(55);
  seen.set_term(4);
  const Command first = f.TakeCommand(seen).command();
  CHECK(first.job() == 55);
  CHECK(first.term() == 5);
  f.LoseVariables();
  f.executor.AwaitWork();
  const Command second = f.TakeCommand().command();
  CHECK(second.job() == 55);
  CHECK(second.term() == 6);
}

TEST_CASE("a chief whose only ps is started again while it takes over goes back") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  SetViewReply seen = WithVariables(2);
  seen.set_job(55);
  seen.set_term(4);
  seen.set_epoch(3);
  f.executor.Run();
  f.ps.get_view.Answer(seen);
  f.executor.Run();
  CHECK(f.ps.set_view.front().epoch() == 3);
  f.ps.set_view.Answer(SetViewReply());
  f.executor.Run();
  CHECK(f.ps.create.size() == 0);
  const SetViewRequest second = f.TakeCommand();
  CHECK(second.command().job() == 55);
  CHECK(second.command().term() == 6);
  CHECK(second.epoch() == 4);
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a job without a checkpoint folder ends with what was lost") {
  Fixture f("");
  f.TakeCommand();
  f.LoseVariables();
  // Those that stand by hear of it too.
  REQUIRE(f.ps.renewals.size() == 1);
  CHECK(f.ps.renewals.front().exit_code() == 138);
  f.HearOfTheEnd();
  REQUIRE(f.ended.has_value());
  CHECK(HasLostVariables(*f.ended));
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kPeersLost);
}

TEST_CASE("a job that is stopped while its checkpoint is read ends with that") {
  const test::TemporaryFolder folder;
  const bool leaves = GENERATE(false, true);
  Fixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  const absl::Status why =
      WithExitCode(absl::CancelledError("told to stop"), ExitCode::kInterrupted);
  leaves ? f.series.Leave(why) : f.series.Stop(why);
  CHECK_FALSE(f.ended.has_value());
  f.executor.AwaitWork();
  // One that leaves tells nobody but those that stand by.
  leaves ? f.ReleaseLease() : f.FinishPs(ExitCode::kInterrupted);
  CHECK(f.ended == why);
  CHECK(f.ps.get_view.size() == 0);
}

TEST_CASE("a job that is stopped while a ps is awaited for its next start tells the ps") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  f.executor.AwaitWork();
  REQUIRE(f.ps.get_view.size() == 1);
  f.series.Stop(WithExitCode(absl::CancelledError("told to stop"), ExitCode::kInterrupted));
  f.executor.Run();
  f.FinishPs(ExitCode::kInterrupted);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInterrupted);
}

TEST_CASE("a job that is stopped while its next view is under way names the term of that view") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  const Command sent = f.GoBack();
  f.series.Stop(WithExitCode(absl::CancelledError("told to stop"), ExitCode::kInterrupted));
  f.executor.Run();
  REQUIRE(f.ps.finishes.size() == 1);
  CHECK(f.ps.finishes.front().command().term() == sent.term());
  CHECK(f.ps.finishes.front().command().job() == sent.job());
  CHECK(f.ps.finishes.front().command().chief() == sent.chief());
  f.ps.finishes.Answer(FinishReply());
  f.executor.Run();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInterrupted);
}

TEST_CASE("an operator's stop while the ps are awaited, or a checkpoint is read, is answered") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  const bool is_between = GENERATE(false, true);
  CAPTURE(is_between);
  if (is_between) {
    f.TakeCommand();
    f.LoseVariables();
  }
  std::optional<absl::StatusOr<StopReply>> got;
  f.series.StopForOperator(
      Answer<StopReply>([&](absl::StatusOr<StopReply> reply) { got = std::move(reply); }));
  if (is_between) {
    f.executor.AwaitWork();
    f.FinishPs(ExitCode::kInterrupted);
  }
  REQUIRE(got.has_value());
  REQUIRE(got->ok());
  CHECK((*got)->exit_code() == 130);
  CHECK((*got)->global_step() == 0);
  CHECK((*got)->checkpoint().empty());
  CHECK((*got)->save_error().empty());
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kInterrupted);
  CHECK(f.series.job() == f.first);  // it does not go on
}

TEST_CASE("a checkpoint that cannot be read ends the job for all, with what is wrong with it") {
  const test::TemporaryFolder folder;
  folder.Write("LATEST", "ckpt-3");
  folder.Write("ckpt-3/manifest.json", "{");
  Fixture f(folder.path());
  f.TakeCommand();
  f.LoseVariables();
  f.executor.AwaitWork();
  CHECK_FALSE(f.ended.has_value());
  f.FinishPs(ExitCode::kCorruptInput);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kCorruptInput);
  CHECK(absl::StrContains(f.ended->message(), "ckpt-3/manifest.json"));
}

}  // namespace
}  // namespace lockstep::chief
