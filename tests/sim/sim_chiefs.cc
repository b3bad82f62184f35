#include "tests/sim/sim_chiefs.h"

#include <utility>

#include "tests/sim/remote_ps.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr uint64_t kFirstJob = 9;
constexpr absl::Duration kDrain = absl::Seconds(2);
// Of a worker that knows several chiefs.
constexpr absl::Duration kCallDeadline = absl::Seconds(2);

}  // namespace

// What a process may do now.
struct SimChiefs::Life {
  bool is_alive = true;
  bool is_stopped = false;                             // SIGSTOP
  std::vector<absl::AnyInvocable<void()>> when_going;  // work of a stopped one
};

// Works as long as its process lives.
class SimChiefs::EventExecutor final : public chief::Executor {
 public:
  EventExecutor(EventQueue* events, std::shared_ptr<Life> life)
      : events_(events), life_(std::move(life)) {}
  void Post(absl::AnyInvocable<void()> work) override {
    events_->After(absl::ZeroDuration(), [life = life_, work = std::move(work)]() mutable {
      if (!life->is_alive) return;
      life->is_stopped ? life->when_going.push_back(std::move(work)) : work();
    });
  }

 private:
  EventQueue* const events_;
  const std::shared_ptr<Life> life_;
};

struct SimChiefs::Process {
  Process(const Node& as, EventQueue* events) : node(as), executor(events, life) {}

  // Whoever knows the end of the job answers until it is killed.
  bool answers() const { return life->is_alive && !life->is_stopped && !has_left; }
  void HangUp() {
    for (const auto& hang_up : std::exchange(connections, {})) hang_up();
  }

  const Node node;
  const std::shared_ptr<Life> life = std::make_shared<Life>();
  EventExecutor executor;
  std::vector<std::unique_ptr<PsControl>> controls;
  std::optional<absl::Status> end;
  std::vector<std::function<void()>> connections;  // how each ends when the process dies
  std::optional<chief::JobSeries> job;
  bool has_commanded = false;
  bool has_left = false;  // the job to another one
};

SimChiefs::SimChiefs(chief::JobPlan plan, std::vector<PsControl*> shards, Network* network,
                     EventQueue* events)
    : plan_(std::move(plan)), shards_(std::move(shards)), network_(network), events_(events) {}

// What still waits for an answer gets one now, while there is a network.
SimChiefs::~SimChiefs() {
  for (const auto& process : processes_) {
    process->life->is_alive = false;
    process->job.reset();
  }
}

void SimChiefs::Start() {
  current_ = Launch(plan_, 0);
  current_->job->Start();
  Tick(current_);
}

void SimChiefs::StartStandby() {
  chief::JobPlan plan = plan_;
  plan.mode = chief::StartMode::kSucceed;
  const std::shared_ptr<Process> process = Launch(std::move(plan), 1);
  process->job->Start();
  Tick(process);
}

std::shared_ptr<SimChiefs::Process> SimChiefs::Launch(chief::JobPlan plan, uint32_t index) {
  const Node node{Role::kChief, static_cast<uint32_t>(processes_.size())};
  auto process = std::make_shared<Process>(node, events_);
  std::vector<PsControl*> controls;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    process->controls.push_back(
        MakeRemoteControl(shards_[i], {process->node, {Role::kPs, i}}, network_));
    controls.push_back(process->controls.back().get());
  }
  processes_.push_back(process);
  process->job.emplace(
      std::move(plan),
      chief::JobOptions{.job_id = kFirstJob + processes_.size(),
                        .incarnation = Incarnation(processes_.size()),
                        .chief_index = index,
                        .drain = kDrain,
                        .waits_for_disk = true},
      std::move(controls), &process->executor, events_, [] {},
      [process = process.get()](absl::Status status) {
        process->has_left = absl::IsCancelled(status) || absl::IsAborted(status);
        process->end = std::move(status);
        if (process->has_left) process->HangUp();
      });
  return process;
}

void SimChiefs::Kill() {
  if (!current_->end.has_value()) events_->trace().NoteFault(Fault::kChiefKilled);
  current_->life->is_alive = false;
  current_->HangUp();
}

void SimChiefs::Suspend(absl::Duration pause) {
  events_->trace().NoteFault(Fault::kChiefSuspended);
  const std::shared_ptr<Life> life = current_->life;
  life->is_stopped = true;
  events_->After(kCallDeadline, [process = current_] {
    if (process->life->is_stopped) process->HangUp();
  });
  events_->After(pause, [life] {
    life->is_stopped = false;
    for (auto& work : std::exchange(life->when_going, {})) {
      if (life->is_alive) work();
    }
  });
}

void SimChiefs::Terminate() {
  events_->trace().NoteFault(Fault::kChiefTerminated);
  current_->job->Leave(absl::CancelledError("told to end"));
}

void SimChiefs::Tick(std::shared_ptr<Process> process) {
  if (!process->life->is_alive) return;
  NoteCommand(process);
  if (process->end.has_value()) return;
  if (!process->life->is_stopped) process->job->Tick();
  events_->After(kTick, [this, process = std::move(process)] { Tick(process); });
}

// The one that has taken command last is the chief of the job.
void SimChiefs::NoteCommand(const std::shared_ptr<Process>& process) {
  const chief::JobController* const job = process->job->job();
  if (process->has_commanded || job == nullptr || !job->has_commanded()) return;
  process->has_commanded = true;
  current_ = process;
}

bool SimChiefs::has_commanded() const { return current_->has_commanded; }

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
                     if (*open) std::exchange(*open, nullptr)(std::move(reply));
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
