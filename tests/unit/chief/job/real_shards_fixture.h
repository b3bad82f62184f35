// A job run over real shards, without a network.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "chief/job/job_series.h"
#include "common/base/exit_code.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint.h"
#include "ps/shard/shard.h"
#include "tests/support/in_process_ps.h"
#include "tests/support/placed_variable.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/support/manual_executor.h"

namespace lockstep::chief {

inline constexpr uint32_t kShards = 2;
inline constexpr float kInitialValue = 8;

// Gradient descent with rate 1/2 on two variables that begin at 8; one worker, one gradient a step.
inline JobPlan Plan(int64_t max_steps, const std::string& root) {
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
  explicit Cluster(JobPlan plan, bool waits_for_disk = false) : waits_for_disk(waits_for_disk) {
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
    MakeSeries(std::move(plan), {.waits_for_disk = waits_for_disk});
    job = series->job();
    job->Start();
    executor->Run();
    // The claim to the checkpoint folder is made on a thread of its own.
    while (Status().waiting_for().starts_with("the disk")) executor->AwaitWork();
  }

  // Chief 1, until it takes command.
  void StartStandby(JobPlan plan) {
    plan.mode = StartMode::kSucceed;
    MakeSeries(std::move(plan), {.chief_index = 1, .waits_for_disk = true});
    series->Start();
    executor->Run();
  }

  RegisterTaskReply Register() {
    RegisterTaskRequest request;
    request.set_incarnation(incarnation.value());
    request.set_cluster(job->plan().cluster.Canonical());
    request.set_version(kVersion);
    RegisterTaskReply got;
    job->worker_calls()->Register(
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
    job->worker_calls()->Heartbeat(
        request, Answer<HeartbeatReply>([&](const absl::StatusOr<HeartbeatReply>& reply) {
          REQUIRE(reply.ok());
          leases.assign(reply->leases().begin(), reply->leases().end());
        }));
    executor->Run();
    return leases;
  }
  ps::WorkerIdentity Identity() const {
    return {
        .job = 9, .epoch = job->plan().epoch, .worker = WorkerIndex(0), .incarnation = incarnation};
  }
  // A gradient of ones for every variable of the shard; the step's number for the loss.
  void Push(uint32_t shard, int64_t step) {
    PushUnseen(shard, step);
    executor->Run();
  }
  // The chief has not heard of it yet.
  void PushUnseen(uint32_t shard, int64_t step, bool only_trainable = false) {
    std::vector<float> payload;
    ps::PushArguments arguments{.worker = Identity(),
                                .push_seq = PushSeq(static_cast<uint64_t>(step + 1)),
                                .local_step = GlobalStep(step)};
    for (const VariableSpec& spec : job->plan().placement.variables()) {
      if (spec.shard() != shard || (only_trainable && !spec.trainable())) continue;
      arguments.pieces.push_back({.variable = VariableId(spec.id()),
                                  .shape = Shape({spec.dims(0)}),
                                  .size = static_cast<uint64_t>(spec.dims(0)) * sizeof(float)});
      payload.insert(payload.end(), static_cast<size_t>(spec.dims(0)),
                     spec.trainable() ? 1.0f : static_cast<float>(step));
    }
    arguments.tensors = ReceivedTensors({std::as_bytes(std::span(payload))});
    const absl::StatusOr<ps::PushResult> result = shards[shard]->Push(arguments);
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
      job->Tick();
      executor->Run();
    }
  }
  // As Pass, also while the chief stands by or plans its start again.
  void PassStandingBy(absl::Duration time) {
    for (absl::Duration t; t < time && !ended.has_value(); t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      series->Tick();
      executor->Run();
    }
  }
  ProcessStatus Status() const {
    ProcessStatus status;
    job->FillStatus(&status);
    return status;
  }
  // The checkpoint's commit comes from a thread of its own.
  void AwaitCheckpoint(const std::string& folder) {
    while (job->record().checkpoint != folder) executor->AwaitWork();
  }

  // The chief before ends. `options`: what is not the same of all chiefs.
  void MakeSeries(JobPlan plan, JobOptions options) {
    if (series != nullptr) dead.emplace_back(std::move(executor), std::move(series));
    std::vector<PsControl*> pointers;
    for (const auto& control : controls) pointers.push_back(control.get());
    executor = std::make_unique<ManualExecutor>();
    options.job_id = 9;
    options.incarnation = Incarnation(++chiefs);
    series = std::make_unique<JobSeries>(
        std::move(plan), options, pointers, executor.get(), &clock, [] {},
        [this](absl::Status status) { ended = std::move(status); });
  }

  const bool waits_for_disk;
  ManualClock clock;
  uint64_t chiefs = 0;          // started
  Incarnation incarnation{10};  // of the worker
  DequeueSeq dequeue_seq;
  std::optional<absl::Status> ended;
  std::vector<std::unique_ptr<ps::Shard>> shards;
  std::vector<std::unique_ptr<PsControl>> controls;
  std::vector<std::pair<std::unique_ptr<ManualExecutor>, std::unique_ptr<JobSeries>>> dead;
  std::unique_ptr<ManualExecutor> executor;
  std::unique_ptr<JobSeries> series;
  JobController* job = nullptr;  // of the series
};

// Steps `first` to `end` - 1.
inline void TrainTo(Cluster* cluster, int64_t first, int64_t end) {
  for (int64_t step = first; step < end; ++step) {
    cluster->Push(0, step);
    cluster->Push(1, step);
  }
}

inline std::vector<float> Read(const std::string& folder, const std::string& name,
                               int64_t elements) {
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(folder);
  REQUIRE(reader.ok());
  std::vector<float> values(static_cast<size_t>(elements));
  const absl::StatusOr<Tensor> tensor = reader->Read(name);
  INFO(tensor.status().ToString());
  REQUIRE(tensor.ok());
  std::memcpy(values.data(), tensor->view().bytes().data(), values.size() * sizeof(float));
  return values;
}

}  // namespace lockstep::chief
