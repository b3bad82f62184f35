#include "chief/job/job_controller.h"

#include <algorithm>
#include <utility>

#include "chief/job/ending_phase.h"
#include "chief/job/starting_phase.h"
#include "common/base/philox.h"
#include "common/config/cluster_proto.h"
#include "common/config/shard_names.h"
#include "common/replicas_proto/convert.h"

namespace lockstep::chief {
namespace {

JobInputs MakeInputs(JobPlan plan, JobOptions options, std::vector<PsControl*> shards,
                     Executor* executor, const Clock* clock, std::function<void()> on_ready,
                     StatusCallback on_end) {
  std::vector<std::string> names = ShardNames(plan.cluster.ps);
  return {.plan = std::move(plan),
          .options = options,
          .shards = std::move(shards),
          .shard_names = std::move(names),
          .executor = executor,
          .clock = clock,
          .on_ready = std::move(on_ready),
          .on_end = std::move(on_end)};
}

ToldCluster ClusterOf(const JobInputs& inputs) {
  const ClusterSpec& cluster = inputs.plan.cluster;
  const auto& known = inputs.options.clusters;
  return ToldCluster(
      known != nullptr ? known : std::make_shared<KnownClusterSpecs>(cluster.Canonical()),
      ToProto(cluster));
}

// By shard; none where the job has no copies.
std::vector<ShardPlace> PlacesOf(const JobOptions& options) {
  return options.shard_places == nullptr ? std::vector<ShardPlace>() : options.shard_places();
}

}  // namespace

JobController::JobController(JobPlan plan, JobOptions options, std::vector<PsControl*> shards,
                             Executor* executor, const Clock* clock, std::function<void()> on_ready,
                             StatusCallback on_end)
    : state_(MakeInputs(std::move(plan), options, std::move(shards), executor, clock,
                        std::move(on_ready), std::move(on_end))),
      reporter_(&state_.inputs.plan, &state_.membership, &state_.record),
      milestones_(&state_),
      calls_(MixSeeds(options.incarnation.value(), options.run) | 1, ClusterOf(state_.inputs),
             &state_.membership, milestones_.evaluations(), clock, MakeHooks()) {
  state_.control = this;
  state_.milestones = &milestones_;
  state_.calls = &calls_;
  state_.reporter = &reporter_;
  auto starting = std::make_unique<StartingPhase>(&state_);
  starting_ = starting.get();
  phases_.push_back(std::move(starting));
}

JobController::~JobController() = default;

std::function<StepShare(GlobalStep, WorkerIndex)> JobController::MakeShareHook() {
  if (state_.replicas == nullptr) return nullptr;
  return [replicas = state_.replicas.get()](GlobalStep step, WorkerIndex worker) {
    return ToProto(replicas->ShareOf(step, worker));
  };
}

WorkerCalls::Hooks JobController::MakeHooks() {
  return {.members_changed =
              [this] {
                if (state_.views.has_value()) state_.views->SetMembers(state_.membership.Live());
              },
          .admitted =
              [this](const LiveMember& member) {
                return state_.views.has_value() && state_.views->IsConfirmed(member);
              },
          .share_of = MakeShareHook(),
          .shard_places = state_.inputs.options.shard_places,
          .waiting_for = [this] { return reporter_.AdmissionWaitsFor(Describe()); },
          .worker_failed = [this](absl::Status why) { Stop(std::move(why)); },
          .result_arrived = [this] { milestones_.TakeEvaluations(); },
          .end_known = [this] { Notify(JobEvent::kEndKnown); },
          .warn = [this](std::string text) { state_.Warn(std::move(text)); }};
}

void JobController::Inherit(JobController* before) {
  state_.record.GoOnFrom(before->state_.record, plan().restore_from);
  state_.claim->InheritLock(before->state_.claim.get());
  state_.lease = before->state_.lease;
}

bool JobController::is_disk_busy() const {
  return starting_->is_disk_busy() || milestones_.is_writing();
}

void JobController::Start() { phases_.back()->Start(); }

void JobController::Tick() {
  if (state_.lease != nullptr) {
    state_.lease->Tick();
    if (!state_.lease->status().ok()) End({.outcome = state_.lease->status()});
  }
  calls_.Tick();
  if (state_.views.has_value()) state_.views->Tick();
  milestones_.Tick();
  copies_.Update(PlacesOf(state_.inputs.options), state_.now());
  phases_.back()->Tick();
}

void JobController::SetCluster(const ClusterSpec& cluster) {
  state_.inputs.plan.cluster = cluster;
  state_.inputs.shard_names = ShardNames(cluster.ps);
  starting_->SetNames(state_.inputs.shard_names);
  calls_.SetCluster(ToProto(cluster));
  if (state_.views.has_value()) state_.views->AnnounceAgain(state_.inputs.shard_names);
}

void JobController::Stop(absl::Status why) {
  End({.outcome = std::move(why), .told = Told::kEverybody, .save_first = true});
}

void JobController::Leave(absl::Status why) {
  End({.outcome = std::move(why), .told = Told::kNobody, .save_first = true});
}

void JobController::Enter(std::unique_ptr<Phase> next) {
  phases_.back()->Stop();
  phases_.push_back(std::move(next));
  phases_.back()->Start();
}

void JobController::End(JobEnd end) {
  // Those who are told are another chief's.
  if (absl::IsAborted(end.outcome)) end.told = Told::kNobody;
  if (ending_ != nullptr) return ending_->EndAgain(std::move(end));
  if (plan().goes_back_after(end.outcome)) end.told = Told::kNobody;
  auto ending = std::make_unique<EndingPhase>(&state_, std::move(end));
  ending_ = ending.get();
  Enter(std::move(ending));
}

void JobController::Notify(JobEvent event) { phases_.back()->OnEvent(event); }

JobFacts JobController::Describe() const {
  JobFacts facts{.now = state_.now(),
                 .real_now = state_.real_clock()->Monotonic(),
                 .shards = std::vector<ShardFacts>(state_.inputs.shards.size())};
  copies_.Describe(PlacesOf(state_.inputs.options), &facts);
  for (const std::unique_ptr<Phase>& phase : phases_) phase->Describe(&facts);
  return facts;
}

void JobController::FillStatus(ProcessStatus* status) const {
  reporter_.FillStatus(Describe(), status);
}

StopReply JobController::DescribeProgress() const {
  const RunRecord& record = state_.record;
  const GlobalStep saved = milestones_.saved();
  const GlobalStep step = std::max(record.global_step, saved);
  StopReply reply;
  reply.set_global_step(step.value());
  reply.set_checkpoint(record.checkpoint.empty() ? plan().restore_from : record.checkpoint);
  if (!reply.checkpoint().empty()) reply.set_checkpoint_step(saved.value());
  if (step > saved) reply.set_save_error(DescribeUnsaved());
  return reply;
}

std::string JobController::DescribeUnsaved() const {
  if (plan().job.checkpoint().folder().empty()) return "the job has no checkpoint folder";
  if (state_.inputs.options.drain <= absl::ZeroDuration()) return "the chief has --drain=0";
  const std::string& error = state_.record.save_error;
  return error.empty() ? "the job ended without a save" : error;
}

}  // namespace lockstep::chief
