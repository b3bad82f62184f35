#include "worker/service/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/memory_room.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/job/loss_checks.h"
#include "common/log/log.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "common/replicas_proto/convert.h"
#include "common/rpc/process.h"
#include "worker/service/variable_memory.h"
#include "worker/strategy/parameter_server/asynchronous_strategy.h"
#include "worker/strategy/parameter_server/gradient_buffers.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"
#include "worker/strategy/replicated/reduction_of_job.h"
#include "worker/strategy/replicated/replicated_strategy.h"
#include "worker/tower/replicated_towers.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {
namespace {

int TowersOfTrainer(const JobDef& job) { return TowersOf(job) / NumTrainers(job); }

// What the sum of a trainer's towers is divided by.
int CountOf(const JobDef& job) {
  if (!job.sync().has_asynchronous()) return TowersOf(job);
  const Asynchronous& asynchronous = job.sync().asynchronous();
  const bool scales = !asynchronous.has_scale_gradient() || asynchronous.scale_gradient();
  return scales ? TowersOf(job) : 1;
}

std::vector<int64_t> MostRows(const JobDef& job, const BatchRows& rows) {
  return rows.MostRows(job.batch_per_tower() * TowersOfTrainer(job));
}

// Groups that are smaller than the job's, too: where what the job says needs more participants,
// what suits these.
std::function<absl::StatusOr<GroupReduction>(int workers)> ReductionsOf(
    const JobDef& job, int all_workers, std::vector<TensorSpec> tensors) {
  return [=, replicated = job.strategy().replicated(), towers = TowersOf(job),
          tensors = std::move(tensors)](int workers) -> absl::StatusOr<GroupReduction> {
    const Topology topology{.workers = workers, .towers = towers};
    absl::StatusOr<ChosenReduction> chosen = ReductionOf(replicated, topology, tensors);
    if (!chosen.ok() && workers < all_workers) {
      StrategyDef::Replicated fitting = replicated;
      fitting.clear_mode();
      fitting.clear_cross_tower_ops();
      chosen = ReductionOf(fitting, topology, tensors);
    }
    if (!chosen.ok()) return chosen.status();
    if (workers < all_workers) {
      log::Info(absl::StrCat("gradients of ", workers, " workers are reduced by ", chosen->name));
    }
    return std::move(chosen->reduction);
  };
}

absl::Status CheckRoom(const MemoryNeed& need) {
  if (CheckRoomFor(need).ok()) return absl::OkStatus();
  // The heap keeps what an earlier run in this process and the reading of the data have freed.
  TrimHeap();
  return CheckRoomFor(need);
}

void WarnOfTables(const std::vector<TensorSpec>& tensors) {
  std::vector<std::string> tables;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.shares > 0) tables.push_back(tensor.name);
  }
  if (tables.empty()) return;
  log::Warning(absl::StrCat("Efficient allreduce is not supported for IndexedSlices. The rows of ",
                            absl::StrJoin(tables, ", "), " are gathered instead"));
}

}  // namespace

int TowersOf(const JobDef& job) { return static_cast<int>(std::max<int64_t>(job.towers(), 1)); }

int NumTrainers(const JobDef& job) { return job.sync().has_asynchronous() ? TowersOf(job) : 1; }

TowerDevices DevicesOfTrainer(const JobDef& job, const TowerDevices& devices, size_t trainer) {
  return NumTrainers(job) > 1 ? TowerDevices(devices.of(trainer)) : devices;
}

uint64_t Trainer::GradientBytes(const JobDef& job, const ModelGraph& graph,
                                const VariableLayout& layout) {
  if (job.strategy().has_replicated()) return 0;
  return GradientBuffers::NumBytes(layout, MostRows(job, BatchRows(graph))) *
         static_cast<uint64_t>(NumTrainers(job));
}

absl::Status Trainer::CheckMemory(const JobDef& job, const VariableLayout& layout,
                                  bool values_in_place) {
  if (job.strategy().has_replicated()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const OptimizerRules rules, OptimizerRules::Create(job.optimizer()));
    return CheckRoom(NeedOfVariables(
        layout, {.holders = static_cast<uint64_t>(TowersOf(job)), .rules = &rules}));
  }
  return CheckRoom(NeedOfVariables(
      layout, {.holders = static_cast<uint64_t>(NumTrainers(job)),
               .values_in_place = values_in_place && !job.sync().has_asynchronous()}));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const TrainerOptions& options,
                                                         const TrainerResources& resources,
                                                         std::unique_ptr<Pipeline> data,
                                                         Progress* progress) {
  std::unique_ptr<Trainer> trainer(new Trainer(options, resources, std::move(data), progress));
  LOCKSTEP_RETURN_IF_ERROR(trainer->MakeTowers());
  LOCKSTEP_RETURN_IF_ERROR(trainer->MakeStrategy());
  return trainer;
}

Trainer::Trainer(const TrainerOptions& options, const TrainerResources& resources,
                 std::unique_ptr<Pipeline> data, Progress* progress)
    : options_(options),
      resources_(resources),
      progress_(progress),
      data_(std::move(data)),
      rows_(*resources.graph) {}

absl::Status Trainer::MakeTowers() {
  const JobDef& job = options_.registration->job();
  if (job.strategy().has_replicated()) return MakeReplicatedTowers();
  const ModelGraph& graph = *resources_.graph;
  if (job.losses().empty()) return AddTowers(graph, job.optimizer());
  const std::vector<WholeVariable>& variables = resources_.layout->variables();
  for (int loss = 0; loss < job.losses_size(); ++loss) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int> nodes, LossNodesOf(job.losses(loss), graph));
    const auto trains = [&](int variable) { return variables[variable].turn == loss; };
    LOCKSTEP_RETURN_IF_ERROR(
        AddTowers(graph.ForLosses(std::move(nodes), trains), job.losses(loss).optimizer()));
  }
  return absl::OkStatus();
}

absl::Status Trainer::AddTowers(const ModelGraph& graph, const OptimizerDef& optimizer) {
  const JobDef& job = options_.registration->job();
  TowerGroupOptions group;
  group.batch_per_tower = job.batch_per_tower();
  group.smaller_batches = options_.smaller_batches;
  group.reducer = {.towers = TowersOfTrainer(job),
                   .count = CountOf(job),
                   .batch_norm_updates = job.batch_norm_updates(),
                   .ps_device = job.strategy().parameter_server().ps_device(),
                   .clipping = optimizer.clipping()};
  group.delay = options_.delay;
  LOCKSTEP_ASSIGN_OR_RETURN(towers_.emplace_back(),
                            TowerGroup::Create(graph, options_.devices, *resources_.ops, group));
  return absl::OkStatus();
}

absl::Status Trainer::MakeReplicatedTowers() {
  const JobDef& job = options_.registration->job();
  LOCKSTEP_ASSIGN_OR_RETURN(
      towers_.emplace_back(),
      ReplicatedTowers::Create(*resources_.graph, options_.devices, *resources_.ops,
                               {.towers = TowersOf(job),
                                .batch_per_tower = job.batch_per_tower(),
                                .smaller_batches = options_.smaller_batches,
                                .delay = options_.delay}));
  return absl::OkStatus();
}

absl::Status Trainer::MakeReplicatedStrategy() {
  const RegisterTaskReply& registration = *options_.registration;
  const JobDef& job = registration.job();
  const Topology topology{.workers = static_cast<int>(registration.total_num_replicas()),
                          .towers = TowersOf(job)};
  const std::vector<int64_t> most_rows = MostRows(job, rows_);
  const std::vector<TensorSpec> tensors = ReducedTensors(*resources_.layout, most_rows);
  LOCKSTEP_ASSIGN_OR_RETURN(ChosenReduction chosen,
                            ReductionOf(job.strategy().replicated(), topology, tensors));
  reduction_ = chosen.reason.empty() ? chosen.name : absl::StrCat(chosen.name, ": ", chosen.reason);
  log::Info(absl::StrCat("gradients are reduced by ", reduction_));
  for (const std::string& warning : chosen.warnings) log::Warning(warning);
  WarnOfTables(tensors);
  auto groups = std::make_unique<GroupSource>(
      GroupSourceOptions{.worker = options_.shards.session.identity.worker(),
                         .incarnation = options_.shards.session.identity.incarnation(),
                         .num_workers = topology.workers,
                         .first_step = GlobalStep(registration.start_step()),
                         .reduction = ReductionsOf(job, topology.workers, tensors),
                         .shrinks = job.sync().quorum_policy() == SHRINK,
                         .shared_memory = job.transport().shared_memory() != TransportDef::OFF,
                         .checksums = job.transport().checksums(),
                         .peers = resources_.peers,
                         .queue = resources_.queue,
                         .credentials = resources_.credentials,
                         .timer = resources_.shards.timer});
  groups_ = groups.get();
  LOCKSTEP_ASSIGN_OR_RETURN(
      strategy_, ReplicatedStrategy::Create({.shards = options_.shards,
                                             .replicas = {.towers = topology.towers,
                                                          .threads = resources_.threads,
                                                          .most_rows = most_rows,
                                                          .average = chosen.reduction.average},
                                             .optimizer = job.optimizer(),
                                             .max_steps = registration.max_steps()},
                                            *resources_.layout, *resources_.loss_layout,
                                            resources_.shards, std::move(groups)));
  return absl::OkStatus();
}

void Trainer::SetGroup(const GroupView& view) {
  if (groups_ != nullptr) groups_->SetView(view);
}

absl::Status Trainer::MakeStrategy() {
  const RegisterTaskReply& registration = *options_.registration;
  if (registration.job().strategy().has_replicated()) return MakeReplicatedStrategy();
  const std::vector<int64_t> most_rows = MostRows(registration.job(), rows_);
  if (registration.job().sync().has_asynchronous()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        strategy_, AsynchronousStrategy::Create(options_.shards, *resources_.layout,
                                                resources_.shards, most_rows, resources_.memory));
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      strategy_, ParameterServerStrategy::Create(
                     {.shards = options_.shards,
                      .first_step = GlobalStep(registration.start_step()),
                      .max_steps = registration.max_steps()},
                     *resources_.layout, resources_.shards, most_rows, resources_.memory));
  return absl::OkStatus();
}

absl::Status Trainer::Run() {
  const RegisterTaskReply& registration = *options_.registration;
  const WorkerIdentity& identity = options_.shards.session.identity;
  StepRunnerOptions options;
  options.first_step = GlobalStep(registration.start_step());
  options.random_seed = MixSeeds(registration.job().seed(), identity.worker());
  // Replicas of an asynchronous job are at no common step. One that comes later reads on about
  // where all of them together are.
  const int trainers = NumTrainers(registration.job());
  if (registration.job().sync().has_asynchronous()) {
    options.first_step = GlobalStep(registration.start_step() /
                                    (int64_t{registration.total_num_replicas()} * trainers));
  } else {
    options.max_steps = registration.max_steps();
  }
  // Towers drop out independently.
  if (trainers > 1) options.random_seed = MixSeeds(options.random_seed, identity.tower());
  if (registration.has_share()) options.share = FromProto(registration.share());
  options.job_seed = registration.job().seed();
  options.departs = options_.departs;
  options.timeline = options_.timeline;
  options.example_log = options_.example_log;
  options.first_tower = static_cast<int>(identity.tower());
  std::vector<TrainingTowers*> towers;
  for (const std::unique_ptr<TrainingTowers>& group : towers_) towers.push_back(group.get());
  return StepRunner(options, *resources_.layout, strategy_.get(), std::move(towers), data_.get(),
                    &rows_, progress_)
      .Run();
}

}  // namespace lockstep::worker
