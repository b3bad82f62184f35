#include "tests/sim/sim_ps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/lost_variables.h"
#include "common/fs/path.h"
#include "tests/support/in_process_ps.h"

namespace lockstep::sim {

struct SimPs::Process {
  Process(EventQueue* events, Incarnation as) : incarnation(as), watch(events) {}

  const Incarnation incarnation;
  bool is_alive = true;
  ps::Shard shard{ps::ShardOptions()};
  ps::CommandWatch watch;
  // Each passes calls on to the one before it; a faulty one is null without a planted bug.
  std::unique_ptr<PsControl> local_control, faulty_control, control;
  std::unique_ptr<PsData> local_data, faulty_data, data;
};

// Passes calls to the process of now.
class SimPs::Control final : public PsControl {
 public:
  explicit Control(SimPs* ps) : ps_(ps) {}

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    const std::shared_ptr<Process> process = ps_->processes_.back();
    if (!process->is_alive) return done(absl::UnavailableError("Connection refused"));
    const auto* const save = dynamic_cast<const SaveRequest*>(&request);
    if (save != nullptr && ps_->death_.has_value()) return ps_->DieInSave(*save, std::move(done));
    process->control->Start(
        method, request, reply,
        [ps = ps_, process, done = std::move(done)](const absl::Status& status) mutable {
          done(ps->AsClientSees(*process, status));
        });
  }

 private:
  SimPs* const ps_;
};

class SimPs::Data final : public PsData {
 public:
  explicit Data(SimPs* ps) : ps_(ps) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    Pass<PushReply>(std::move(done), [&](PsData* to, Callback<PushReply> answer) {
      to->Push(header, std::move(payload), std::move(answer));
    });
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    Pass<PushPullReply>(std::move(done), [&](PsData* to, Callback<PushPullReply> answer) {
      to->PushPull(header, std::move(payload), std::move(answer));
    });
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    using Reply = std::unique_ptr<PulledValues>;
    Pass<Reply>(std::move(done),
                [&](PsData* to, Callback<Reply> answer) { to->Pull(request, std::move(answer)); });
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    Pass<DequeueTokenReply>(std::move(done), [&](PsData* to, Callback<DequeueTokenReply> answer) {
      to->DequeueToken(request, std::move(answer));
    });
  }
  void Cancel() override {}

 private:
  template <typename Reply, typename Call>
  void Pass(Callback<Reply> done, Call call) {
    const std::shared_ptr<Process> process = ps_->processes_.back();
    if (!process->is_alive) return done(absl::UnavailableError("Connection refused"));
    call(process->data.get(),
         [ps = ps_, process, done = std::move(done)](absl::StatusOr<Reply> reply) mutable {
           const absl::Status status = ps->AsClientSees(*process, reply.status());
           if (!status.ok()) return done(status);
           done(std::move(reply));
         });
  }

  SimPs* const ps_;
};

SimPs::SimPs(uint32_t index, PlantedBug planted, EventQueue* events, History* history)
    : index_(index),
      planted_(planted),
      events_(events),
      history_(history),
      control_(std::make_unique<Control>(this)),
      data_(std::make_unique<Data>(this)) {
  Start();
}

SimPs::~SimPs() {
  for (const auto& process : processes_) {
    process->is_alive = false;
    process->watch.Stop();
    process->local_control.reset();
    process->local_data.reset();
    process->shard.Stop();
  }
}

absl::Status SimPs::AsClientSees(const Process& process, const absl::Status& status) const {
  if (!process.is_alive) return absl::UnavailableError("Connection reset by peer");
  if (!IsNoVariables(status)) return status;
  return LostVariablesError(absl::StrCat("ps ", index_));
}

void SimPs::Start() {
  LOCKSTEP_CHECK(!is_alive());
  const Incarnation incarnation(100 * (processes_.size() + 1) + index_);
  const auto process = std::make_shared<Process>(events_, incarnation);
  const bool has_step = index_ == kStepShard;
  if (has_step) process->watch.Start(events_);
  process->local_control =
      MakeInProcessControl(&process->shard, incarnation, has_step ? &process->watch : nullptr);
  process->local_data = MakeInProcessData(&process->shard, /*owns_payloads=*/true);
  PsControl* control = process->local_control.get();
  PsData* data = process->local_data.get();
  if (planted_ != PlantedBug::kNone) {
    process->faulty_control = MakeFaultyControl(control, planted_, &last_);
    process->faulty_data = MakeFaultyData(data, planted_, &last_);
    control = process->faulty_control.get();
    data = process->faulty_data.get();
  }
  process->control = MakeRecordedControl(control, {index_, incarnation}, history_);
  process->data = MakeRecorded(data, history_);
  processes_.push_back(process);
}

void SimPs::Kill() {
  if (!is_alive()) return;
  events_->trace().NoteFault(Fault::kPsKilled);
  const std::shared_ptr<Process>& process = processes_.back();
  process->is_alive = false;
  process->watch.Stop();
  process->shard.Stop();
}

void SimPs::DieInSave(const SaveRequest& request, StatusCallback done) {
  const DeathAtDisk death = *std::exchange(death_, std::nullopt);
  SaveReply reply;
  DiesAtDisk(death, FolderOf(request.folder()), &events_->trace(), [&] {
    processes_.back()->control->Start(kSave, request, &reply, [](const absl::Status&) {});
  });
  Kill();
  done(absl::UnavailableError("Connection reset by peer"));
  death.died();
}

bool SimPs::is_alive() const { return !processes_.empty() && processes_.back()->is_alive; }

ps::Shard& SimPs::shard() { return processes_.back()->shard; }

const ps::Shard& SimPs::shard() const { return processes_.back()->shard; }

}  // namespace lockstep::sim
