// A job run over real shards, without a network: what the chief orders is what the shards do.
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "chief/service/job_run.h"
#include "common/base/exit_code.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint.h"
#include "ps/shard/shard.h"
#include "tests/support/in_process_ps.h"
#include "tests/support/placed_variable.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/support/manual_executor.h"

namespace lockstep::chief {
namespace {

constexpr uint32_t kShards = 2;
constexpr float kInitialValue = 8;

// Gradient descent with rate 1/2 on two variables that begin at 8; one worker, one gradient a step.
JobPlan Plan(int64_t max_steps, const std::string& root) {
  JobPlan plan;
  plan.cluster = {
      .ps = {"127.0.0.1:1", "127.0.0.1:2"}, .workers = {"127.0.0.1:3"}, .chief = "127.0.0.1:4"};
  plan.job.set_towers(1);
  plan.job.set_batch_per_tower(1);
  plan.job.mutable_sync()->set_replicas_to_aggregate(1);
  plan.job.mutable_optimizer()->mutable_sgd();
  plan.job.mutable_checkpoint()->set_folder(root);
  plan.job.mutable_checkpoint()->set_every_steps(3);
  plan.placement.set_shards(kShards);
  *plan.placement.add_variables() = PlacedVariable(0, "fc/kernel", 3, 0, true, kInitialValue);
  *plan.placement.add_variables() = PlacedVariable(1, "fc/bias", 2, 1, true, kInitialValue);
  *plan.placement.add_variables() = PlacedVariable(2, "train/loss", 1, 0, false, kInitialValue);
  plan.loss_variable = 2;
  plan.optimizer = "sgd";
  plan.max_steps = GlobalStep(max_steps);
  plan.epoch = Epoch(1);
  plan.learning_rate = [](GlobalStep) { return 0.5f; };
  return plan;
}

struct Cluster {
  explicit Cluster(JobPlan plan) {
    for (uint32_t i = 0; i < kShards; ++i) {
      shards.push_back(std::make_unique<ps::Shard>(ps::ShardOptions()));
      controls.push_back(MakeInProcessControl(shards.back().get(), Incarnation(100 + i)));
    }
    StartChief(std::move(plan));
  }
  ~Cluster() {
    controls.clear();
    for (const auto& shard : shards) shard->Stop();
  }

  // A chief before this one is never heard of again: nothing that it waits for comes to it.
  void StartChief(JobPlan plan) {
    if (run != nullptr) dead.emplace_back(std::move(executor), std::move(run));
    std::vector<PsControl*> pointers;
    for (const auto& control : controls) pointers.push_back(control.get());
    executor = std::make_unique<ManualExecutor>();
    run = std::make_unique<JobRun>(
        std::move(plan), JobRunOptions{.job_id = 9}, pointers, executor.get(), &clock, [] {},
        [this](absl::Status status) { ended = std::move(status); });
    run->Start();
    executor->Run();
  }

  RegisterTaskReply Register() {
    RegisterTaskRequest request;
    request.set_incarnation(incarnation.value());
    request.set_cluster(run->plan().cluster.Canonical());
    request.set_version(kVersion);
    RegisterTaskReply got;
    run->worker_calls()->Register(
        request, Answer<RegisterTaskReply>([&](absl::StatusOr<RegisterTaskReply> reply) {
          REQUIRE(reply.ok());
          got = *reply;
        }));
    executor->Run();
    return got;
  }
  // The leases in the answer: none while it is parked.
  std::vector<EvaluationLease> Beat(const std::vector<EvaluationResult>& results = {}) {
    HeartbeatRequest request;
    request.set_job_id(9);
    request.set_incarnation(incarnation.value());
    for (const EvaluationResult& result : results) *request.add_results() = result;
    std::vector<EvaluationLease> leases;
    run->worker_calls()->Heartbeat(
        request, Answer<HeartbeatReply>([&](const absl::StatusOr<HeartbeatReply>& reply) {
          REQUIRE(reply.ok());
          leases.assign(reply->leases().begin(), reply->leases().end());
        }));
    executor->Run();
    return leases;
  }
  ps::WorkerIdentity Identity() const {
    return {
        .job = 9, .epoch = run->plan().epoch, .worker = WorkerIndex(0), .incarnation = incarnation};
  }
  // A gradient of ones for every variable of the shard; the step's number for the loss.
  void Push(uint32_t shard, int64_t step) {
    PushUnseen(shard, step);
    executor->Run();
  }
  // The chief has not heard of it yet.
  void PushUnseen(uint32_t shard, int64_t step, bool only_trainable = false) {
    std::vector<float> payload;
    ps::PushOrder order{.worker = Identity(),
                        .push_seq = PushSeq(static_cast<uint64_t>(step + 1)),
                        .local_step = GlobalStep(step)};
    for (const VariableSpec& spec : run->plan().placement.variables()) {
      if (spec.shard() != shard || (only_trainable && !spec.trainable())) continue;
      order.pieces.push_back({.variable = VariableId(spec.id()),
                              .shape = Shape({spec.dims(0)}),
                              .size = static_cast<uint64_t>(spec.dims(0)) * sizeof(float)});
      payload.insert(payload.end(), static_cast<size_t>(spec.dims(0)),
                     spec.trainable() ? 1.0f : static_cast<float>(step));
    }
    order.payload = {std::as_bytes(std::span(payload))};
    const absl::StatusOr<ps::PushResult> result = shards[shard]->Push(order);
    INFO(result.status().ToString());
    REQUIRE(result.ok());
  }
  // The answer to the worker's next request for a token; nothing while it is parked.
  std::shared_ptr<std::optional<ps::Token>> Dequeue() {
    auto got = std::make_shared<std::optional<ps::Token>>();
    dequeue_seq = dequeue_seq.next();
    shards[0]->DequeueToken({.worker = Identity(), .dequeue_seq = dequeue_seq},
                            [got](const absl::StatusOr<ps::Token>& token) {
                              if (token.ok()) *got = *token;
                            });
    return got;
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time && !ended.has_value(); t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      run->Tick();
      executor->Run();
    }
  }
  ProcessStatus Status() const {
    ProcessStatus status;
    run->FillStatus(&status);
    return status;
  }
  // The checkpoint's commit comes from a thread of its own.
  void AwaitCheckpoint(const std::string& folder) {
    while (run->record().checkpoint != folder) executor->AwaitWork();
  }

  ManualClock clock;
  Incarnation incarnation{10};  // of the worker
  DequeueSeq dequeue_seq;
  std::optional<absl::Status> ended;
  std::vector<std::unique_ptr<ps::Shard>> shards;
  std::vector<std::unique_ptr<PsControl>> controls;
  std::vector<std::pair<std::unique_ptr<ManualExecutor>, std::unique_ptr<JobRun>>> dead;
  std::unique_ptr<ManualExecutor> executor;
  std::unique_ptr<JobRun> run;
};

std::vector<float> Read(const std::string& folder, const std::string& name, int64_t elements) {
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(folder);
  REQUIRE(reader.ok());
  std::vector<float> values(static_cast<size_t>(elements));
  const absl::StatusOr<Tensor> tensor = reader->Read(name);
  INFO(tensor.status().ToString());
  REQUIRE(tensor.ok());
  std::memcpy(values.data(), tensor->view().bytes().data(), values.size() * sizeof(float));
  return values;
}

TEST_CASE("real shards train to the end, commit after all have closed, and are saved") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(5, root.path()));
  const RegisterTaskReply job = cluster.Register();
  REQUIRE(job.ready());
  CHECK(job.start_step() == 0);
  for (int64_t step = 0; step < 5; ++step) {
    const auto token = cluster.Dequeue();
    cluster.Push(1, step);
    CHECK(cluster.run->record().global_step == GlobalStep(step));
    CHECK_FALSE(token->has_value());
    cluster.Push(0, step);
    CHECK(cluster.run->record().global_step == GlobalStep(step + 1));
    CHECK(cluster.run->record().loss == static_cast<float>(step));
    REQUIRE(token->has_value());
    CHECK((*token)->done == (step == 4));
    if (step < 4) CHECK((*token)->step == GlobalStep(step + 1));
    if (step == 2) cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 3));
  }
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 5));
  CHECK(cluster.run->record().accepted == 15);
  CHECK(cluster.run->record().stale == 0);
  CHECK(Read(CheckpointFolder(root.path(), 3), "fc/kernel", 3) == std::vector<float>(3, 6.5f));
  CHECK(Read(CheckpointFolder(root.path(), 5), "fc/kernel", 3) == std::vector<float>(3, 5.5f));
  CHECK(Read(CheckpointFolder(root.path(), 5), "fc/bias", 2) == std::vector<float>(2, 5.5f));
  // The worker does not call any more: its grace passes, then the shards are let go.
  for (int i = 0; i < 50 && !cluster.ended.has_value(); ++i) {
    cluster.clock.Advance(absl::Milliseconds(100));
    cluster.run->Tick();
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
  while (cluster.run->record().global_step < GlobalStep(3)) REQUIRE(cluster.executor->RunNext());
  // Version 3 is with the shards to be saved, and their answers are on the way.
  cluster.StartChief(Plan(5, root.path()));
  CHECK(cluster.run->record().start == GlobalStep(3));
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
  while (cluster.run->record().global_step < GlobalStep(6)) REQUIRE(cluster.executor->RunNext());

  // Version 3 is not evaluated, version 6 neither evaluated nor saved.
  cluster.StartChief(plan);
  CHECK(cluster.run->record().start == GlobalStep(6));
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 6));
  CHECK(Read(CheckpointFolder(root.path(), 6), "fc/kernel", 3) == std::vector<float>(3, 5.0f));
  const std::vector<EvaluationLease> first = cluster.Beat();
  REQUIRE(first.size() == 1);
  CHECK(first[0].version() == 3);
  // The answer to the chief before comes to this one: it is not counted.
  CHECK(first[0].id() > old[0].id());
  cluster.Beat({AllCorrect(old[0])});
  CHECK(cluster.run->record().evaluations.empty());
  const std::vector<EvaluationLease> second = cluster.Beat({AllCorrect(first[0])});
  REQUIRE(second.size() == 1);
  CHECK(second[0].version() == 6);
  cluster.Beat({AllCorrect(second[0])});
  REQUIRE(cluster.run->record().evaluations.size() == 2);
  CHECK(cluster.run->record().evaluations[0].version == GlobalStep(3));
  CHECK(cluster.run->record().evaluations[1].version == GlobalStep(6));
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
    cluster.run->Tick();
    cluster.executor->Run();
  }
  REQUIRE(cluster.ended.has_value());
  CHECK(cluster.ended->ok());
  CHECK(cluster.run->record().global_step == GlobalStep(1));
}

TEST_CASE("a chief that wants fewer steps than the shards have made ends with an error") {
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
    cluster.run->Tick();
    cluster.executor->Run();
  }
  REQUIRE(cluster.ended.has_value());
  CHECK(std::string(cluster.ended->message()).find("is at step 2, and the job ends at step 1") !=
        std::string::npos);
}

TEST_CASE("a successor pushes the uncommitted step to the shard that lacks it") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(5, root.path()));
  REQUIRE(cluster.Register().ready());
  cluster.Push(0, 0);
  // Silent for longer than its lease; its successor registers.
  for (int i = 0; i < 60; ++i) {
    cluster.clock.Advance(absl::Milliseconds(100));
    cluster.run->Tick();
    cluster.executor->Run();
  }
  ProcessStatus status;
  cluster.run->FillStatus(&status);
  CHECK(status.job().members(0).state() == "lost");
  CHECK(cluster.run->record().global_step == GlobalStep(0));
  cluster.incarnation = Incarnation(11);
  const RegisterTaskReply again = cluster.Register();
  REQUIRE(again.ready());
  CHECK(again.start_step() == 0);
  cluster.Push(0, 0);
  cluster.Push(1, 0);
  CHECK(cluster.run->record().global_step == GlobalStep(1));
}

absl::Status Terminated() {
  return WithExitCode(absl::CancelledError("told to end"), ExitCode::kTerminated);
}

// Until the chief has ended; the checkpoint's commit comes from a thread of its own.
void AwaitEnd(Cluster* cluster) {
  while (!cluster->ended.has_value()) cluster->executor->AwaitWork();
}

void TrainTo(Cluster* cluster, int64_t first, int64_t end) {
  for (int64_t step = first; step < end; ++step) {
    cluster->Push(0, step);
    cluster->Push(1, step);
  }
}

TEST_CASE("a chief that leaves saves the last committed step, and its successor goes on") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.run->Leave(Terminated());
  CHECK(cluster.Status().state() == "saving");
  AwaitEnd(&cluster);
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kTerminated);
  const std::string folder = CheckpointFolder(root.path(), 2);
  CHECK(cluster.run->record().checkpoint == folder);
  CHECK(Read(folder, "fc/kernel", 3) == std::vector<float>(3, 7.0f));
  CHECK(Read(folder, "fc/bias", 2) == std::vector<float>(2, 7.0f));
  CHECK(*ResolveCheckpoint(root.path()) == folder);

  cluster.ended.reset();
  cluster.StartChief(Plan(8, root.path()));
  CHECK(cluster.run->record().start == GlobalStep(2));
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
  cluster.run->Leave(Terminated());
  cluster.executor->Run();
  CHECK_FALSE(cluster.ended.has_value());
  if (!is_closed) cluster.PushUnseen(0, 1, /*only_trainable=*/false);
  cluster.Push(1, 1);
  AwaitEnd(&cluster);
  CHECK(cluster.run->record().checkpoint == CheckpointFolder(root.path(), 2));
  CHECK(Read(CheckpointFolder(root.path(), 2), "fc/bias", 2) == std::vector<float>(2, 7.0f));
  CHECK(Read(CheckpointFolder(root.path(), 2), "fc/kernel", 3) == std::vector<float>(3, 7.0f));
}

TEST_CASE("a chief that cannot save in time leaves without, and says why") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 1);
  cluster.PushUnseen(0, 1);
  cluster.run->Leave(Terminated());
  cluster.Pass(absl::Seconds(19));
  CHECK_FALSE(cluster.ended.has_value());
  cluster.Pass(absl::Seconds(2));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kTerminated);
  CHECK(cluster.run->record().save_error.find("step 1 is under way") != std::string::npos);
  // The next one finds the job as it was.
  cluster.StartChief(Plan(8, root.path()));
  cluster.Push(1, 1);
  CHECK(cluster.run->record().global_step == GlobalStep(2));
}

TEST_CASE("a chief that another one has replaced saves nothing when it leaves") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  JobRun* const first = cluster.run.get();
  ManualExecutor* const executor = cluster.executor.get();
  cluster.StartChief(Plan(8, root.path()));
  first->Leave(Terminated());
  executor->Run();
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kFenced);
  TrainTo(&cluster, 2, 3);
  CHECK(cluster.run->record().global_step == GlobalStep(3));
}

TEST_CASE("an interrupted job is saved, and everybody ends") {
  const test::TemporaryFolder root;
  Cluster cluster(Plan(8, root.path()));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  cluster.run->Stop(WithExitCode(absl::CancelledError("interrupted"), ExitCode::kInterrupted));
  cluster.AwaitCheckpoint(CheckpointFolder(root.path(), 2));
  cluster.Pass(absl::Seconds(3));
  REQUIRE(cluster.ended.has_value());
  CHECK(ExitCodeFor(*cluster.ended) == ExitCode::kInterrupted);
  const auto token = cluster.Dequeue();
  REQUIRE(token->has_value());
  CHECK((*token)->done);
}

TEST_CASE("what a chief could not save at the end is saved by the next one, which ends the job") {
  const test::TemporaryFolder root;
  const std::string file = root.Write("checkpoints", "in the way");
  Cluster cluster(Plan(2, file));
  REQUIRE(cluster.Register().ready());
  TrainTo(&cluster, 0, 2);
  for (int seconds = 0; seconds < 130 && !cluster.ended.has_value(); ++seconds) {
    cluster.Pass(absl::Seconds(1));
  }
  REQUIRE(cluster.ended.has_value());
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
