// A chief that stands by, and what it finds when it takes command.
#include "chief/job/standby.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "chief/checkpoint/folder_claim.h"
#include "chief/job/job_series.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "common/tensor/tensor.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// Chief 1 of two, and the only ps.
struct Fixture {
  explicit Fixture(const std::string& checkpoints = "", const std::string& finished = "")
      : series(
            PlanWith(checkpoints, finished),
            {.job_id = 9, .incarnation = Incarnation(5), .chief_index = 1, .waits_for_disk = true},
            {&ps}, &executor, &clock, [] {},
            [this](absl::Status status) { ended = std::move(status); }) {
    series.Start();
    executor.Run();
  }
  static JobPlan PlanWith(const std::string& checkpoints, const std::string& finished) {
    JobPlan plan = TwoWorkerPlan(4);
    plan.cluster.other_chiefs = {"127.0.0.1:5"};
    plan.job.mutable_checkpoint()->set_folder(checkpoints);
    plan.mode = StartMode::kSucceed;
    plan.finished = finished;
    return plan;
  }

  void Tell(CommandStatus::State state, uint64_t term = 3) {
    if (state == CommandStatus::EXPIRED) clock.Advance(absl::Seconds(2));
    WatchCommandReply reply;
    reply.mutable_command()->set_state(state);
    reply.mutable_command()->set_term(term);
    reply.mutable_command()->set_chief(term);
    reply.mutable_command()->set_lease_ms(2000);
    REQUIRE(ps.watches.size() == 1);
    ps.watches.Answer(std::move(reply));
    executor.Run();
  }
  // What the ps is that the standby finds, in this term.
  static SetViewReply Trained(int64_t step, uint64_t term = 3) {
    SetViewReply view = WithVariables(step);
    view.set_job(77);
    view.set_term(term);
    view.set_epoch(2);
    Member* member = view.add_members();
    member->set_worker(0);
    member->set_incarnation(10);
    return view;
  }
  // Nobody listens at the ps for so long.
  void Refuse(absl::Duration time) {
    for (absl::Duration t; t < time && !ended.has_value(); t += absl::Milliseconds(100)) {
      if (ps.watches.size() > 0) ps.watches.Answer(absl::UnavailableError("connection refused"));
      executor.Run();
      Pass(absl::Milliseconds(100));
    }
  }
  void Find(SetViewReply view) {
    REQUIRE(ps.get_view.size() == 1);
    ps.get_view.Answer(std::move(view));
    executor.Run();
  }
  void AcceptView(const SetViewReply& view) {
    REQUIRE(ps.set_view.size() > 0);
    ps.set_view.Answer(view);
    executor.Run();
  }
  // The ps, which has accepted the first view of term 4, has its variables, and accepts the next.
  void EndTakeOver() {
    ps.create.Answer(CreateVariablesReply());
    executor.Run();
    AcceptView(Trained(2, 4));
  }
  // Of a process for worker 0.
  RegisterTaskRequest RegistrationOf(uint64_t incarnation) {
    RegisterTaskRequest request;
    request.set_worker(0);
    request.set_incarnation(incarnation);
    request.set_cluster(series.job()->plan().cluster.Canonical());
    request.set_version(kVersion);
    return request;
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      series.Tick();
      executor.Run();
    }
  }

  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  std::optional<absl::Status> ended;
  JobSeries series;
};

// In epoch 1.
void Save(const test::TemporaryFolder& root, int64_t step) {
  Manifest manifest;
  manifest.epoch = 1;
  manifest.step = step;
  const Tensor value(DType::kFloat32, {});
  const absl::StatusOr<ShardFile> shard =
      WriteShard(CheckpointFolder(root.path(), step), 0, 1, {{"fc/kernel", value.view()}});
  REQUIRE(shard.ok());
  manifest.shards = {*shard};
  REQUIRE(CommitCheckpoint(root.path(), manifest, 0).ok());
}

TEST_CASE("a standby waits at the step shard, and refuses workers by name of the chief") {
  Fixture f;
  REQUIRE(f.ps.watches.size() == 1);
  CHECK(f.ps.watches.front().term() == 0);
  CHECK(f.ps.watches.front().caller() == 5);
  CHECK(f.ps.watches.front().version() == kVersion);
  f.Tell(CommandStatus::HELD);
  CHECK(f.ps.watches.front().term() == 3);
  f.Pass(absl::Seconds(30));
  CHECK(f.ps.watches.size() == 1);
  CHECK(f.ps.get_view.size() == 0);
  const auto calls = f.series.worker_calls();
  CHECK(absl::IsUnavailable(calls.status()));
  CHECK_THAT(std::string(calls.status().message()),
             Contains("this chief stands by for chief 0 (127.0.0.1:4)"));
}

TEST_CASE("a standby takes the next term when the lease has ended, and goes on where the ps is") {
  Fixture f;
  f.Tell(CommandStatus::HELD);
  f.Tell(CommandStatus::EXPIRED);
  f.Find(Fixture::Trained(2));
  REQUIRE(f.ps.set_view.size() == 1);
  const SetViewRequest view = f.ps.set_view.front();
  CHECK(view.command().term() == 4);
  CHECK(view.command().job() == 77);
  CHECK(view.command().chief() == 5);
  CHECK(view.chief_index() == 1);
  CHECK(view.lease_ms() == 5000);
  CHECK(view.epoch() == 2);
  f.AcceptView(Fixture::Trained(2, 4));
  REQUIRE(f.ps.create.size() == 1);
  CHECK(f.ps.create.front().restore_from().empty());
  f.EndTakeOver();
  REQUIRE(f.ps.grants.size() > 0);
  CHECK(f.ps.grants.front().step() == 2);
  CHECK(f.series.worker_calls().ok());
  f.Pass(absl::Milliseconds(1300));
  CHECK(f.ps.renewals.size() == 1);
}

TEST_CASE("the successor of a worker that died with the chief is let in a lease after it asked") {
  // Before the fixture, whose end is an answer.
  std::optional<absl::StatusOr<RegisterTaskReply>> reply;
  Fixture f;
  f.Tell(CommandStatus::HELD);
  CHECK(absl::IsUnavailable(f.series.CallsFor(WorkerIndex(0), Incarnation(11)).status()));
  f.Tell(CommandStatus::EXPIRED);  // 2 s later
  f.Find(Fixture::Trained(2));
  f.AcceptView(Fixture::Trained(2, 4));
  f.EndTakeOver();
  const RegisterTaskRequest request = f.RegistrationOf(11);
  const auto calls = f.series.CallsFor(WorkerIndex(0), Incarnation(11));
  REQUIRE(calls.ok());
  (*calls)->Register(request, Answer<RegisterTaskReply>([&](auto got) { reply = std::move(got); }));
  f.Pass(absl::Milliseconds(2100));
  REQUIRE(reply.has_value());
  CHECK_THAT((*reply)->waiting_for(), Contains("inherited from the previous chief"));
  CHECK(f.ps.set_view.size() == 0);
  (*calls)->Register(request, Answer<RegisterTaskReply>([&](auto got) { reply = std::move(got); }));
  f.Pass(absl::Milliseconds(1000));
  REQUIRE(f.ps.set_view.size() == 1);
  f.AcceptView(Fixture::Trained(2, 4));
  REQUIRE(f.ps.set_view.size() == 1);
  CHECK(f.ps.set_view.front().members(0).incarnation() == 11);
}

TEST_CASE("a member that calls while a chief takes over keeps its index, however long that takes") {
  Fixture f;
  const auto call = [&f](uint64_t incarnation) {
    return f.series.CallsFor(WorkerIndex(0), Incarnation(incarnation));
  };
  f.Tell(CommandStatus::HELD);
  CHECK_FALSE(call(11).ok());  // late, perhaps
  CHECK_FALSE(call(10).ok());
  f.Tell(CommandStatus::EXPIRED);
  f.Find(Fixture::Trained(2));
  f.AcceptView(Fixture::Trained(2, 4));
  for (int i = 0; i < 8; ++i) {
    REQUIRE(call(10).ok());
    f.Pass(absl::Seconds(1));
  }
  f.EndTakeOver();
  const RegisterTaskRequest request = f.RegistrationOf(11);
  call(11).value()->Register(request, Answer<RegisterTaskReply>([](const auto&) {}));
  f.Pass(absl::Seconds(1));
  CHECK(f.ps.set_view.size() == 0);
  f.Pass(absl::Seconds(4));
  REQUIRE(f.ps.set_view.size() == 1);  // silent for a lease
}

TEST_CASE("a standby that another one has overtaken waits again") {
  Fixture f;
  f.Tell(CommandStatus::HELD);
  f.Tell(CommandStatus::EXPIRED);
  SECTION("before it has asked the shards") { f.Find(Fixture::Trained(2, 4)); }
  SECTION("between its question and its view") {
    f.Find(Fixture::Trained(2));
    f.ps.set_view.Answer(absl::AbortedError("term 4 belongs to another chief"));
    f.executor.Run();
  }
  CHECK_FALSE(f.ended.has_value());
  CHECK(f.ps.set_view.size() == 0);
  CHECK(absl::IsUnavailable(f.series.worker_calls().status()));
  f.Tell(CommandStatus::HELD, 4);
  CHECK(f.ps.watches.front().term() == 4);
  f.Tell(CommandStatus::EXPIRED, 4);
  f.Find(Fixture::Trained(3, 4));
  CHECK(f.ps.set_view.front().command().term() == 5);
}

TEST_CASE("a standby that another one has overtaken leaves the checkpoint folder to it") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.Tell(CommandStatus::HELD);
  f.Tell(CommandStatus::EXPIRED);
  f.Find(Fixture::Trained(2));
  // Of another job, which may not enter beside a chief that has the lock.
  const FolderOwner other{.job = 78, .epoch = 9, .term = 1, .chief = 6, .host = "b", .pid = 1};
  CHECK_FALSE(FolderClaim(folder.path()).Enter(other).ok());
  f.ps.set_view.Answer(absl::AbortedError("term 4 belongs to another chief"));
  f.executor.Run();
  CHECK_FALSE(f.ended.has_value());
  CHECK(FolderClaim(folder.path()).Enter(other).ok());
}

TEST_CASE("a standby that has commanded and is overtaken ends with 80") {
  Fixture f;
  f.Tell(CommandStatus::EXPIRED);
  f.Find(Fixture::Trained(2));
  f.AcceptView(Fixture::Trained(2, 4));
  f.ps.create.Answer(absl::AbortedError("the shard is in term 5"));
  f.executor.Run();
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
}

TEST_CASE("a standby that commands goes back to a checkpoint itself, under its next term") {
  const test::TemporaryFolder folder;
  Fixture f(folder.path());
  f.Tell(CommandStatus::HELD);
  f.Tell(CommandStatus::EXPIRED);
  f.Find(Fixture::Trained(2));
  REQUIRE(f.ps.set_view.size() == 1);
  CHECK(f.ps.set_view.front().command().term() == 4);
  f.AcceptView(Fixture::Trained(2, 4));
  f.EndTakeOver();
  REQUIRE(f.ps.grants.size() > 0);
  f.ps.grants.Answer(LostVariablesError("ps 0 (127.0.0.1:1)"));
  f.executor.Run();
  while (f.ps.get_view.size() == 0) f.executor.AwaitWork();
  f.Find(SetViewReply());
  CHECK_FALSE(f.ended.has_value());
  REQUIRE(f.ps.set_view.size() == 1);
  CHECK(f.ps.set_view.front().command().term() == 5);
  CHECK(f.ps.set_view.front().command().job() == 77);
}

TEST_CASE("a standby that finds ps without variables plans the start afresh") {
  const test::TemporaryFolder folder;
  const bool has_folder = GENERATE(false, true);
  Fixture f(has_folder ? folder.path() : "");
  f.Tell(CommandStatus::HELD);
  f.Tell(CommandStatus::EXPIRED);
  SetViewReply found;
  found.set_term(3);
  REQUIRE(f.ps.get_view.size() == 1);
  f.ps.get_view.Answer(found);
  if (has_folder) {
    while (f.ps.get_view.size() == 0) f.executor.AwaitWork();
  } else {
    f.executor.Run();
  }
  CHECK(f.series.job()->plan().mode == StartMode::kResume);
  f.Find(found);
  CHECK(f.ps.set_view.front().command().term() == 4);
}

// The chief that began anew has died before it has set the earlier run's checkpoints aside.
TEST_CASE("a standby of a job that began anew sets the earlier run aside and begins") {
  const test::TemporaryFolder root;
  Save(root, 4);  // the last step
  REQUIRE(WriteOwner(root.path(), {.job = 77, .epoch = 2, .is_fresh = true}, nullptr).ok());
  Fixture f(root.path());
  f.Tell(CommandStatus::HELD);
  f.Tell(CommandStatus::EXPIRED);
  SetViewReply found;
  found.set_job(77);
  found.set_term(3);
  found.set_epoch(2);
  f.Find(found);
  f.Find(found);
  REQUIRE_FALSE(f.ended.has_value());
  SetViewReply taken = found;
  taken.set_term(4);
  taken.set_epoch(f.ps.set_view.front().epoch());
  CHECK(taken.epoch() == 3);
  f.AcceptView(taken);
  REQUIRE(f.ps.create.size() == 1);
  CHECK(f.ps.create.front().restore_from().empty());
  CHECK((**ReadOwner(root.path())).is_fresh);
  f.ps.create.Answer(CreateVariablesReply());
  f.executor.Run();
  CHECK(ResolveCheckpoint(root.Path("earlier-1")).value_or("") == root.Path("earlier-1/ckpt-4"));
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a standby looks whether the job is still done before it ends for want of ps") {
  const test::TemporaryFolder root;
  Save(root, 4);
  Fixture f(root.path(), root.Path("ckpt-4"));
  f.Refuse(absl::Milliseconds(500));
  CHECK_FALSE(f.ended.has_value());
  // Another chief has begun a run since the standby has planned.
  const bool is_begun = GENERATE(false, true);
  if (is_begun) REQUIRE(WriteOwner(root.path(), {.epoch = 2}, nullptr).ok());
  f.Refuse(absl::Seconds(5));
  CHECK(f.ended.has_value() != is_begun);
  if (f.ended.has_value()) CHECK(f.ended->ok());
}

TEST_CASE("a signal ends a standby at once, and nobody is told") {
  Fixture f;
  f.Tell(CommandStatus::HELD);
  const absl::Status why = WithExitCode(absl::CancelledError("told"), ExitCode::kInterrupted);
  GENERATE(true, false) ? f.series.Stop(why) : f.series.Leave(why);
  CHECK(f.ended == why);
  f.Tell(CommandStatus::EXPIRED);
  CHECK(f.ps.get_view.size() == 0);
  CHECK(f.ps.renewals.all().empty());
}

TEST_CASE("a standby tells whom it stands by for, asked at the moment") {
  Fixture f;
  f.Tell(CommandStatus::HELD);
  std::optional<ProcessStatus> status;
  const auto keep = [&](absl::StatusOr<ProcessStatus> reply) { status = *std::move(reply); };
  f.series.GetStatus(keep);
  SetViewReply view;
  view.set_global_step(12);
  view.mutable_command_status()->set_state(CommandStatus::HELD);
  view.mutable_command_status()->set_left_ms(1500);
  f.Find(view);
  REQUIRE(status.has_value());
  CHECK(status->state() == "standby");
  CHECK(status->global_step() == 12);
  CHECK(status->waiting_for().empty());
  CHECK(status->standby_of().state() == "held");
  CHECK(status->standby_of().address() == "127.0.0.1:4");
  CHECK(status->standby_of().lease_left_seconds() == 1.5);
  status.reset();
  f.series.GetStatus(keep);
  f.Pass(absl::Milliseconds(1100));
  REQUIRE(status.has_value());
  CHECK(status->standby_of().state() == "unknown");
  f.Find(view);  // too late, and nobody's
}

}  // namespace
}  // namespace lockstep::chief
