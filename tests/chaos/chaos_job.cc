#include "tests/chaos/chaos_job.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/client/status_client.h"
#include "tests/chaos/few_descriptors.h"
#include "tests/chaos/host_network.h"
#include "tests/chaos/job_credentials.h"
#include "tests/chaos/kill_in_save.h"
#include "tests/chaos/ledger.h"
#include "tests/chaos/process_faults.h"
#include "tests/chaos/proxy_network.h"
#include "tests/chaos/rolling_restart.h"
#include "tests/chaos/stranger_faults.h"

namespace lockstep::test {
namespace {

constexpr int64_t kForeverSteps = 1'000'000;
constexpr int kInterrupted = 130;
constexpr int kReplaced = 80;
constexpr absl::Duration kAnswer = absl::Milliseconds(300);
constexpr absl::Duration kNextLook = absl::Milliseconds(50);
constexpr absl::Duration kEnd = absl::Seconds(30);
constexpr absl::Duration kCalm = absl::Minutes(4);

// Sets the addresses of `cluster`, if they are those of the network.
std::unique_ptr<ChaosNetwork> MakeNetwork(const ChaosOptions& options, Cluster* cluster) {
  if (!options.has_hosts) return std::make_unique<ProxyNetwork>(cluster->spec());
  auto network = std::make_unique<HostNetwork>(cluster->spec());
  cluster->UseSpec(network->Spec());
  return network;
}

}  // namespace

JobText ChaosJob::Text(const ChaosOptions& options, int64_t steps) {
  JobText text = {.max_steps = static_cast<int>(steps),
                  .optimizer = "adam {} learning_rate { base: 0.001 }",
                  .sync = absl::StrCat("replicas_to_aggregate: ", options.required(),
                                       options.has_copies ? " ps_replicas: 1" : ""),
                  .checkpoint = "folder: 'checkpoints' every_steps: 50",
                  .evaluation = "not_at_end: true",
                  .more = absl::StrCat("seed: 5 transport { shared_memory: OFF } ", options.more)};
  if (options.is_ledger) {
    text.global_batch = options.num_workers();
    text.optimizer = Ledger::Optimizer();
    text.data = "csv { train: 'ledger.csv' label_column: '1' no_header: true } no_shuffle: true";
    text.model = Ledger(options.num_workers(), options.required()).Model();
  }
  return text;
}

ChaosJob::ChaosJob(const ChaosOptions& options)
    : num_workers_(options.num_workers()),
      has_copies_(options.has_copies),
      cluster_(kPs, num_workers_, kChiefs),
      network_(MakeNetwork(options, &cluster_)) {
  if (options.has_token) {
    token_path_ = cluster_.folder().Path("job.token");
    credentials_ = NewToken(token_path_);
  }
  if (options.is_ledger) {
    cluster_.folder().Write("ledger.csv", Ledger(num_workers_, options.required()).Csv());
  }
  const std::string job =
      cluster_.WriteJob(Text(options, options.is_ledger ? Ledger::kMaxSteps : kForeverSteps));
  for (int i = 0; i < kPs; ++i) AddPs(i);
  for (int i = 0; i < num_workers_; ++i) AddWorker(i, options.sleep);
  for (int i = 0; i < kChiefs; ++i) AddChief(i, job);
}

void ChaosJob::AddTask(const TaskId& id, std::vector<std::string> command,
                       std::set<int> tolerated) {
  if (!token_path_.empty()) command.push_back("--token_file=" + token_path_);
  tasks_.push_back(std::make_unique<ChaosTask>(id, network_->CommandOf(id, std::move(command)),
                                               std::move(tolerated)));
}

void ChaosJob::AddPs(int index) {
  const TaskId id = {Role::kPs, index};
  AddTask(id, cluster_.Ps(index));
  readers_.emplace_back(network_->StatusAddressOf(id), credentials_.get());
}

void ChaosJob::AddWorker(int index, absl::Duration sleep) {
  std::vector<std::string> command = cluster_.Worker(index);
  command.push_back("--sleep=" +
                    absl::FormatDuration(sleep));  // so that the calm run is short beside this one
  AddTask({Role::kWorker, index}, std::move(command));
}

void ChaosJob::AddChief(int index, const std::string& job) {
  std::vector<std::string> command = cluster_.Chief(job, index);
  command.push_back(absl::StrCat("--lease=", absl::ToInt64Seconds(kLease)));
  command.push_back("--standby");
  AddTask({Role::kChief, index}, std::move(command), {kReplaced});
}

ChaosTask& ChaosJob::task(const TaskId& id) const {
  return **std::ranges::find_if(tasks_, [&](const auto& task) { return task->id() == id; });
}

std::optional<int> ChaosJob::Commander() const {
  std::optional<int> commander;
  for (int i = 0; i < kChiefs; ++i) {
    const auto status =
        FetchStatus(network_->StatusAddressOf({Role::kChief, i}), kAnswer, credentials_.get());
    if (!status.ok() || status->state() == "standby") continue;
    if (commander.has_value()) return std::nullopt;  // one of them has yet to learn of the other
    commander = i;
  }
  return commander;
}

std::optional<TaskId> ChaosJob::TaskOf(FaultTarget target, int index) const {
  if (MayOverlap(target, FaultTarget::kPs)) return TaskId{Role::kPs, index};
  if (target == FaultTarget::kWorker) return TaskId{Role::kWorker, index};
  const std::optional<int> commander = Commander();
  if (!commander.has_value()) return std::nullopt;
  return TaskId{Role::kChief, target == FaultTarget::kChief ? *commander : 1 - *commander};
}

std::optional<FaultTasks> ChaosJob::TasksOf(const Fault& fault) const {
  const std::optional<TaskId> task = TaskOf(fault.target, fault.index);
  if (!task.has_value()) return std::nullopt;
  FaultTasks tasks = {.task = *task};
  if (fault.target == FaultTarget::kPair) {
    tasks.peer = {Role::kPs, (fault.index + 1) % kPs};
  } else if (fault.peer.has_value()) {
    tasks.peer = TaskOf(*fault.peer, fault.peer_index);
    if (!tasks.peer.has_value()) return std::nullopt;
  }
  return tasks;
}

std::vector<ChaosTask*> ChaosJob::EndedBy(const Fault& fault, const FaultTasks& hit) const {
  std::vector<ChaosTask*> ended;
  for (const auto& each : tasks_) {
    if (fault.target == FaultTarget::kAll || each->id() == hit.task || each->id() == hit.peer) {
      ended.push_back(each.get());
    }
  }
  return ended;
}

std::vector<ChaosTask*> ChaosJob::SaversOf(const Fault& fault, ChaosTask* hit) const {
  if (fault.target != FaultTarget::kPs) return {hit};
  // One that only keeps copies saves nothing, and no two faults of a round are of a ps.
  std::vector<ChaosTask*> ps;
  for (const auto& each : tasks_) {
    if (each->id().role == Role::kPs) ps.push_back(each.get());
  }
  return ps;
}

std::unique_ptr<OngoingFault> ChaosJob::Inject(const Fault& fault, const FaultTasks& tasks) {
  ChaosTask* const hit = &task(tasks.task);
  const std::string address =
      hit->id().role == Role::kWorker ? "" : network_->StatusAddressOf(hit->id());
  switch (fault.kind) {
    case FaultKind::kKill:
      return KillTasks(EndedBy(fault, tasks));
    case FaultKind::kTerminate:
      return TerminateTask(hit);
    case FaultKind::kStop:
      return StopTask(hit);
    case FaultKind::kFullDisk:
      return FillDisk(hit, cluster_.folder().Path("checkpoints"));
    case FaultKind::kKillInSave:
      return KillInSave(SaversOf(fault, hit), cluster_.folder().Path("checkpoints"));
    case FaultKind::kRollingRestart:
      return RestartInTurn(EndedBy(fault, tasks));
    case FaultKind::kFewDescriptors:
      return TakeDescriptors(hit->pid(), address);
    case FaultKind::kIdleConnections:
      return HoldIdleConnections(address);
    case FaultKind::kGarbage:
      return SendGarbage(address);
    case FaultKind::kWrongToken:
      return CallWithWrongToken(address);
    default:
      return network_->Inject(fault, tasks);
  }
}

std::vector<std::string> ChaosJob::Tend(StepWatch* watch) {
  const Clock& clock = *Clock::Real();
  std::vector<std::string> wrong;
  for (const auto& task : tasks_) {
    if (auto what = task->Tend(clock.Monotonic())) wrong.push_back(*std::move(what));
  }
  int64_t most = 0;
  for (int i = 0; i < kPs; ++i) {
    const auto status = readers_[i].Read(kAnswer);
    if (!status.ok()) continue;
    watch->OnAnswer(clock.Monotonic(), i, status->shard().shard_step());
    most = std::max(most, status->shard().shard_step());
  }
  if (most > 0) steps_ = most;
  return wrong;
}

bool ChaosJob::all_up() {
  return std::ranges::all_of(tasks_, [](const auto& task) { return task->is_up(); });
}

bool ChaosJob::has_checkpoint() const {
  return std::filesystem::exists(cluster_.folder().Path("checkpoints/LATEST"));
}

std::vector<std::string> ChaosJob::Finish() {
  const absl::Duration deadline = Clock::Real()->Monotonic() + kEnd;
  std::optional<int> commander;
  while (!(commander = Commander()).has_value()) {
    if (Clock::Real()->Monotonic() >= deadline) return {"no chief commands at the end"};
    absl::SleepFor(kNextLook);
  }
  task({Role::kChief, *commander}).Signal(SIGINT);
  std::vector<std::string> wrong;
  for (const auto& task : tasks_) {
    const auto code =
        task->Wait(std::max(absl::ZeroDuration(), deadline - Clock::Real()->Monotonic()));
    // A chief may still learn, just now, that the other one has its place.
    if (code == kInterrupted || (code.has_value() && task->Tolerates(*code))) continue;
    wrong.push_back(absl::StrCat(task->name(), code ? absl::StrCat(" ended with ", *code) : " runs",
                                 " after the job was interrupted, expected to end with 130"));
  }
  return wrong;
}

absl::StatusOr<int64_t> ChaosJob::SavedStep() const {
  const auto newest = ResolveCheckpoint(cluster_.folder().Path("checkpoints"));
  if (!newest.ok()) return newest.status();
  const auto manifest = ReadManifest(*newest);
  if (!manifest.ok()) return manifest.status();
  return manifest->step;
}

std::string ChaosJob::SavedFolder(int64_t step) const {
  return cluster_.folder().Path(absl::StrCat("checkpoints/ckpt-", step));
}

std::string ChaosJob::Logs() const {
  std::string logs;
  for (const auto& task : tasks_) absl::StrAppend(&logs, task->name(), ":\n", task->LogFrom(0));
  return logs;
}

absl::StatusOr<std::string> ChaosJob::RunCalm(Cluster* cluster, const ChaosOptions& options,
                                              int64_t steps) {
  cluster->StartAll(Text(options, steps));
  if (cluster->chief().Wait(kCalm) != 0) {
    return absl::InternalError("the undisturbed run does not end well\n" + cluster->Logs());
  }
  return cluster->folder().Path(absl::StrCat("checkpoints/ckpt-", steps));
}

}  // namespace lockstep::test
