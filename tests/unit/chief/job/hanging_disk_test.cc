// A disk that hangs while a chief takes command: the lease is renewed meanwhile. One that fails for
// a moment while the job goes back: it is read again.
#include <catch2/catch.hpp>
#include <cerrno>

#include "absl/strings/match.h"
#include "chief/checkpoint/folder_claim.h"
#include "chief/job/job_series.h"
#include "chief/plan/messages.h"
#include "common/base/exit_code.h"
#include "common/base/lost_variables.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "common/fs/fs_error.h"
#include "common/tensor/tensor.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

using test::SetDiskFaults;

constexpr char kEntering[] = ",open,OWNER.json,1,hang";
constexpr char kTaking[] = ",open,OWNER.json,2,hang";

JobOptions Options() { return {.incarnation = Incarnation(5)}; }

JobPlan PlanIn(const test::TemporaryFolder& folder) {
  JobPlan plan = TwoWorkerPlan(4);
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  return plan;
}

// Of another job. Only one without a living chief can be followed by it.
const FolderOwner kOther{.job = 78, .epoch = 9, .term = 1, .chief = 6, .host = "b", .pid = 1};

TEST_CASE("a chief renews its lease while the disk hangs in its claim or in a move") {
  const test::TemporaryFolder folder;
  JobPlan plan = PlanIn(folder);
  const bool moves = GENERATE(false, true);
  if (moves) {
    plan.mode = StartMode::kFresh;
    plan.earlier = folder.path() + "/ckpt-3";
    folder.Write("ckpt-3/manifest.json", "");
  }
  SetDiskFaults(folder.path() + (moves ? ",mkdir,earlier-1,1,hang" : kTaking));
  JobFixture f(plan, Options(), /*disk_answers=*/false);
  while (test::FailedDiskOperations().empty()) f.Settle();
  f.ps_answers = false;
  f.Pass(absl::Seconds(10));  // two leases
  CHECK(f.ps.renewals.size() == 8);
  CHECK(f.ps.create.size() == 0);
  CHECK(f.Status().waiting_for() == "the disk of the checkpoint folder " + folder.path());
  CHECK_FALSE(f.Register(0, 10)->has_value());
  SetDiskFaults("");
  f.executor.AwaitWork();
  f.ps_answers = true;
  f.Settle();
  CHECK((*ReadOwner(folder.path()))->chief == 5);
  CHECK(f.Status().waiting_for() == "");
}

TEST_CASE("a chief whose lease was lost while the disk hung claims nothing when that goes on") {
  const test::TemporaryFolder folder;
  SetDiskFaults(folder.path() + kTaking);
  JobFixture f(PlanIn(folder), Options(), /*disk_answers=*/false);
  while (test::FailedDiskOperations().empty()) f.Settle();
  f.ps_answers = false;
  f.Pass(absl::Seconds(2));
  f.ps.renewals.Answer(absl::AbortedError("term 2 belongs to another chief"));
  f.Pass(absl::Seconds(3));
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kFenced);
  SetDiskFaults(test::NoSyncsBelow(folder.path()));
  f.executor.AwaitWork();
  CHECK_FALSE(ReadOwner(folder.path())->has_value());
  for (const test::DiskChange& change : test::DiskChanges()) {
    FAIL_CHECK(change.operation + " " + change.path);
  }
  CHECK(f.ps.create.size() == 0);
  SetDiskFaults("");
}

TEST_CASE("a chief that ends before it commands does not keep the folder it was about to enter") {
  const test::TemporaryFolder folder;
  SetDiskFaults(folder.path() + kEntering);
  JobFixture f(PlanIn(folder), Options(), /*disk_answers=*/false);
  f.Pass(absl::Seconds(1));
  f.job->Stop(absl::CancelledError("told to stop"));
  f.Settle();
  CHECK(f.ended.has_value());
  SetDiskFaults("");
  f.executor.AwaitWork();
  CHECK(f.ps.set_view.size() == 0);
  CHECK(FolderClaim(folder.path()).Enter(kOther).ok());
}

TEST_CASE("a run is not free to go while a save of it hangs on the disk") {
  const test::TemporaryFolder folder;
  folder.Write("ckpt-2/shard-0-of-1.safetensors", "half");
  JobPlan plan = PlanIn(folder);
  plan.job.mutable_checkpoint()->set_every_steps(2);
  JobFixture f(plan, Options());
  f.Register(0, 10);
  f.Beat(0, 10);
  CHECK_FALSE(f.job->is_disk_busy());
  f.Step();
  f.Step();
  SetDiskFaults(folder.path() + ",open,manifest.json,1,hang");
  f.ps.saves.Answer(absl::ResourceExhaustedError("disk full"));
  while (test::FailedDiskOperations().empty()) f.Settle();
  CHECK(f.job->is_disk_busy());
  SetDiskFaults("");
  f.executor.AwaitWork();
  f.Settle();
  CHECK_FALSE(f.job->is_disk_busy());
}

// A job that has lost its variables, and reads where to go back to.
struct GoingBack {
  explicit GoingBack(const test::TemporaryFolder& folder) : GoingBack(PlanIn(folder)) {}
  explicit GoingBack(JobPlan plan)
      : series(
            std::move(plan), {.job_id = 9, .patience = absl::Seconds(60), .waits_for_disk = true},
            {&ps}, &executor, &clock, [] {},
            [this](absl::Status status) { ended = std::move(status); }) {
    series.Start();
    Answer(&ps.get_view, SetViewReply());
    Answer(&ps.set_view, SetViewReply());
  }
  template <typename Calls, typename Reply>
  void Answer(Calls* calls, Reply reply) {
    executor.Run();
    REQUIRE(calls->size() == 1);
    calls->Answer(std::move(reply));
    executor.Run();
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      series.Tick();
      executor.Run();
    }
  }
  std::string WaitingFor() {
    std::string waiting_for;
    series.GetStatus(
        [&](const absl::StatusOr<ProcessStatus>& status) { waiting_for = status->waiting_for(); });
    return waiting_for;
  }

  ScriptedPs ps;
  ManualExecutor executor;
  ManualClock clock;
  std::optional<absl::Status> ended;
  JobSeries series;
};

TEST_CASE("a job goes back to where it began, though a full disk never took its owner") {
  const test::TemporaryFolder folder, elsewhere;
  JobPlan plan = PlanIn(folder);
  for (VariableSpec& variable : *plan.placement.mutable_variables()) variable.set_dtype(FLOAT32);
  plan.restore_from = CheckpointFolder(elsewhere.path(), 2);
  plan.start = GlobalStep(2);
  plan.origin = {.epoch = 0, .step = 2};
  Manifest manifest = ToManifest(plan, Epoch(7), {});
  manifest.step = 2;
  const Tensor value(DType::kFloat32, {});
  manifest.shards = {*WriteShard(plan.restore_from, 0, 1,
                                 {{"fc/kernel", value.view()}, {"train/loss", value.view()}})};
  REQUIRE(CommitCheckpoint(elsewhere.path(), manifest, 0).ok());
  SetDiskFaults(folder.path() + ",write,OWNER.json,*,ENOSPC");
  GoingBack f(plan);
  f.Answer(&f.ps.create, LostVariablesError("ps 0 (127.0.0.1:1)"));
  f.Answer(&f.ps.get_view, SetViewReply());
  f.Answer(&f.ps.set_view, SetViewReply());
  CHECK_FALSE(test::FailedDiskOperations().empty());
  SetDiskFaults("");
  REQUIRE(f.ps.create.size() == 1);
  CHECK(f.ps.create.front().restore_from() == plan.restore_from);
  CHECK(f.ps.create.front().start_step() == 2);
}

TEST_CASE("a job whose storage fails for a moment when it goes back reads the checkpoints again") {
  const test::TemporaryFolder folder;
  const std::string error = GENERATE("EIO", "ESTALE");
  GoingBack f(folder);
  SetDiskFaults(folder.path() + ",open,OWNER.json,1," + error);
  f.Answer(&f.ps.create, LostVariablesError("ps 0 (127.0.0.1:1)"));
  CHECK(f.ps.get_view.size() == 0);
  CHECK(absl::StrContains(f.WaitingFor(), "/OWNER.json: cannot open: "));
  f.Pass(absl::Seconds(1.2));
  SetDiskFaults("");
  CHECK(f.ps.get_view.size() == 1);  // of the next start
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a job whose storage does not come back ends when its patience is over") {
  const test::TemporaryFolder folder;
  GoingBack f(folder);
  SetDiskFaults(folder.path() + ",open,OWNER.json,*,EIO");
  f.Answer(&f.ps.create, LostVariablesError("ps 0 (127.0.0.1:1)"));
  bool is_left = false;
  SECTION("by itself") { f.Pass(absl::Seconds(70)); }
  SECTION("or when it is told to") {
    f.Pass(absl::Seconds(5));
    CHECK_FALSE(f.ended.has_value());
    f.series.Leave(absl::CancelledError("told to stop"));
    is_left = true;
    f.Pass(absl::Seconds(5));
  }
  SetDiskFaults("");
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == (is_left ? ExitCode::kTerminated : ExitCode::kIoError));
  CHECK(f.ps.get_view.size() == 0);
}

TEST_CASE("a job that goes back claims its folder again while the storage of that fails") {
  const test::TemporaryFolder folder;
  GoingBack f(folder);
  f.Answer(&f.ps.create, LostVariablesError("ps 0 (127.0.0.1:1)"));
  const std::string fault = folder.path() + ",open,OWNER.json," + GENERATE("1", "*") + ",EIO";
  const bool is_brief = fault.ends_with(",1,EIO");
  const auto await_claim = [&] {
    CHECK(absl::StrContains(f.WaitingFor(), "/OWNER.json: cannot open: "));
    f.Pass(absl::Seconds(1.2));
    SetDiskFaults("");
  };
  SetDiskFaults(fault);
  f.Answer(&f.ps.get_view, SetViewReply());
  CHECK(f.ps.set_view.size() == 0);
  if (is_brief) {
    await_claim();
    f.Answer(&f.ps.get_view, SetViewReply());  // what it has told is old by now
    SetDiskFaults(fault);
    f.Answer(&f.ps.set_view, SetViewReply());
    CHECK(f.ps.create.size() == 0);
    await_claim();
    CHECK(f.ps.create.size() == 1);
    CHECK_FALSE(f.ended.has_value());
    return;
  }
  f.Pass(absl::Seconds(50));
  CHECK_FALSE(f.ended.has_value());
  f.Pass(absl::Seconds(20));
  SetDiskFaults("");
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kIoError);
  CHECK(absl::StrContains(f.ended->message(), "/OWNER.json: cannot open: "));
}

TEST_CASE("a ps that cannot read the checkpoint to go back to is asked until patience is over") {
  const test::TemporaryFolder folder;
  GoingBack f(folder);
  f.Answer(&f.ps.create, LostVariablesError("ps 0 (127.0.0.1:1)"));
  f.Answer(&f.ps.get_view, SetViewReply());
  f.Answer(&f.ps.set_view, SetViewReply());
  int tries = 0;
  for (int ticks = 0; ticks < 700; ++ticks) {
    if (f.ps.create.size() > 0 && ++tries > 0) {
      f.ps.create.Answer(ReadError("ckpt-3/shard-0", "read", EIO));
    }
    f.Pass(absl::Milliseconds(100));
    if (ticks == 100) CHECK(absl::StrContains(f.WaitingFor(), "ckpt-3/shard-0: cannot read: "));
  }
  CHECK(tries > 20);
  REQUIRE(f.ended.has_value());
  CHECK(ExitCodeFor(*f.ended) == ExitCode::kIoError);
  CHECK(absl::StrContains(f.ended->message(), "ckpt-3/shard-0: cannot read: "));
}

}  // namespace
}  // namespace lockstep::chief
