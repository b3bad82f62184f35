// What a chief that ends early leaves to the shards and to its successor.
#include <catch2/catch.hpp>

#include "absl/strings/string_view.h"
#include "tests/unit/chief/job/real_shards_fixture.h"

namespace lockstep::chief {
namespace {

absl::Status Terminated() {
  return WithExitCode(absl::CancelledError("told to end"), ExitCode::kTerminated);
}

// To a ps whose answers to new views are lost from some time on.
class SilentPs final : public PsControl {
 public:
  explicit SilentPs(std::unique_ptr<PsControl> ps) : ps_(std::move(ps)) {}

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    const absl::string_view path = method.path;
    const bool is_lost = loses_views && path == kSetView.path;
    ps_->Start(method, request, reply,
               [=, this, done = std::move(done)](const absl::Status& status) mutable {
                 if (path == kFinish.path) finish = status;
                 done(is_lost ? absl::UnavailableError("the answer is lost") : status);
               });
  }

  bool loses_views = false;
  std::optional<absl::Status> finish;  // what the last Finish was answered with

 private:
  const std::unique_ptr<PsControl> ps_;
};

// Until the chief has ended; the checkpoint's commit comes from a thread of its own.
void AwaitEnd(Cluster* cluster) {
  while (!cluster->ended.has_value()) cluster->executor->AwaitWork();
}

TEST_CASE("a chief that leaves saves the last committed step, and its successor goes on") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.job->Leave(Terminated());
  CHECK(cluster.Status().state() == "saving");
  AwaitEnd(&cluster);
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kTerminated);
  const std::string folder = CheckpointFolder(root.path(), 2);
  CHECK(cluster.job->record().checkpoint == folder);
  CHECK(Read(folder, "fc/kernel", 3) == std::vector<float>(3, 7.0f));
  CHECK(Read(folder, "fc/bias", 2) == std::vector<float>(2, 7.0f));
  CHECK(*ResolveCheckpoint(root.path()) == folder);

  cluster.ended.reset();
  cluster.StartChief(Plan(8, root.path()));
  CHECK(cluster.job->record().start == GlobalStep(2));
  TrainTo(&cluster, 2, 8);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 8));
  CHECK(Read(CheckpointFolder(root.path(), 8), "fc/bias", 2) == std::vector<float>(2, 4.0f));
}

TEST_CASE("a step that a shard has begun is closed before a chief that leaves saves it") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 1);
  // Shard 0 has closed the step, or has one of its two variables; shard 1 has nothing.
  const bool is_closed = GENERATE(true, false);
  CAPTURE(is_closed);
  is_closed ? cluster.PushUnseen(0, 1) : cluster.PushUnseen(0, 1, /*only_trainable=*/true);
  cluster.job->Leave(Terminated());
  cluster.executor->Run();
  CHECK_FALSE(cluster.ended.has_value());
  if (!is_closed) cluster.PushUnseen(0, 1, /*only_trainable=*/false);
  cluster.Push(1, 1);
  AwaitEnd(&cluster);
  CHECK(cluster.job->record().checkpoint == CheckpointFolder(root.path(), 2));
  CHECK(Read(CheckpointFolder(root.path(), 2), "fc/bias", 2) == std::vector<float>(2, 7.0f));
  CHECK(Read(CheckpointFolder(root.path(), 2), "fc/kernel", 3) == std::vector<float>(3, 7.0f));
}

// Three steps of a generator, whose variable shard 0 has, then one of a discriminator.
JobPlan PlanOfTurns(const std::string& root, int64_t generator_steps) {
  JobPlan plan = Plan(8, root);
  plan.job.mutable_checkpoint()->set_every_steps(100);
  plan.placement.add_turns(generator_steps);
  plan.placement.add_turns(1);
  for (const uint32_t variable : {0u, 1u}) {
    plan.placement.mutable_variables(static_cast<int>(variable))->set_loss(variable + 1);
    plan.job.add_losses()->mutable_optimizer()->mutable_sgd();
  }
  return plan;
}

TEST_CASE("a shard that waits for no gradient of the steps at hand can save the one before them") {
  const test::TemporaryFolder root;
  Cluster cluster(PlanOfTurns(root.path(), 3));
  REQUIRE(cluster.Register().ready());
  cluster.Push(0, 0);
  REQUIRE(cluster.job->record().global_step == GlobalStep(1));
  const bool closes_step = GENERATE(false, true);
  CAPTURE(closes_step);
  // Of two variables of shard 0 one has its gradient.
  if (closes_step) cluster.PushUnseen(0, 1, /*only_trainable=*/true);
  cluster.job->Leave(Terminated());
  if (closes_step) cluster.Push(0, 1);
  cluster.Pass(absl::Seconds(1));
  AwaitEnd(&cluster);
  const std::string folder = CheckpointFolder(root.path(), closes_step ? 2 : 1);
  CHECK(cluster.job->record().checkpoint == folder);
  CHECK(Read(folder, "fc/kernel", 3) == std::vector<float>(3, closes_step ? 7.0f : 7.5f));
  CHECK(Read(folder, "fc/bias", 2) == std::vector<float>(2, 8.0f));
}

TEST_CASE("a chief that cannot save in time leaves without, and says why") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 1);
  cluster.PushUnseen(0, 1);
  cluster.job->Leave(Terminated());
  cluster.Pass(absl::Seconds(19));
  CHECK_FALSE(cluster.ended.has_value());
  cluster.Pass(absl::Seconds(2));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kTerminated);
  CHECK(cluster.job->record().save_error.find("step 1 is under way") != std::string::npos);
  // The next one finds the job as it was.
  cluster.StartChief(Plan(8, root.path()));
  cluster.Push(1, 1);
  CHECK(cluster.job->record().global_step == GlobalStep(2));
}

TEST_CASE("a chief that another one has replaced saves nothing when it leaves") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  JobController* const first = cluster.job;
  ManualExecutor* const executor = cluster.executor.get();
  cluster.StartChief(Plan(8, root.path()));
  first->Leave(Terminated());
  executor->Run();
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kFenced);
  TrainTo(&cluster, 2, 3);
  CHECK(cluster.job->record().global_step == GlobalStep(3));
}

TEST_CASE("an interrupted job is saved, and everybody ends") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.job->Stop(WithExitCode(absl::CancelledError("interrupted"), ExitCode::kInterrupted));
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  cluster.Pass(absl::Seconds(3));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kInterrupted);
  const auto token = cluster.Dequeue();
  REQUIRE(token->has_value());
  CHECK((*token)->done);
}

TEST_CASE(
    "a ps that has entered the term of the last save, unheard, is told that the job is over") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  auto silent = std::make_unique<SilentPs>(std::move(cluster.controls[1]));
  SilentPs* const ps = silent.get();
  cluster.controls[1] = std::move(silent);
  cluster.StartChief(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  ps->loses_views = true;
  cluster.job->Stop(WithExitCode(absl::CancelledError("interrupted"), ExitCode::kInterrupted));
  cluster.Pass(absl::Seconds(30));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kInterrupted);
  REQUIRE(ps->finish.has_value());
  INFO(ps->finish->ToString());
  CHECK(ps->finish->ok());
}

TEST_CASE("what a chief could not save at the end is saved by the next one, which ends the job") {
  const test::TemporaryFolder root;
  const std::string file = root.Write("checkpoints", "in the way");
  Cluster cluster(Plan(2, file));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  // Each save ends on the disk's thread.
  while (!cluster.ended.has_value()) cluster.Pass(absl::Milliseconds(100));
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kPeersLost);
  for (const auto& shard : cluster.shards) {
    CHECK(shard->GetView().kept_versions == std::vector<GlobalStep>{GlobalStep(2)});
  }

  std::filesystem::remove(file);
  cluster.ended.reset();
  cluster.StartChief(Plan(2, file));
  // Whichever worker comes: the start waits for one.
  cluster.incarnation = Incarnation(11);
  cluster.Register();
  cluster.AwaitCheckpoint(CheckpointFolder(file, 2));
  cluster.Pass(absl::Seconds(5));
  REQUIRE(cluster.ended.has_value());
  CHECK(cluster.ended->ok());
  CHECK(Read(CheckpointFolder(file, 2), "fc/bias", 2) == std::vector<float>(2, 7.0f));
}

}  // namespace
}  // namespace lockstep::chief
