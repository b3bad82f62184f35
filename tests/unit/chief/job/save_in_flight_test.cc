// A ps loses its variables while a save of the run is under way: the next run goes back to a
// checkpoint that stays.
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "chief/job/job_series.h"
#include "common/base/lost_variables.h"
#include "common/checkpoint/checkpoint.h"
#include "common/tensor/tensor.h"
#include "common/tensor_proto/convert.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/job/job_fixture.h"

namespace lockstep::chief {
namespace {

constexpr uint32_t kShards = 2;
constexpr absl::Duration kDrain = absl::Seconds(20);

// Two ps with a variable each; every second version is saved, and the last checkpoint kept.
JobPlan PlanIn(const test::TemporaryFolder& folder) {
  JobPlan plan = TwoWorkerPlan(100);
  plan.cluster.ps = {"127.0.0.1:1", "127.0.0.1:5"};
  plan.placement.set_shards(kShards);
  for (VariableSpec& variable : *plan.placement.mutable_variables()) variable.set_dtype(FLOAT32);
  plan.placement.mutable_variables(1)->set_shard(1);
  plan.job.mutable_checkpoint()->set_folder(folder.path());
  plan.job.mutable_checkpoint()->set_every_steps(2);
  plan.job.mutable_checkpoint()->set_keep_last(1);
  return plan;
}

// The ps answer at once what is about neither steps nor saves.
struct Fixture {
  explicit Fixture(const test::TemporaryFolder& folder, absl::Duration drain = kDrain,
                   absl::Duration patience = absl::Seconds(60))
      : series(
            PlanIn(folder),
            {.job_id = 9, .patience = patience, .drain = drain, .waits_for_disk = true},
            {&ps[0], &ps[1]}, &executor, &clock, [] {},
            [this](absl::Status status) { ended = std::move(status); }) {
    series.Start();
    Settle();
    RegisterTaskRequest worker;
    worker.set_incarnation(10);
    worker.set_cluster(series.job()->plan().cluster.Canonical());
    worker.set_version(kVersion);
    (*series.worker_calls())
        ->Register(worker,
                   Answer<RegisterTaskReply>([](const absl::StatusOr<RegisterTaskReply>&) {}));
    Settle();
  }

  void Settle() {
    do {
      executor.Run();
    } while (AnswerOne());
  }
  bool AnswerOne() {
    for (ScriptedPs& p : ps) {
      if (p.get_view.size() > 0 && answers_views) {
        p.get_view.Answer(SetViewReply());
      } else if (p.set_view.size() > 0) {
        p.set_view.Answer(has_variables ? WithVariables(step) : SetViewReply());
      } else if (p.create.size() > 0 && !has_variables) {
        if (&p == &ps[1]) has_variables = true;
        p.create.Answer(CreateVariablesReply());
      } else if (p.commits.size() > 0) {
        CommitStepReply reply;
        reply.set_global_step(step);
        p.commits.Answer(reply);
      } else if (p.releases.size() > 0) {
        p.releases.Answer(ReleaseSnapshotReply());
      } else if (p.renewals.size() > 0) {
        p.renewals.Answer(RenewLeaseReply());
      } else {
        continue;
      }
      return true;
    }
    return false;
  }
  // Both ps close the step at hand.
  void Step() {
    ++step;
    for (ScriptedPs& p : ps) {
      GrantReply reply;
      reply.set_step(p.grants.front().step());
      reply.set_shard_step(step);
      p.grants.Answer(reply);
    }
    Settle();
  }
  // The ps has written what it was asked for.
  void AnswerSave(uint32_t shard) {
    const std::string name = shard == 0 ? "fc/kernel" : "train/loss";
    const Tensor value(DType::kFloat32, {});
    const absl::StatusOr<ShardFile> file =
        WriteShard(ps[shard].saves.front().folder(), shard, kShards, {{name, value.view()}});
    REQUIRE(file.ok());
    SaveReply reply;
    reply.set_file(file->file);
    reply.set_bytes(file->bytes);
    SaveReply::TensorRecord* record = reply.add_tensors();
    record->set_name(name);
    record->set_dtype(ToProto(DType::kFloat32));
    record->set_crc32c(file->tensors[0].crc32c);
    ps[shard].saves.Answer(reply);
    Settle();
  }
  // Until ckpt-2 is there, and version 4 is being saved.
  void Train() {
    Step();
    Step();
    AnswerSave(0);
    AnswerSave(1);
    Step();
    Step();
    REQUIRE(ps[0].saves.size() == 1);
    REQUIRE(ps[1].saves.size() == 1);
  }
  // Both ps are without variables from now on, and answer no GetView.
  void Lose() {
    has_variables = answers_views = false;
    ps[0].grants.Answer(LostVariablesError("ps 0 (127.0.0.1:1)"));
    Settle();
  }
  bool IsAskingViews() const { return ps[0].get_view.size() > 0; }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      series.Tick();
      Settle();
    }
  }
  std::string WaitingFor() {
    std::string waiting_for;
    series.GetStatus(
        [&](const absl::StatusOr<ProcessStatus>& status) { waiting_for = status->waiting_for(); });
    return waiting_for;
  }
  // The checkpoint that the next run is told to restore.
  std::string GoOn() {
    answers_views = true;
    Settle();
    const auto& created = ps[0].create.all();
    return created.size() == 2 ? created[1].restore_from() : "none";
  }

  std::array<ScriptedPs, kShards> ps;
  ManualExecutor executor;
  ManualClock clock;
  bool answers_views = true;
  bool has_variables = false;
  int64_t step = 0;
  std::optional<absl::Status> ended;
  JobSeries series;
};

bool Has(const test::TemporaryFolder& folder, const std::string& name) {
  return std::filesystem::exists(folder.Path(name));
}

TEST_CASE("a job that goes back waits for the save under way, and takes its checkpoint") {
  const test::TemporaryFolder folder;
  Fixture f(folder);
  f.Train();
  f.AnswerSave(0);
  f.Lose();
  f.Pass(absl::Seconds(5));
  CHECK_FALSE(f.IsAskingViews());
  CHECK(f.WaitingFor() == "the save that is under way, to go back to its checkpoint");
  f.AnswerSave(1);
  CHECK(Has(folder, "ckpt-4/manifest.json"));
  CHECK_FALSE(Has(folder, "ckpt-2"));
  f.Pass(absl::Milliseconds(100));
  CHECK(f.IsAskingViews());
  CHECK(f.GoOn() == folder.Path("ckpt-4"));
  CHECK(f.ps[1].create.all()[1].start_step() == 4);
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a save that lasts too long deletes nothing of what the job goes back to") {
  const test::TemporaryFolder folder;
  const absl::Duration drain = absl::Seconds(GENERATE(20, 0));
  Fixture f(folder, drain);
  f.Train();
  f.AnswerSave(0);
  f.Lose();
  if (drain > absl::ZeroDuration()) {
    f.Pass(drain - absl::Milliseconds(100));
    CHECK_FALSE(f.IsAskingViews());
    f.Pass(absl::Milliseconds(100));
  }
  CHECK(f.IsAskingViews());
  f.AnswerSave(1);
  CHECK(Has(folder, "ckpt-2/manifest.json"));
  CHECK_FALSE(Has(folder, "ckpt-4/manifest.json"));
  CHECK(f.GoOn() == folder.Path("ckpt-2"));
  CHECK(f.ps[1].create.all()[1].start_step() == 2);
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("the wait for a save takes no time from that for a disk that fails") {
  const test::TemporaryFolder folder;
  Fixture f(folder, kDrain, /*patience=*/kDrain);
  f.Train();
  f.AnswerSave(0);
  f.Lose();
  f.Pass(kDrain - absl::Milliseconds(100));
  std::string faults;
  for (int nth = 1; nth <= 10; ++nth) {
    absl::StrAppend(&faults, nth > 1 ? ";" : "", folder.path(), ",open,ckpt-2/manifest.json,", nth,
                    ",EIO");
  }
  test::SetDiskFaults(faults);
  f.Pass(absl::Milliseconds(100));
  CHECK_FALSE(test::FailedDiskOperations().empty());
  test::SetDiskFaults("");
  CHECK_FALSE(f.IsAskingViews());
  CHECK_FALSE(f.ended.has_value());
  f.Pass(absl::Seconds(2));
  CHECK(f.IsAskingViews());
  CHECK(f.GoOn() == folder.Path("ckpt-2"));
}

TEST_CASE("a job that goes back does not wait for a save that has failed at one ps") {
  const test::TemporaryFolder folder;
  Fixture f(folder);
  f.Train();
  f.ps[0].saves.Answer(absl::UnavailableError("ps 0 (127.0.0.1:1) is not available"));
  f.Lose();
  CHECK(f.IsAskingViews());
  f.AnswerSave(1);
  CHECK(Has(folder, "ckpt-2/manifest.json"));
  CHECK(f.GoOn() == folder.Path("ckpt-2"));
  CHECK_FALSE(f.ended.has_value());
}

TEST_CASE("a job that fails to save while it is waited for goes back to the checkpoint before") {
  const test::TemporaryFolder folder;
  Fixture f(folder);
  f.Train();
  f.AnswerSave(0);
  f.Lose();
  f.ps[1].saves.Answer(absl::ResourceExhaustedError("disk full"));
  f.Settle();
  f.Pass(absl::Milliseconds(100));
  CHECK(f.IsAskingViews());
  CHECK_FALSE(Has(folder, "ckpt-4"));
  CHECK(f.GoOn() == folder.Path("ckpt-2"));
}

TEST_CASE("a job that is told to leave does not wait for the save of the run before") {
  const test::TemporaryFolder folder;
  Fixture f(folder);
  f.Train();
  f.AnswerSave(0);
  f.Lose();
  f.Pass(absl::Seconds(1));
  f.series.Leave(absl::CancelledError("told to stop"));
  f.Settle();
  CHECK(f.ended == absl::CancelledError("told to stop"));
  f.Pass(absl::Seconds(30));
  CHECK_FALSE(f.IsAskingViews());
}

}  // namespace
}  // namespace lockstep::chief
