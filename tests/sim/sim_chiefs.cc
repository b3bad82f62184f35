#include "tests/sim/sim_chiefs.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "chief/copies/job_pairs.h"
#include "common/base/exit_code.h"
#include "common/base/running_clock.h"
#include "tests/sim/remote_ps.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr uint64_t kFirstJob = 9;
constexpr absl::Duration kDrain = absl::Seconds(2);
// Of a job that starts: longer than many messages in a row take that come past their deadlines.
constexpr absl::Duration kPatience = absl::Minutes(10);
// Of a worker that knows several chiefs.
constexpr absl::Duration kCallDeadline = absl::Seconds(2);

}  // namespace

// What a process may do now.
struct SimChiefs::Life {
  bool is_alive = true;
  bool is_stopped = false;                             // SIGSTOP
  std::vector<absl::AnyInvocable<void()>> when_going;  // work of a stopped one
  std::optional<DeathAtDisk> death;                    // to come
};

// Works as long as its process lives.
class SimChiefs::EventExecutor final : public chief::Executor {
 public:
  EventExecutor(SimChiefs* chiefs, Process* process, std::shared_ptr<Life> life)
      : chiefs_(chiefs), process_(process), life_(std::move(life)) {}
  void Post(absl::AnyInvocable<void()> work) override {
    chiefs_->events_->After(absl::ZeroDuration(), [chiefs = chiefs_, process = process_,
                                                   life = life_, work = std::move(work)]() mutable {
      if (!life->is_alive) return;
      if (life->is_stopped) return life->when_going.push_back(std::move(work));
      chiefs->Work(process, [&work] { work(); });
    });
  }

 private:
  SimChiefs* const chiefs_;
  Process* const process_;
  const std::shared_ptr<Life> life_;
};

// Calls of a process, of which nothing is heard once it dies.
class SimChiefs::ProcessControl final : public PsControl {
 public:
  ProcessControl(PsControl* ps, const Link& link, Network* network)
      : remote_(MakeRemoteControl(ps, link, network)) {}
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    if (!IsDyingAtDisk()) remote_->Start(method, request, reply, std::move(done));
  }

 private:
  const std::unique_ptr<PsControl> remote_;
};

struct SimChiefs::Process {
  Process(const Node& as, SimChiefs* chiefs)
      : node(as), clock(chiefs->events_), executor(chiefs, this, life) {}

  // A chief that knows the end of the job answers until it is killed or started again, also one
  // that has found the job done and has not taken command. A standby leaves.
  bool answers() const {
    const bool was_standby = is_standby && end.has_value() && !has_commanded;
    return life->is_alive && !life->is_stopped && !has_left && !was_standby;
  }
  // By `lockstep up`. Of one that has left, a simulation starts the next one itself.
  bool IsStartedAgain() const {
    const bool has_failed = end.has_value() && !has_left;
    return has_failed && static_cast<int>(ExitCodeFor(*end)) >= kFirstRetryableCode;
  }
  void HangUp() {
    for (const auto& hang_up : std::exchange(connections, {})) hang_up();
  }

  const Node node;
  const RunningClock clock;
  const std::shared_ptr<Life> life = std::make_shared<Life>();
  EventExecutor executor;
  std::vector<std::unique_ptr<PsControl>> controls;
  std::optional<chief::JobPairs> pairs;  // of a job with copies of shards
  std::optional<absl::Status> end;
  std::vector<std::function<void()>> connections;  // how each ends when the process dies
  std::optional<chief::JobSeries> job;
  bool is_standby = false;  // as it was started
  bool has_commanded = false;
  bool has_left = false;  // the job to another one
};

SimChiefs::SimChiefs(chief::JobPlan plan, const AddressBook* book, Network* network,
                     EventQueue* events)
    : plan_(std::move(plan)), book_(book), network_(network), events_(events) {}

// What still waits for an answer gets one now, while there is a network.
SimChiefs::~SimChiefs() {
  for (const auto& process : processes_) {
    process->life->is_alive = false;
    process->job.reset();
  }
}

void SimChiefs::Start() {
  current_ = Launch(processes_.empty() ? plan_ : PlanOfNext(), 0);
  current_->job->Start();
  Tick(current_);
}

chief::JobPlan SimChiefs::PlanOfNext() const {
  if (plan_.job.checkpoint().every_steps() == 0) return plan_;
  absl::StatusOr<chief::JobPlan> plan = chief::GoBack(plan_, /*lost=*/"");
  if (plan.ok()) return *std::move(plan);
  events_->trace().NoteViolation("checkpoint: " + plan.status().ToString());
  return plan_;
}

void SimChiefs::UnlockFolder() const {
  const std::string& folder = plan_.job.checkpoint().folder();
  if (!folder.empty()) ::unlink((folder + "/LOCK").c_str());
}

void SimChiefs::StartStandby() {
  chief::JobPlan plan = plan_;
  plan.mode = chief::StartMode::kSucceed;
  const std::shared_ptr<Process> process = Launch(std::move(plan), 1);
  process->is_standby = true;
  process->job->Start();
  Tick(process);
}

std::shared_ptr<SimChiefs::Process> SimChiefs::Launch(chief::JobPlan plan, uint32_t index) {
  const Node node{Role::kChief, static_cast<uint32_t>(processes_.size())};
  auto process = std::make_shared<Process>(node, this);
  std::vector<PsControl*> controls;
  for (const std::string& address : plan_.cluster.ps) {
    process->controls.push_back(Connect(node, address));
    controls.push_back(process->controls.back().get());
  }
  chief::JobOptions options{.job_id = kFirstJob + processes_.size() + 1,
                            .incarnation = Incarnation(processes_.size() + 1),
                            .chief_index = index,
                            .patience = kPatience,
                            .drain = kDrain,
                            .waits_for_disk = true,
                            .real_clock = events_};
  if (plan_.job.sync().ps_replicas() > 0) {
    process->pairs.emplace(
        chief::JobPairsOptions{
            .ps_addresses = plan_.cluster.ps,
            .patience = options.lease,
            .connect = [this, node](size_t,
                                    const std::string& address) { return Connect(node, address); }},
        controls, &process->executor, &process->clock);
    controls = process->pairs->shards();
    options.shard_places = [pairs = &*process->pairs] { return pairs->places(); };
    options.unfinished_places = [pairs = &*process->pairs] { return pairs->DescribeUnfinished(); };
  }
  processes_.push_back(process);
  process->job.emplace(
      std::move(plan), std::move(options), std::move(controls), &process->executor, &process->clock,
      [] {},
      [this, process = process.get()](absl::Status status) {
        process->has_left = absl::IsCancelled(status) || absl::IsAborted(status);
        if (absl::IsAborted(status) && process == current_.get()) FollowSuccessor();
        process->end = std::move(status);
        if (process->has_left) process->HangUp();
      });
  return process;
}

std::unique_ptr<PsControl> SimChiefs::Connect(const Node& from, const std::string& address) const {
  const ListeningPs& ps = book_->Find(address);
  return std::make_unique<ProcessControl>(ps.control, Link{from, ps.node}, network_);
}

void SimChiefs::Kill() { Kill(current_.get()); }

void SimChiefs::KillAtDisk(DeathAtDisk death) { current_->life->death = std::move(death); }

void SimChiefs::Kill(Process* process) {
  if (!process->end.has_value()) events_->trace().NoteFault(Fault::kChiefKilled);
  process->life->is_alive = false;
  process->HangUp();
  UnlockFolder();
}

void SimChiefs::Work(Process* process, absl::FunctionRef<void()> work) {
  const std::shared_ptr<Life> life = process->life;
  if (!life->death.has_value()) return work();
  if (!DiesAtDisk(*life->death, plan_.job.checkpoint().folder(), &events_->trace(), work)) return;
  Kill(process);
  std::exchange(life->death, std::nullopt)->died();
}

void SimChiefs::Suspend(absl::Duration pause) {
  events_->trace().NoteFault(Fault::kChiefSuspended);
  const std::shared_ptr<Life> life = current_->life;
  life->is_stopped = true;
  events_->After(kCallDeadline, [process = current_] {
    if (process->life->is_stopped) process->HangUp();
  });
  if (pause > kKeepalive) {
    events_->After(kKeepalive, [this, life, node = current_->node] {
      if (life->is_alive) network_->CloseConnections(node);
    });
  }
  events_->After(pause, [this, process = current_, life] {
    life->is_stopped = false;
    for (auto& work : std::exchange(life->when_going, {})) {
      if (life->is_alive) Work(process.get(), [&work] { work(); });
    }
  });
}

void SimChiefs::Terminate() {
  events_->trace().NoteFault(Fault::kChiefTerminated);
  current_->job->Leave(absl::CancelledError("told to end"));
}

void SimChiefs::RestartEnded() {
  const std::vector<std::shared_ptr<Process>> processes = processes_;
  for (const auto& process : processes) {
    if (!process->life->is_alive || !process->IsStartedAgain()) continue;
    process->life->is_alive = false;
    process->HangUp();
    StartStandby();
  }
}

void SimChiefs::Tick(std::shared_ptr<Process> process) {
  if (!process->life->is_alive) return;
  NoteCommand(process);
  if (process->end.has_value()) return;
  if (!process->life->is_stopped) {
    Work(process.get(), [&] {
      process->clock.Monotonic();
      if (process->pairs.has_value()) process->pairs->Tick();
      process->job->Tick();
    });
  }
  events_->After(kTick, [this, process = std::move(process)] { Tick(process); });
}

// The one that has taken command last is the chief of the job.
void SimChiefs::NoteCommand(const std::shared_ptr<Process>& process) {
  const chief::JobController* const job = process->job->job();
  const bool is_known = process->has_commanded || process->has_left;
  if (is_known || job == nullptr || !job->has_commanded()) return;
  process->has_commanded = true;
  current_ = process;
}

// One that took command before it may have heard of that later.
void SimChiefs::FollowSuccessor() {
  for (const auto& process : processes_) {
    if (process->has_commanded && !process->has_left) current_ = process;
  }
}

bool SimChiefs::has_commanded() const { return current_->has_commanded; }

bool SimChiefs::commands() const { return current_->has_commanded && current_->answers(); }

bool SimChiefs::is_alive() const { return current_->life->is_alive; }

Incarnation SimChiefs::incarnation() const { return Incarnation(current_->node.index + 1); }

bool SimChiefs::HasAllCopies() const {
  return current_->answers() && current_->pairs.has_value() && current_->pairs->HasAllCopies();
}

chief::JobController& SimChiefs::job() const { return *current_->job->job(); }

const std::optional<absl::Status>& SimChiefs::end() const { return current_->end; }

std::vector<absl::Status> SimChiefs::Ends() const {
  std::vector<absl::Status> ends;
  for (const auto& process : processes_) {
    if (process->life->is_alive) {
      ends.push_back(process->end.value_or(absl::UnknownError("it has not ended")));
    }
  }
  return ends;
}

bool SimChiefs::HaveEnded() const {
  return std::ranges::all_of(processes_, [](const auto& process) {
    return !process->life->is_alive || (process->end.has_value() && !process->IsStartedAgain());
  });
}

// As FailoverChiefClient finds it.
SimChiefs::Process* SimChiefs::FindCommander(WorkerIndex worker, Incarnation incarnation) const {
  for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
    if (!(*process)->answers()) continue;
    if ((*process)->job->CallsFor(worker, incarnation).ok()) return process->get();
  }
  return nullptr;
}

Node SimChiefs::commander() const {
  for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
    if ((*process)->has_commanded && (*process)->answers()) return (*process)->node;
  }
  return current_->node;
}

template <typename Reply>
std::optional<std::pair<chief::WorkerCalls*, chief::Answer<Reply>>> SimChiefs::Connect(
    WorkerIndex worker, Incarnation incarnation, Callback<Reply> done) {
  const auto refuse = [](Callback<Reply> caller) {
    caller(absl::UnavailableError("the chief is not there"));
  };
  Process* const commander = FindCommander(worker, incarnation);
  if (commander == nullptr) {
    refuse(std::move(done));
    return std::nullopt;
  }
  auto open = std::make_shared<Callback<Reply>>(std::move(done));
  commander->connections.push_back([open, refuse] {
    if (*open) refuse(std::exchange(*open, nullptr));
  });
  return std::pair(*commander->job->worker_calls(),
                   chief::Answer<Reply>([open](absl::StatusOr<Reply> reply) {
                     const bool may_answer = *open && !IsDyingAtDisk();
                     if (may_answer) std::exchange(*open, nullptr)(std::move(reply));
                   }));
}

void SimChiefs::Register(const RegisterTaskRequest& request, Callback<RegisterTaskReply> done) {
  if (auto chief = Connect(WorkerIndex(request.worker()), Incarnation(request.incarnation()),
                           std::move(done))) {
    chief->first->Register(request, std::move(chief->second));
  }
}

void SimChiefs::Heartbeat(const HeartbeatRequest& request, Callback<HeartbeatReply> done) {
  if (auto chief = Connect(WorkerIndex(request.worker()), Incarnation(request.incarnation()),
                           std::move(done))) {
    chief->first->Heartbeat(request, std::move(chief->second));
  }
}

}  // namespace lockstep::sim
