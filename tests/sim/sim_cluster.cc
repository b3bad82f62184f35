#include "tests/sim/sim_cluster.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "chief/plan/losses.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/placed_variable.h"

namespace lockstep::sim {
namespace {

// After Cancel, calls of workers to one another and their repetitions are over by then: what made
// them can be destroyed without waiting, which one thread cannot.
constexpr absl::Duration kAftermath = absl::Seconds(12);

// Where all of a shard was lost, the home serves it anew: in the same epoch if no shard is left
// that knows of it.
bool Succeeds(const SimPsServer& home, const SimPsServer& lost) {
  if (!home.is_alive()) return false;
  const ps::ShardState state = home.shard().GetView();
  return state.has_variables && !state.is_copy && state.epoch == lost.shard().GetView().epoch;
}

std::string PsAddress(uint32_t port) { return absl::StrCat("ps:", port); }

chief::JobPlan PlanOf(const SimOptions& options) {
  chief::JobPlan plan;
  for (uint32_t i = 0; i < options.ps; ++i) plan.cluster.ps.push_back(PsAddress(i + 1));
  for (uint32_t i = 0; i < options.workers; ++i)
    plan.cluster.workers.push_back(absl::StrCat("worker:", i + 1));
  plan.cluster.chief = "chief:1";
  for (uint32_t i = 1; i < options.chiefs; ++i)
    plan.cluster.other_chiefs.push_back(absl::StrCat("chief:", i + 1));
  plan.job.set_towers(1);
  plan.job.set_batch_per_tower(1);
  SyncDef* sync = plan.job.mutable_sync();
  if (options.asynchronous) {
    sync->mutable_asynchronous();
    if (options.max_staleness.has_value()) {
      sync->mutable_asynchronous()->set_max_staleness(*options.max_staleness);
    }
  } else {
    if (options.min_replicas > 0) {
      sync->set_min_replicas(options.min_replicas);
      plan.job.clear_batch_per_tower();
      plan.job.set_global_batch(kGlobalBatch);
    } else {
      sync->set_replicas_to_aggregate(options.aggregate);
    }
    sync->set_token_policy(options.token_policy);
    sync->set_init_tokens(options.init_tokens);
    sync->set_quorum_policy(options.quorum_policy);
    if (options.copies) sync->set_ps_replicas(1);
  }
  *plan.job.mutable_optimizer() = options.optimizer;
  plan.job.mutable_optimizer()->mutable_learning_rate()->set_base(kLearningRate);
  plan.job.mutable_checkpoint()->set_folder(options.checkpoints);
  if (options.save_every > 0) plan.job.mutable_checkpoint()->set_every_steps(options.save_every);
  if (options.replicated) plan.job.mutable_strategy()->mutable_replicated();
  plan.placement.set_shards(options.ps);
  uint32_t id = 0;
  for (int64_t elements : options.variables) {
    VariableSpec* const variable = plan.placement.add_variables();
    *variable =
        PlacedVariable(id, absl::StrCat("v", id), elements, id % options.ps, true, kInitialValue);
    variable->set_replicated(options.replicated);
    if (options.is_table(id)) {
      variable->set_sparse(true);
      variable->set_dims(0, elements / kRowElements);
      variable->add_dims(kRowElements);
    }
    ++id;
  }
  *plan.placement.add_variables() = PlacedVariable(id, "train/loss", 1, 0, false, kInitialValue);
  plan.loss_variable = id;
  plan.optimizer = chief::OptimizerKindOf(plan.job);
  plan.max_steps = GlobalStep(options.steps);
  plan.epoch = Epoch(1);
  plan.learning_rate = [](GlobalStep) { return kLearningRate; };
  return plan;
}

}  // namespace

std::string Describe(SimCluster& cluster) {
  if (!cluster.violation().empty()) return cluster.violation();
  const ProcessStatus status = cluster.status();
  std::string text = absl::StrCat("chief ", status.state(), ", waits for ", status.waiting_for());
  if (cluster.end().has_value()) absl::StrAppend(&text, ", ended: ", cluster.end()->ToString());
  for (uint32_t i = 0; i < cluster.options().workers; ++i) {
    absl::StrAppend(&text, "; worker ", i, " ", cluster.worker(i).Describe());
  }
  return text;
}

SimCluster::SimCluster(const SimOptions& options, SimRun* run)
    : options_(options),
      run_(run),
      random_(options.seed),
      network_(options.network, &events_, &random_),
      serving_(options.ps),
      members_(&events_, &network_, &random_) {
  // As the daemons do (TuneLocks): one thread runs all, and the order of locks is for tests of
  // many.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  events_.AfterEach([this] { CheckInvariants(); });
  const PlantedBug planted = run == nullptr ? PlantedBug::kNone : run->planted;
  for (uint32_t i = 0; i < options.ps; ++i) {
    ps_.push_back(std::make_unique<SimPs>(
        SimPsOptions{.index = i, .num_ps = options.ps, .planted = planted, .address_of = PsAddress},
        &book_, &network_, &events_, &history_));
  }
  chief_.emplace(PlanOf(options), &book_, &network_, &events_);
  for (uint32_t i = 0; i < options.workers; ++i) {
    SimWorkerOptions worker{.index = WorkerIndex(i),
                            .cluster = chief_->plan().cluster.Canonical(),
                            .ps_addresses = chief_->plan().cluster.ps,
                            .least_compute = options.least_compute,
                            .most_compute = options.most_compute,
                            .heartbeat_pause = options.heartbeat_pause,
                            .same_every_time = options.same_every_time,
                            .least_chunk = options.least_chunk,
                            .most_chunk = options.most_chunk};
    if (i < options.short_of_data) worker.batches = options.batches;
    workers_.push_back(std::make_shared<SimWorker>(std::move(worker), &book_, &*chief_, &network_,
                                                   &members_, &events_, &random_, &history_));
  }
}

SimCluster::~SimCluster() {
  if (run_ != nullptr) run_->trace.Append(events_.trace());
  // Time goes on, also after a violation.
  events_.AfterEach(nullptr);
  events_.trace() = Trace();
  for (const auto& worker : workers_) worker->Kill();
  // What they trained with goes in events of its own.
  events_.RunUntil([] { return false; }, options_.replicated ? kAftermath : absl::ZeroDuration());
}

void SimCluster::CheckInvariants() {
  const std::vector<SimPsServer*> servers = Servers();
  serving_.Update(history_);
  std::vector<SimPsServer*> serving;
  for (uint32_t i = 0; i < options_.ps; ++i) {
    serving.push_back(FindServing(i, servers));
    serving_.NoteServing(i, serving.back()->id().incarnation);
  }
  std::optional<std::string> broken;
  if (options_.copies) broken = copy_invariants_.Check(servers);
  if (!broken) broken = invariants_.Check(serving, servers, copy_invariants_);
  if (broken) events_.trace().NoteViolation(*broken);
}

std::vector<SimPsServer*> SimCluster::Servers() const {
  std::vector<SimPsServer*> servers;
  for (const auto& ps : ps_) ps->AppendServers(&servers);
  return servers;
}

SimPsServer* SimCluster::FindServing(uint32_t shard,
                                     const std::vector<SimPsServer*>& servers) const {
  const auto found = std::ranges::find_if(servers, [&](const SimPsServer* server) {
    return options_.copies && server->id().shard == shard &&
           server->id().incarnation == serving_.Of(shard);
  });
  SimPsServer* const home = &ps_[shard]->own();
  if (found == servers.end()) return home;
  const bool may_succeed = !(*found)->is_alive() && !serving_.IsReplaced(home->id().incarnation);
  return may_succeed && Succeeds(*home, **found) ? home : *found;
}

void SimCluster::StartAll() {
  StartChief();
  for (const auto& worker : workers_) worker->Start();
}

ProcessStatus SimCluster::status() {
  ProcessStatus status;
  job().FillStatus(&status);
  return status;
}

std::vector<float> SimCluster::Values(uint32_t variable) {
  SimPsServer* const server = FindReadable(variable % options_.ps);
  if (server == nullptr) return SavedValues(variable);
  ps::Shard& shard = server->shard();
  if (shard.GetView().members.empty() || shard.GetView().is_copy) AdmitReader(server);
  const ps::ShardState state = shard.GetView();
  const ps::Member& member = state.members.front();
  std::vector<float> values;
  shard.Pull({.worker = {.job = state.job,
                         .epoch = state.epoch,
                         .worker = member.worker,
                         .incarnation = member.incarnation},
              .version = state.shard_step,
              .pieces = {{.variable = VariableId(variable)}}},
             [&](const absl::StatusOr<ps::PullResult>& result) {
               const std::span<const std::byte> bytes = result->pieces[0].bytes;
               values.resize(bytes.size() / sizeof(float));
               std::memcpy(values.data(), bytes.data(), bytes.size());
             });
  return values;
}

std::vector<float> SimCluster::SavedValues(uint32_t variable) const {
  const std::string folder = CheckpointFolder(options_.checkpoints, options_.steps);
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return {};
  const absl::StatusOr<Tensor> saved = reader->Read(absl::StrCat("v", variable));
  if (!saved.ok()) return {};
  const std::span<const float> values = saved->view().as<float>();
  return {values.begin(), values.end()};
}

// A ps that dies at the end of the job may leave it to nobody: its copy has the values.
SimPsServer* SimCluster::FindReadable(uint32_t shard) const {
  const std::vector<SimPsServer*> servers = Servers();
  SimPsServer* const serving = FindServing(shard, servers);
  if (serving->is_alive() && serving->shard().GetView().has_variables) return serving;
  return FindCopy(*serving, servers);
}

SimPsServer* SimCluster::FindCopy(const SimPsServer& serving,
                                  const std::vector<SimPsServer*>& servers) {
  const Epoch epoch = serving.shard().GetView().epoch;
  const auto copy = std::ranges::find_if(servers, [&](const SimPsServer* server) {
    const ps::ShardState state = server->shard().GetView();
    return server->is_alive() && server->id().shard == serving.id().shard && state.is_copy &&
           state.has_variables && !state.awaits_state && state.epoch == epoch;
  });
  return copy == servers.end() ? nullptr : *copy;
}

bool SimCluster::HasAllCopies() const {
  if (!chief_->HasAllCopies()) return false;
  // The chief may not know yet who has died.
  const std::vector<SimPsServer*> servers = Servers();
  for (uint32_t shard = 0; shard < options_.ps; ++shard) {
    const SimPsServer* const serving = FindServing(shard, servers);
    if (!serving->is_alive() || !serving->shard().GetView().has_copy) return false;
    const SimPsServer* const copy = FindCopy(*serving, servers);
    if (copy == nullptr || !ObeysChief(*serving) || !ObeysChief(*copy)) return false;
  }
  return std::ranges::none_of(ps_, [](const auto& ps) { return ps->is_stopped(); });
}

// Another one may be taking over.
bool SimCluster::ObeysChief(const SimPsServer& server) const {
  return LastView(server).chief == chief_->incarnation();
}

const AcceptedView& SimCluster::LastView(const SimPsServer& server) const {
  return *std::find_if(
      history_.views.rbegin(), history_.views.rend(),
      [&](const AcceptedView& view) { return view.ps.incarnation == server.id().incarnation; });
}

void SimCluster::AdmitReader(SimPsServer* server) {
  const AcceptedView& last = LastView(*server);
  ps::View view{.epoch = last.epoch,
                .members = {{WorkerIndex(0), Incarnation(1)}},
                .shard = ShardIndex(server->id().shard),
                .number = last.number};
  view.command.set_job(server->shard().GetView().job);
  view.command.set_term(last.term.value());
  view.command.set_chief(last.chief.value());
  LOCKSTEP_CHECK(server->shard().SetView(view).ok());
}

bool SimCluster::RunToEnd(absl::Duration limit) {
  const bool has_ended = events_.RunUntil(
      [this] {
        return end().has_value() &&
               std::all_of(workers_.begin(), workers_.end(),
                           [](const auto& worker) { return worker->end().has_value(); });
      },
      limit);
  if (!has_ended) {
    events_.trace().NoteViolation("progress: somebody waits for ever: " + Describe(*this));
  }
  return has_ended;
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
