#include "tests/sim/sim_chiefs.h"

#include <utility>

#include "tests/sim/remote_ps.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr uint64_t kFirstJob = 9;
constexpr absl::Duration kDrain = absl::Seconds(2);

}  // namespace

// Works as long as its process lives.
class SimChiefs::EventExecutor final : public chief::Executor {
 public:
  EventExecutor(EventQueue* events, std::shared_ptr<const bool> alive)
      : events_(events), alive_(std::move(alive)) {}
  void Post(absl::AnyInvocable<void()> work) override {
    events_->After(absl::ZeroDuration(), [alive = alive_, work = std::move(work)]() mutable {
      if (*alive) work();
    });
  }

 private:
  EventQueue* const events_;
  const std::shared_ptr<const bool> alive_;
};

struct SimChiefs::Process {
  explicit Process(EventQueue* events) : executor(events, alive) {}

  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  EventExecutor executor;
  std::vector<std::unique_ptr<PsControl>> controls;
  std::optional<absl::Status> end;
  std::vector<std::function<void()>> connections;  // how each ends when the process dies
  std::optional<chief::JobController> job;
};

SimChiefs::SimChiefs(chief::JobPlan plan, std::vector<PsControl*> shards, Network* network,
                     EventQueue* events)
    : plan_(std::move(plan)), shards_(std::move(shards)), network_(network), events_(events) {}

// What still waits for an answer gets one now, while there is a network.
SimChiefs::~SimChiefs() {
  for (const auto& process : processes_) {
    *process->alive = false;
    process->job.reset();
  }
}

void SimChiefs::Start() {
  auto process = std::make_shared<Process>(events_);
  std::vector<PsControl*> controls;
  for (PsControl* shard : shards_) {
    process->controls.push_back(MakeRemoteControl(shard, network_));
    controls.push_back(process->controls.back().get());
  }
  processes_.push_back(process);
  process->job.emplace(
      plan_,
      chief::JobOptions{.job_id = kFirstJob + processes_.size(),
                        .incarnation = Incarnation(processes_.size()),
                        .drain = kDrain},
      std::move(controls), &process->executor, events_, [] {},
      [process = process.get()](absl::Status status) { process->end = std::move(status); });
  process->job->Start();
  Tick(std::move(process));
}

void SimChiefs::Kill() {
  Process& process = *processes_.back();
  *process.alive = false;
  for (const auto& hang_up : std::exchange(process.connections, {})) hang_up();
}

void SimChiefs::Terminate() { job().Leave(absl::CancelledError("told to end")); }

void SimChiefs::Tick(std::shared_ptr<Process> process) {
  if (!*process->alive || process->end.has_value()) return;
  process->job->Tick();
  events_->After(kTick, [this, process = std::move(process)] { Tick(process); });
}

chief::JobController& SimChiefs::job() const { return *processes_.back()->job; }

const std::optional<absl::Status>& SimChiefs::end() const { return processes_.back()->end; }

template <typename Reply>
std::optional<chief::Answer<Reply>> SimChiefs::Connect(Callback<Reply> done) {
  const auto refuse = [](Callback<Reply> caller) {
    caller(absl::UnavailableError("the chief is not there"));
  };
  if (processes_.empty() || !*processes_.back()->alive) {
    refuse(std::move(done));
    return std::nullopt;
  }
  auto open = std::make_shared<Callback<Reply>>(std::move(done));
  processes_.back()->connections.push_back([open, refuse] {
    if (*open) refuse(std::exchange(*open, nullptr));
  });
  return chief::Answer<Reply>([open](absl::StatusOr<Reply> reply) {
    if (*open) std::exchange(*open, nullptr)(std::move(reply));
  });
}

void SimChiefs::Register(const RegisterTaskRequest& request, Callback<RegisterTaskReply> done) {
  if (auto answer = Connect(std::move(done))) {
    job().worker_calls()->Register(request, *std::move(answer));
  }
}

void SimChiefs::Heartbeat(const HeartbeatRequest& request, Callback<HeartbeatReply> done) {
  if (auto answer = Connect(std::move(done))) {
    job().worker_calls()->Heartbeat(request, *std::move(answer));
  }
}

}  // namespace lockstep::sim
