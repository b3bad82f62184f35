#include "tests/unit/worker/support/ps_cluster.h"

#include <cstdlib>
#include <iostream>

#include "common/checkpoint/checkpoint.h"
#include "tests/support/in_process_ps.h"

namespace lockstep::worker::test {
namespace {

constexpr uint64_t kJob = 7;
const Command kCommand = [] {
  Command command;
  command.set_job(kJob);
  command.set_term(1);
  return command;
}();

uint64_t IncarnationOf(uint32_t worker) { return 100 + worker; }

void MustBeOk(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << std::endl;
  std::abort();
}

}  // namespace

PsCluster::PsCluster(const PsClusterOptions& options) : options_(options) {
  CreateVariablesRequest plan;
  *plan.mutable_command() = kCommand;
  *plan.mutable_placement() = options.placement;
  *plan.mutable_optimizer() = options.optimizer;
  plan.set_seed(options.seed);
  plan.set_total_num_replicas(options.workers);
  plan.set_replicas_to_aggregate(options.workers);
  plan.set_asynchronous(options.asynchronous);
  if (options.max_staleness.has_value()) plan.set_max_staleness(*options.max_staleness);
  if (options.asynchronous) plan.set_end_step(options.end);
  plan.set_restore_from(options.restore_from);
  plan.set_start_step(options.start);
  for (uint32_t k = 0; k < options.placement.shards(); ++k) {
    ps::View view{.command = kCommand, .epoch = Epoch(1), .members = {}, .shard = ShardIndex(k)};
    for (uint32_t worker = 0; worker < options.workers; ++worker) {
      view.members.push_back({WorkerIndex(worker), Incarnation(IncarnationOf(worker))});
    }
    shards_.push_back(std::make_unique<ps::Shard>(ps::ShardOptions()));
    MustBeOk(shards_.back()->SetView(view).status());
    MustBeOk(shards_.back()->CreateVariables(plan).status());
    data_.push_back(MakeInProcessData(shards_.back().get()));
    pointers_.push_back(data_.back().get());
    transports_.push_back(data_.back().get());
  }
}

PsCluster::~PsCluster() {
  for (const auto& shard : shards_) shard->Stop();
}

void PsCluster::RunSteps() { GrantAll(options_.start); }

std::string PsCluster::Save(const std::string& root) {
  Manifest manifest;
  manifest.step = options_.end;
  manifest.optimizer = "test";
  for (const auto& shard : shards_) {
    const auto saved =
        shard->Save(kCommand, GlobalStep(options_.end), CheckpointFolder(root, options_.end));
    MustBeOk(saved.status());
    ShardFile file{saved->file, saved->bytes, {}};
    for (const TensorRecord& tensor : saved->tensors) {
      file.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.crc32c});
    }
    manifest.shards.push_back(file);
  }
  const auto folder = CommitCheckpoint(root, manifest, 0);
  MustBeOk(folder.status());
  return *folder;
}

std::vector<float> PsCluster::losses() {
  absl::MutexLock lock(&mutex_);
  return losses_;
}

void PsCluster::GrantAll(int64_t step) {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = 0;
  }
  for (const auto& shard : shards_) {
    shard->Grant({.command = kCommand,
                  .step = GlobalStep(step),
                  .required = options_.workers,
                  .learning_rate = options_.optimizer.learning_rate().base(),
                  .keep_slots = step + 1 == options_.end},
                 [this](const absl::StatusOr<ps::ClosedStep>& closed) {
                   if (closed.ok()) Closed(*closed);
                 });
  }
}

void PsCluster::Closed(const ps::ClosedStep& closed) {
  const VariableId loss(options_.placement.variables().rbegin()->id());
  {
    absl::MutexLock lock(&mutex_);
    for (const ps::SmallStatistic& statistic : closed.statistics) {
      if (statistic.variable == loss) losses_.push_back(statistic.values[0]);
    }
    if (++closed_ < shards_.size()) return;
  }
  const GlobalStep next = closed.step.next();
  const bool is_last = next == GlobalStep(options_.end);
  MustBeOk(shards_[0]->CommitStep(kCommand, closed.step, is_last).status());
  if (!is_last) GrantAll(next.value());
}

WorkerIdentity PsCluster::Identity(uint32_t worker) const {
  WorkerIdentity identity;
  identity.set_job(kJob);
  identity.set_epoch(1);
  identity.set_worker(worker);
  identity.set_incarnation(IncarnationOf(worker));
  return identity;
}

}  // namespace lockstep::worker::test
