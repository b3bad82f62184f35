// What the chief orders is what the shards do.
#include <catch2/catch.hpp>

#include "tests/unit/chief/job/real_shards_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("real shards train to the end, commit after all have closed, and are saved") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(5, root.path()));
  const RegisterTaskReply job = cluster.Register();
  REQUIRE(job.ready());
  CHECK(job.start_step() == 0);
  for (int64_t step = 0; step < 5; ++step) {
    const auto token = cluster.Dequeue();
    cluster.Push(1, step);
    CHECK(cluster.job->record().global_step == GlobalStep(step));
    CHECK_FALSE(token->has_value());
    cluster.Push(0, step);
    CHECK(cluster.job->record().global_step == GlobalStep(step + 1));
    CHECK(cluster.job->record().loss == static_cast<float>(step));
    REQUIRE(token->has_value());
    CHECK((*token)->done == (step == 4));
    if (step < 4) CHECK((*token)->step == GlobalStep(step + 1));
    if (step == 2) cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  }
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 5));
  CHECK(cluster.job->record().accepted == 15);
  CHECK(cluster.job->record().stale == 0);
  CHECK(Read(CheckpointFolder(root.path(), 3), "fc/kernel", 3) == std::vector<float>(3, 6.5f));
  CHECK(Read(CheckpointFolder(root.path(), 5), "fc/kernel", 3) == std::vector<float>(3, 5.5f));
  CHECK(Read(CheckpointFolder(root.path(), 5), "fc/bias", 2) == std::vector<float>(2, 5.5f));
  // The worker does not call any more: its grace passes, then the shards are let go.
  for (int i = 0; i < 50 && !cluster.ended.has_value(); ++i) {
    cluster.clock.Advance(absl::Milliseconds(100));
    cluster.job->Tick();
    cluster.executor->Run();
  }
  REQUIRE(cluster.ended.has_value());
  CHECK(cluster.ended->ok());
}

TEST_CASE("real shards go on from a checkpoint as if nothing had happened") {
  const test::TemporaryFolder root;
  {
    Cluster first(Plan(3, root.path()));
    REQUIRE(first.Register().ready());
    for (int64_t step = 0; step < 3; ++step) {
      first.Push(0, step);
      first.Push(1, step);
    }
    first.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  }
  JobPlan plan = Plan(4, root.path());
  plan.start = GlobalStep(3);
  plan.epoch = Epoch(2);
  plan.restore_from = CheckpointFolder(root.path(), 3);
  Cluster second(plan);
  const RegisterTaskReply job = second.Register();
  REQUIRE(job.ready());
  CHECK(job.start_step() == 3);
  CHECK(job.epoch() == 2);
  second.Push(0, 3);
  second.Push(1, 3);
  second.AwaitCheckpoint(CheckpointFolder(root.path(), 4));
  CHECK(Read(CheckpointFolder(root.path(), 4), "fc/bias", 2) == std::vector<float>(2, 6.0f));
}

TEST_CASE("a chief that takes over goes on with the same worker, and saves what was not saved") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(5, root.path()));
  REQUIRE(cluster.Register().ready());
  for (int64_t step = 0; step < 2; ++step) {
    cluster.Push(0, step);
    cluster.Push(1, step);
  }
  cluster.PushUnseen(0, 2);
  cluster.PushUnseen(1, 2);
  while (cluster.job->record().global_step < GlobalStep(3)) REQUIRE(cluster.executor->RunNext());
  // Version 3 is with the shards to be saved, and their answers are on the way.
  cluster.StartChief(Plan(5, root.path()));
  CHECK(cluster.job->record().start == GlobalStep(3));
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  CHECK(Read(CheckpointFolder(root.path(), 3), "fc/kernel", 3) == std::vector<float>(3, 6.5f));
  for (const auto& shard : cluster.shards) CHECK(shard->GetView().kept_versions.empty());
  for (int64_t step = 3; step < 5; ++step) {
    cluster.Push(1, step);
    cluster.Push(0, step);
  }
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 5));
  CHECK(Read(CheckpointFolder(root.path(), 5), "fc/bias", 2) == std::vector<float>(2, 5.5f));
}

EvaluationResult AllCorrect(const EvaluationLease& lease) {
  EvaluationResult result;
  result.set_lease(lease.id());
  result.set_examples(lease.end() - lease.begin());
  result.set_correct(result.examples());
  return result;
}

TEST_CASE("a chief that takes over evaluates and saves every version that is due, in turn") {
  const test::TemporaryFolder root;
  JobPlan plan = Plan(9, root.path());
  plan.examples.test = 4;
  plan.job.mutable_evaluation()->set_every_steps(3);
  Cluster cluster(plan);
  REQUIRE(cluster.Register().ready());
  for (int64_t step = 0; step < 3; ++step) {
    cluster.Push(0, step);
    cluster.Push(1, step);
  }
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  const std::vector<EvaluationLease> old = cluster.Beat();
  REQUIRE(old.size() == 1);
  for (int64_t step = 3; step < 5; ++step) {
    cluster.Push(0, step);
    cluster.Push(1, step);
  }
  cluster.PushUnseen(0, 5);
  cluster.PushUnseen(1, 5);
  while (cluster.job->record().global_step < GlobalStep(6)) REQUIRE(cluster.executor->RunNext());

  // Version 3 is not evaluated, version 6 neither evaluated nor saved.
  cluster.StartChief(plan);
  CHECK(cluster.job->record().start == GlobalStep(6));
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 6));
  CHECK(Read(CheckpointFolder(root.path(), 6), "fc/kernel", 3) == std::vector<float>(3, 5.0f));
  const std::vector<EvaluationLease> first = cluster.Beat();
  REQUIRE(first.size() == 1);
  CHECK(first[0].version() == 3);
  // The answer to the chief before comes to this one: it is not counted.
  CHECK(first[0].id() > old[0].id());
  cluster.Beat({AllCorrect(old[0])});
  CHECK(cluster.job->record().evaluations.empty());
  const std::vector<EvaluationLease> second = cluster.Beat({AllCorrect(first[0])});
  REQUIRE(second.size() == 1);
  CHECK(second[0].version() == 6);
  cluster.Beat({AllCorrect(second[0])});
  REQUIRE(cluster.job->record().evaluations.size() == 2);
  CHECK(cluster.job->record().evaluations[0].version == GlobalStep(3));
  CHECK(cluster.job->record().evaluations[1].version == GlobalStep(6));
  for (const auto& shard : cluster.shards) CHECK(shard->GetView().kept_versions.empty());

  // The next one knows what they found.
  cluster.StartChief(plan);
  const std::vector<EvaluationTotals>& known = cluster.job->record().evaluations;
  REQUIRE(known.size() == 2);
  CHECK(known[0].version == GlobalStep(3));
  CHECK(known[1].version == GlobalStep(6));
  CHECK(known[1].examples == 4);
  CHECK(known[1].accuracy == 1);
}

TEST_CASE(
    "what a shard keeps ahead of a take-over is released where the new job does not want it") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(9, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.PushUnseen(0, 2);
  CHECK(cluster.shards[0]->GetView().kept_versions == std::vector<GlobalStep>{GlobalStep(3)});
  JobPlan later = Plan(9, root.path());
  later.job.mutable_checkpoint()->set_every_steps(5);
  cluster.StartChief(later);
  CHECK(cluster.job->record().start == GlobalStep(2));
  cluster.Push(1, 2);
  CHECK(cluster.job->record().global_step == GlobalStep(3));
  for (const auto& shard : cluster.shards) CHECK(shard->GetView().kept_versions.empty());
}

TEST_CASE("a chief that comes when all is saved has nothing left to do but to end the job") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(1, root.path()));
  REQUIRE(cluster.Register().ready());
  cluster.Push(0, 0);
  cluster.Push(1, 0);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 1));
  cluster.StartChief(Plan(1, root.path()));
  for (int i = 0; i < 100 && !cluster.ended.has_value(); ++i) {
    cluster.clock.Advance(absl::Milliseconds(100));
    cluster.job->Tick();
    cluster.executor->Run();
  }
  REQUIRE(cluster.ended.has_value());
  CHECK(cluster.ended->ok());
  CHECK(cluster.job->record().global_step == GlobalStep(1));
}

TEST_CASE("a chief that wants fewer steps than the shards have made leaves them to the next one") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(5, root.path()));
  REQUIRE(cluster.Register().ready());
  for (int64_t step = 0; step < 2; ++step) {
    cluster.Push(0, step);
    cluster.Push(1, step);
  }
  cluster.StartChief(Plan(1, root.path()));
  for (int i = 0; i < 100 && !cluster.ended.has_value(); ++i) {
    cluster.clock.Advance(absl::Milliseconds(100));
    cluster.job->Tick();
    cluster.executor->Run();
  }
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kBadConfiguration);
  CHECK(std::string(cluster.ended->message()).find("is at step 2, and the job ends at step 1") !=
        std::string::npos);
  cluster.StartChief(Plan(5, root.path()));
  REQUIRE(cluster.job->record().start == GlobalStep(2));
  TrainTo(&cluster, 2, 5);
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 5));
}

TEST_CASE("a successor pushes the uncommitted step to the shard that lacks it") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(5, root.path()));
  REQUIRE(cluster.Register().ready());
  cluster.Push(0, 0);
  // Silent for longer than its lease; its successor registers.
  for (int i = 0; i < 60; ++i) {
    cluster.clock.Advance(absl::Milliseconds(100));
    cluster.job->Tick();
    cluster.executor->Run();
  }
  ProcessStatus status;
  cluster.job->FillStatus(&status);
  CHECK(status.job().members(0).state() == "lost");
  CHECK(cluster.job->record().global_step == GlobalStep(0));
  cluster.incarnation = Incarnation(11);
  const RegisterTaskReply again = cluster.Register();
  REQUIRE(again.ready());
  CHECK(again.start_step() == 0);
  cluster.Push(0, 0);
  cluster.Push(1, 0);
  CHECK(cluster.job->record().global_step == GlobalStep(1));
}

}  // namespace
}  // namespace lockstep::chief
