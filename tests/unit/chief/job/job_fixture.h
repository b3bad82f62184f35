// JobFixture runs a job for tests, with a ps that the test scripts and a clock that the test moves.
// TwoWorkerPlan is its plan.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/job/job_controller.h"
#include "common/base/running_clock.h"
#include "common/base/version.h"
#include "tests/unit/chief/support/manual_executor.h"
#include "tests/unit/chief/support/scripted_ps.h"

namespace lockstep::chief {

inline constexpr uint32_t kLoss = 1;

// Two workers, one of them needed, and one ps.
inline JobPlan TwoWorkerPlan(int64_t max_steps) {
  JobPlan plan;
  plan.cluster = {
      .ps = {"127.0.0.1:1"}, .workers = {"127.0.0.1:2", "127.0.0.1:3"}, .chief = "127.0.0.1:4"};
  plan.job.set_name("digits");
  plan.job.set_towers(1);
  plan.job.set_batch_per_tower(16);
  plan.job.mutable_sync()->set_replicas_to_aggregate(1);
  plan.placement.set_shards(1);
  plan.placement.add_variables()->set_name("fc/kernel");
  plan.placement.add_variables()->set_name("train/loss");
  plan.loss_variable = kLoss;
  plan.is_classifier = true;
  plan.max_steps = GlobalStep(max_steps);
  plan.epoch = Epoch(1);
  plan.learning_rate = [](GlobalStep) { return 0.1f; };
  return plan;
}

template <typename Reply>
using Got = std::shared_ptr<std::optional<absl::StatusOr<Reply>>>;

// One ps, which answers all calls but those about steps at once, and two workers.
struct JobFixture {
  explicit JobFixture(JobPlan plan, JobOptions options = {}, bool disk_answers = true)
      : disk_answers(disk_answers) {
    options.job_id = 9;
    closed_steps = plan.start.value();
    options.patience = absl::Seconds(60);
    options.real_clock = &clock;
    job.emplace(
        std::move(plan), options, std::vector<PsControl*>{&ps}, &executor, &running,
        [this] { ready = true; }, [this](absl::Status status) { ended = std::move(status); });
    job->Start();
    Settle();
  }

  void Settle() {
    RunExecutor();
    while (ps_answers && ps.get_view.size() + ps.set_view.size() + ps.create.size() +
                                 ps.releases.size() + ps.renewals.size() >
                             0) {
      if (ps.get_view.size() > 0) ps.get_view.Answer(view);
      if (ps.set_view.size() > 0) ps.set_view.Answer(WithVariables(closed_steps));
      if (ps.create.size() > 0) ps.create.Answer(CreateVariablesReply());
      if (ps.releases.size() > 0) ps.releases.Answer(ReleaseSnapshotReply());
      if (ps.renewals.size() > 0) ps.renewals.Answer(RenewLeaseReply());
      RunExecutor();
    }
  }
  // The claim to the checkpoint folder is made on a thread of its own.
  void RunExecutor() {
    executor.Run();
    while (disk_answers && Status().waiting_for().starts_with("the disk")) executor.AwaitWork();
  }
  Got<RegisterTaskReply> Register(uint32_t worker, uint64_t incarnation) {
    RegisterTaskRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_cluster(job->plan().cluster.Canonical());
    request.set_version(kVersion);
    auto got = std::make_shared<std::optional<absl::StatusOr<RegisterTaskReply>>>();
    job->worker_calls()->Register(
        request, Answer<RegisterTaskReply>(
                     [got](absl::StatusOr<RegisterTaskReply> r) { *got = std::move(r); }));
    Settle();
    return got;
  }
  Got<HeartbeatReply> Beat(uint32_t worker, uint64_t incarnation,
                           const std::vector<EvaluationResult>& results = {}) {
    HeartbeatRequest request;
    request.set_job_id(9);
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    for (const EvaluationResult& result : results) *request.add_results() = result;
    return Beat(request);
  }
  Got<HeartbeatReply> Beat(const HeartbeatRequest& request) {
    auto got = std::make_shared<std::optional<absl::StatusOr<HeartbeatReply>>>();
    job->worker_calls()->Heartbeat(
        request,
        Answer<HeartbeatReply>([got](absl::StatusOr<HeartbeatReply> r) { *got = std::move(r); }));
    Settle();
    return got;
  }
  // The last call of a worker that was told the end with `reply`.
  void Acknowledge(uint32_t worker, uint64_t incarnation, const Got<HeartbeatReply>& reply) {
    HeartbeatRequest request;
    request.set_job_id(9);
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    *request.mutable_last_reply() = (*reply)->value().id();
    Beat(request);
  }
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) {
      clock.Advance(absl::Milliseconds(100));
      job->Tick();
      Settle();
    }
  }
  // The ps closes and commits a step.
  void Step(float loss = 1) {
    GrantReply reply;
    const int64_t step = ps.grants.front().step();
    reply.set_step(step);
    reply.set_shard_step(closed_steps = step + 1);
    reply.set_accepted(static_cast<uint64_t>(2 * (step + 1)));
    reply.add_statistics()->set_variable(kLoss);
    reply.mutable_statistics(0)->add_values(loss);
    ps.grants.Answer(reply);
    Settle();
  }
  ProcessStatus Status() {
    ProcessStatus status;
    job->FillStatus(&status);
    return status;
  }

  const bool disk_answers;
  ScriptedPs ps;
  SetViewReply view;         // the answer to GetView
  int64_t closed_steps = 0;  // in the answer to SetView
  bool ps_answers = true;
  ManualExecutor executor;
  ManualClock clock;
  const RunningClock running{&clock};
  bool ready = false;
  std::optional<absl::Status> ended;
  std::optional<JobController> job;
};

}  // namespace lockstep::chief
