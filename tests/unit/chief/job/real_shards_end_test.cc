// The end of a job: what a chief that takes over saves, and whom one that was replaced tells.
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/owner.h"
#include "tests/unit/chief/job/real_shards_fixture.h"

namespace lockstep::chief {
namespace {

JobPlan PlanWithCopies(const std::string& root) {
  JobPlan plan = Plan(4, root);
  plan.job.mutable_sync()->set_ps_replicas(1);
  return plan;
}

// As if the shard had been lost, and its copy, which has kept no version, served in its place.
void DropLastVersion(Cluster* cluster, size_t shard) {
  ReleaseSnapshotRequest request;
  request.mutable_command()->set_job(9);
  request.mutable_command()->set_term(1);
  request.mutable_command()->set_chief(cluster->chiefs);
  request.set_version(4);
  absl::Status dropped = absl::UnknownError("no answer");
  cluster->controls[shard]->Call(
      kReleaseSnapshot, request,
      [&](const absl::StatusOr<ReleaseSnapshotReply>& reply) { dropped = reply.status(); });
  INFO(dropped.ToString());
  REQUIRE(dropped.ok());
}

// A shard that no release reaches.
class KeepingControl final : public PsControl {
 public:
  explicit KeepingControl(std::unique_ptr<PsControl> shard) : shard_(std::move(shard)) {}
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    if (absl::string_view(method.path) == kReleaseSnapshot.path) {
      return done(absl::UnavailableError("the release is lost"));
    }
    shard_->Start(method, request, reply, std::move(done));
  }

 private:
  const std::unique_ptr<PsControl> shard_;
};

TEST_CASE("a last version that copies have not kept is saved by the chief that takes over") {
  const size_t copies = GENERATE(1, 2);
  const test::TemporaryFolder root;
  Cluster cluster(PlanWithCopies(root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 3);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  cluster.PushUnseen(0, 3);
  cluster.PushUnseen(1, 3);
  while (cluster.job->record().global_step < GlobalStep(4)) REQUIRE(cluster.executor->RunNext());
  for (size_t shard = 0; shard < copies; ++shard) DropLastVersion(&cluster, shard);
  cluster.StartChief(PlanWithCopies(root.path()));
  cluster.Pass(absl::Milliseconds(100));
  REQUIRE_FALSE(cluster.ended.has_value());
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 4));
  CHECK(Read(CheckpointFolder(root.path(), 4), "fc/kernel", 3) == std::vector<float>(3, 6.0f));
}

TEST_CASE("a last version that is saved is not saved again because a shard keeps it") {
  const test::TemporaryFolder root;
  Cluster cluster(PlanWithCopies(root.path()));
  cluster.controls[1] = std::make_unique<KeepingControl>(std::move(cluster.controls[1]));
  cluster.StartChief(PlanWithCopies(root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 4);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 4));
  CHECK(cluster.shards[0]->GetView().kept_versions.empty());
  CHECK_FALSE(cluster.shards[1]->GetView().kept_versions.empty());
  cluster.StartChief(PlanWithCopies(root.path()));
  cluster.Pass(absl::Seconds(10));
  REQUIRE(cluster.ended.has_value());
  CHECK(cluster.ended->ok());
  CHECK(cluster.job->record().checkpoint.empty());
}

// As another chief that the step shard has accepted, and no other shard yet.
void TakeStepShard(Cluster* cluster, uint64_t term) {
  SetViewRequest request;
  request.mutable_command()->set_job(9);
  request.mutable_command()->set_term(term);
  request.mutable_command()->set_chief(77);
  request.set_epoch(cluster->job->plan().epoch.value());
  absl::Status taken = absl::UnknownError("no answer");
  cluster->controls[0]->Call(kSetView, request, [&](const absl::StatusOr<SetViewReply>& reply) {
    taken = reply.status();
  });
  INFO(taken.ToString());
  REQUIRE(taken.ok());
}

// Counts the calls that tell a shard that the job is over.
class CountedFinishes final : public PsControl {
 public:
  explicit CountedFinishes(std::unique_ptr<PsControl> shard) : shard_(std::move(shard)) {}
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    if (absl::string_view(method.path) == kFinish.path) ++count;
    shard_->Start(method, request, reply, std::move(done));
  }

  int count = 0;

 private:
  const std::unique_ptr<PsControl> shard_;
};

TEST_CASE("a chief whose end the step shard refuses tells no other ps that the job is over") {
  const test::TemporaryFolder root;
  JobPlan plan = Plan(2, root.path());
  plan.cluster.other_chiefs = {"127.0.0.1:5"};
  Cluster cluster(plan);
  auto counted = std::make_unique<CountedFinishes>(std::move(cluster.controls[1]));
  const CountedFinishes& other = *counted;
  cluster.controls[1] = std::move(counted);
  cluster.StartChief(plan);
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  REQUIRE_FALSE(cluster.ended.has_value());  // the worker is told first
  TakeStepShard(&cluster, 8);
  cluster.Pass(absl::Seconds(10));
  REQUIRE(cluster.ended.has_value());
  CHECK(other.count == 0);
  INFO(cluster.ended->ToString());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kFenced);
  CHECK(absl::StrContains(cluster.ended->message(), "term 2 is over: the shard is in term 8"));
}

// A ps whose process has ended.
class AbsentControl final : public PsControl {
 public:
  void Start(const MethodInfo&, const google::protobuf::MessageLite&,
             google::protobuf::MessageLite*, StatusCallback done) override {
    done(absl::UnavailableError("connection refused"));
  }
};

enum class LostFinish { kRequest, kReply, kSilent };

// A shard whose answer to the end of the job never arrives.
class LosesFinish final : public PsControl {
 public:
  LosesFinish(std::unique_ptr<PsControl> shard, LostFinish lost)
      : shard_(std::move(shard)), lost_(lost) {}
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    if (absl::string_view(method.path) != kFinish.path) {
      return shard_->Start(method, request, reply, std::move(done));
    }
    if (lost_ == LostFinish::kSilent) return parked_.push_back(std::move(done));
    if (lost_ == LostFinish::kRequest) return done(absl::UnavailableError("connection refused"));
    shard_->Start(method, request, reply, [done = std::move(done)](const absl::Status&) mutable {
      done(absl::UnavailableError("the reply is lost"));
    });
  }

 private:
  const std::unique_ptr<PsControl> shard_;
  const LostFinish lost_;
  std::vector<StatusCallback> parked_;
};

// Of two chiefs the first one commands, and its step shard does not answer the end of the job.
struct LostStepShard {
  explicit LostStepShard(const std::string& root, LostFinish lost) : cluster(PlanOf(root)) {
    cluster.controls[0] = std::make_unique<LosesFinish>(std::move(cluster.controls[0]), lost);
    auto counted = std::make_unique<CountedFinishes>(std::move(cluster.controls[1]));
    other = counted.get();
    cluster.controls[1] = std::move(counted);
    cluster.StartChief(PlanOf(root));
    REQUIRE(cluster.Register().ready());
  }
  static JobPlan PlanOf(const std::string& root) {
    JobPlan plan = Plan(2, root);
    plan.cluster.other_chiefs = {"127.0.0.1:5"};
    return plan;
  }

  Cluster cluster;
  const CountedFinishes* other = nullptr;  // the other shard
};

TEST_CASE("a step shard that does not answer the end of a done job keeps it from no other ps") {
  const LostFinish lost = GENERATE(LostFinish::kRequest, LostFinish::kReply, LostFinish::kSilent);
  const test::TemporaryFolder root;
  LostStepShard f(root.path(), lost);
  TrainTo(&f.cluster, 0, 2);
  f.cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  f.cluster.Pass(absl::Seconds(10));
  REQUIRE(f.cluster.ended.has_value());
  INFO(f.cluster.ended->ToString());
  CHECK(f.cluster.ended->ok());
  CHECK(f.other->count == 1);
}

TEST_CASE("a step shard that does not answer the end of a stopped job is waited for") {
  const test::TemporaryFolder root;
  LostStepShard f(root.path(), LostFinish::kRequest);
  TrainTo(&f.cluster, 0, 1);
  f.cluster.series->Stop(
      WithExitCode(absl::CancelledError("stopped by a signal"), ExitCode::kInterrupted));
  f.cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 1));
  f.cluster.Pass(absl::Seconds(10));
  REQUIRE(f.cluster.ended.has_value());
  CHECK(ExitCodeFor(*f.cluster.ended) == ExitCode::kInterrupted);
  // A standby that takes command trains on, and needs it.
  CHECK(f.other->count == 0);
}

TEST_CASE("a done job whose step shard has ended is over for the other ps, too") {
  const test::TemporaryFolder root;
  LostStepShard f(root.path(), LostFinish::kRequest);
  TrainTo(&f.cluster, 0, 2);
  f.cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  f.cluster.controls[0] = std::make_unique<AbsentControl>();
  JobPlan plan = LostStepShard::PlanOf(root.path());
  plan.mode = StartMode::kResume;
  plan.start = plan.max_steps;
  plan.restore_from = CheckpointFolder(root.path(), 2);
  f.cluster.StartChief(plan);
  f.cluster.Pass(absl::Seconds(10));
  REQUIRE(f.cluster.ended.has_value());
  INFO(f.cluster.ended->ToString());
  CHECK(f.cluster.ended->ok());
  CHECK(f.other->count == 1);
}

// A step shard whose chief has just ended.
class ReleasedControl final : public PsControl {
 public:
  // `keeps_last`: it says that it keeps this version, for an evaluation.
  ReleasedControl(std::unique_ptr<PsControl> shard, std::optional<int64_t> keeps_last)
      : shard_(std::move(shard)), keeps_last_(keeps_last) {}
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    const absl::string_view path = method.path;
    if (path != kWatchCommand.path) {
      shard_->Start(method, request, reply,
                    [=, this, done = std::move(done)](const absl::Status& status) mutable {
                      if (path == kGetView.path && keeps_last_.has_value()) {
                        static_cast<SetViewReply*>(reply)->add_kept_versions(*keeps_last_);
                      }
                      done(status);
                    });
      return;
    }
    WatchCommandReply released;
    released.mutable_command()->set_state(CommandStatus::RELEASED);
    released.mutable_command()->set_term(1);
    reply->CheckTypeAndMergeFrom(released);
    done(absl::OkStatus());
  }

 private:
  const std::unique_ptr<PsControl> shard_;
  const std::optional<int64_t> keeps_last_;
};

// A standby that takes command when the first chief has made some of two steps, and ps 1 has ended.
struct LateStandby {
  LateStandby(const std::string& root, int64_t steps)
      : plan(LostStepShard::PlanOf(root)), cluster(plan) {
    REQUIRE(cluster.Register().ready());
    TrainTo(&cluster, 0, steps);
    if (steps == 2) cluster.AwaitCheckpoint(CheckpointFolder(root, 2));
  }
  void TakeCommand(std::optional<int64_t> keeps_last = std::nullopt) {
    auto counted = std::make_unique<CountedFinishes>(std::move(cluster.controls[0]));
    step_shard = counted.get();
    cluster.controls[0] = std::make_unique<ReleasedControl>(std::move(counted), keeps_last);
    cluster.controls[1] = std::make_unique<AbsentControl>();
    cluster.StartStandby(plan);
    cluster.PassStandingBy(absl::Seconds(20));
  }

  const JobPlan plan;
  ps::Shard restarted{ps::ShardOptions()};  // outlives the controls
  Cluster cluster;
  const CountedFinishes* step_shard = nullptr;
};

TEST_CASE("a standby that takes command of a done job needs no ps that has ended with it") {
  const bool is_restarted = GENERATE(false, true);
  CAPTURE(is_restarted);
  const test::TemporaryFolder root;
  LateStandby f(root.path(), 2);
  if (is_restarted) f.cluster.controls[0] = MakeInProcessControl(&f.restarted, Incarnation(200));
  f.TakeCommand();
  REQUIRE(f.cluster.ended.has_value());
  CHECK(f.cluster.ended->ok());
  CHECK(f.step_shard->count == 1);
  f.restarted.Stop();
}

TEST_CASE("a standby waits for a ps that a job needs which is not done") {
  const bool is_evaluating = GENERATE(false, true);
  CAPTURE(is_evaluating);
  const test::TemporaryFolder root;
  LateStandby f(root.path(), is_evaluating ? 2 : 1);
  f.TakeCommand(is_evaluating ? std::optional<int64_t>(2) : std::nullopt);
  CHECK_FALSE(f.cluster.ended.has_value());
  CHECK(f.step_shard->count == 0);
}

TEST_CASE("a checkpoint of the last step of an earlier run does not end the job") {
  const test::TemporaryFolder root;
  LateStandby f(root.path(), 2);
  // The folder's epoch began at another checkpoint, and has saved nothing yet.
  FolderOwner earlier = **ReadOwner(root.path());
  ++earlier.epoch;
  earlier.source = "/other/ckpt-1";
  REQUIRE(WriteOwner(root.path(), earlier, nullptr).ok());
  f.TakeCommand();
  CHECK_FALSE(f.cluster.ended.has_value());
}

}  // namespace
}  // namespace lockstep::chief
