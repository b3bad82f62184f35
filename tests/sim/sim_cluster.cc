#include "tests/sim/sim_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/remote_ps.h"
#include "tests/support/in_process_ps.h"
#include "tests/support/placed_variable.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr uint64_t kJob = 9;

chief::JobPlan PlanOf(const SimOptions& options) {
  chief::JobPlan plan;
  for (uint32_t i = 0; i < options.ps; ++i) plan.cluster.ps.push_back(absl::StrCat("ps:", i + 1));
  for (uint32_t i = 0; i < options.workers; ++i)
    plan.cluster.workers.push_back(absl::StrCat("worker:", i + 1));
  plan.cluster.chief = "chief:1";
  plan.job.set_towers(1);
  plan.job.set_batch_per_tower(1);
  SyncDef* sync = plan.job.mutable_sync();
  if (options.asynchronous) {
    sync->mutable_asynchronous();
    if (options.max_staleness.has_value()) {
      sync->mutable_asynchronous()->set_max_staleness(*options.max_staleness);
    }
  } else {
    sync->set_replicas_to_aggregate(options.aggregate);
    sync->set_token_policy(options.token_policy);
    sync->set_init_tokens(options.init_tokens);
  }
  plan.job.mutable_optimizer()->mutable_sgd();
  plan.job.mutable_optimizer()->mutable_learning_rate()->set_base(kLearningRate);
  plan.placement.set_shards(options.ps);
  uint32_t id = 0;
  for (int64_t elements : options.variables) {
    *plan.placement.add_variables() =
        PlacedVariable(id, absl::StrCat("v", id), elements, id % options.ps, true, kInitialValue);
    ++id;
  }
  *plan.placement.add_variables() = PlacedVariable(id, "train/loss", 1, 0, false, kInitialValue);
  plan.loss_variable = id;
  plan.optimizer = "sgd";
  plan.max_steps = GlobalStep(options.steps);
  plan.epoch = Epoch(1);
  plan.learning_rate = [](GlobalStep) { return kLearningRate; };
  return plan;
}

}  // namespace

SimCluster::SimCluster(const SimOptions& options)
    : options_(options),
      random_(options.seed),
      network_(options.network, &events_, &random_),
      executor_(&events_) {
  std::vector<PsControl*> controls;
  std::vector<PsData*> data;
  for (uint32_t i = 0; i < options.ps; ++i) {
    shards_.push_back(std::make_unique<ps::Shard>(ps::ShardOptions()));
    local_controls_.push_back(MakeInProcessControl(shards_[i].get(), Incarnation(100 + i)));
    controls_.push_back(MakeRemoteControl(local_controls_[i].get(), &network_));
    controls.push_back(controls_[i].get());
    local_data_.push_back(MakeInProcessData(shards_[i].get()));
    recorded_data_.push_back(MakeRecorded(local_data_[i].get(), &history_));
    data_.push_back(MakeRemoteData(recorded_data_[i].get(), &network_));
    data.push_back(data_[i].get());
  }
  run_.emplace(
      PlanOf(options), chief::JobRunOptions{.job_id = kJob}, controls, &executor_, &events_, [] {},
      [this](absl::Status status) { end_ = std::move(status); });
  for (uint32_t i = 0; i < options.workers; ++i) {
    workers_.push_back(
        std::make_shared<SimWorker>(SimWorkerOptions{.index = WorkerIndex(i),
                                                     .cluster = run_->plan().cluster.Canonical(),
                                                     .least_compute = options.least_compute,
                                                     .most_compute = options.most_compute},
                                    data, run_->worker_calls(), &network_, &events_, &random_));
  }
}

SimCluster::~SimCluster() {
  for (const auto& worker : workers_) worker->Kill();
  local_controls_.clear();
  local_data_.clear();
  for (const auto& shard : shards_) shard->Stop();
}

void SimCluster::StartChief() {
  run_->Start();
  Tick();
}

void SimCluster::StartAll() {
  StartChief();
  for (const auto& worker : workers_) worker->Start();
}

void SimCluster::Tick() {
  if (end_.has_value()) return;
  run_->Tick();
  events_.After(kTick, [this] { Tick(); });
}

bool SimCluster::RunToEnd(absl::Duration limit) {
  return events_.RunUntil(
      [this] {
        return end_.has_value() &&
               std::all_of(workers_.begin(), workers_.end(),
                           [](const auto& worker) { return worker->end().has_value(); });
      },
      limit);
}

int SimCluster::tokens_per_step() const {
  return static_cast<int>(std::max(options_.workers, options_.aggregate));
}

int SimCluster::Starts(GlobalStep step) const {
  int starts = 0;
  for (const auto& worker : workers_) {
    starts += static_cast<int>(std::count(worker->starts().begin(), worker->starts().end(), step));
  }
  return starts;
}

}  // namespace lockstep::sim
