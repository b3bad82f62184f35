#include "chief/job/job_series.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chief/job/log_lines.h"
#include "common/base/exit_code.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/version.h"
#include "common/config/shard_names.h"
#include "common/fs/fs_error.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kReadPause = absl::Seconds(1);
constexpr char kSaveUnderWay[] = "the save that is under way, to go back to its checkpoint";

}  // namespace

JobSeries::JobSeries(JobPlan plan, JobOptions options, std::vector<PsControl*> shards,
                     Executor* executor, const Clock* clock, std::function<void()> on_ready,
                     StatusCallback on_end)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_ready_(std::move(on_ready)),
      on_end_(std::move(on_end)),
      disk_(executor, options_.waits_for_disk || plan_.job.checkpoint().folder().empty()),
      end_disk_(executor, options_.waits_for_disk) {
  options_.callers = &callers_;
  options_.lease_executor = executor_;
  plan_.mode == StartMode::kSucceed ? StandBy() : Add(plan_);
}

void JobSeries::Add(JobPlan plan) {
  if (job_ != nullptr) ended_.push_back({std::move(job_), &executors_.back()});
  executors_.emplace_back(executor_);
  options_.run = executors_.size();
  job_ = std::make_unique<JobController>(
      std::move(plan), options_, shards_, &executors_.back(), clock_, on_ready_,
      [this](absl::Status outcome) { OnEnd(std::move(outcome)); });
}

void JobSeries::FreeEnded() {
  std::erase_if(ended_, [](const EndedRun& run) {
    if (run.job->is_disk_busy()) return false;
    run.executor->Close();
    return true;
  });
}

void JobSeries::StandBy() {
  ObserverOptions options{.chiefs = plan_.cluster.chiefs(),
                          .step_shard = ShardNames(plan_.cluster.ps)[kStepShard],
                          .patience = options_.patience,
                          .begins = options_.chief_index == 0,
                          .is_done = !plan_.finished.empty()};
  WatchCommandRequest request;
  request.set_caller(options_.incarnation.value());
  request.set_version(kVersion);
  request.set_elastic(plan_.is_elastic());
  standby_ = std::make_unique<Standby>(
      std::move(options), std::move(request), shards_[kStepShard], executor_, clock_,
      Standby::Hooks{.take_command = [this] { TakeCommand(); },
                     .on_end = [this](absl::Status end) { End(std::move(end)); },
                     .find_end = [this](Callback<std::string> done) { FindEnd(std::move(done)); }});
  options_.may_take = [this](uint64_t term) { return standby_->MayTake(term); };
  options_.on_taken = [this](uint64_t term) { standby_->NoteTaken(term); };
}

void JobSeries::FindEnd(Callback<std::string> done) {
  auto found = std::make_shared<absl::StatusOr<std::string>>();
  end_disk_.Run(
      [found, root = plan_.job.checkpoint().folder(), last = plan_.max_steps] {
        *found = FindLastCheckpoint(root, last);
        return absl::OkStatus();
      },
      [found, done = std::move(done)](const absl::Status&) mutable { done(std::move(*found)); });
}

void JobSeries::Start() { standby_ != nullptr ? standby_->Start() : job()->Start(); }

void JobSeries::Tick() {
  FreeEnded();
  if (standby_ != nullptr) standby_->Tick();
  if (!IsStandingBy() && job() != nullptr) job()->Tick();
  if (next_read_.has_value() && !is_stopped_ && clock_->Monotonic() >= *next_read_) ReadPlan();
}

void JobSeries::SetCluster(const ClusterSpec& cluster) {
  plan_.cluster = cluster;
  if (standby_ != nullptr) standby_->SetNames(cluster.chiefs(), ShardNames(cluster.ps)[kStepShard]);
  if (job() != nullptr) job()->SetCluster(cluster);
}

void JobSeries::TakeCommand() {
  Add(plan_);
  job()->Start();
}

void JobSeries::OnEnd(absl::Status outcome) {
  const bool was_slower =
      standby_ != nullptr && absl::IsAborted(outcome) && !job()->has_commanded();
  if (was_slower && !is_stopped_) {
    job()->worker_calls()->Close(standby_->Refusal());
    job()->ReleaseFolder();
    return standby_->WaitAgain();
  }
  if (!is_stopped_ && job()->plans_afresh()) {
    log::Info(outcome.message());
    return PlanAgain("");
  }
  if (is_stopped_ || !job()->plan().goes_back_after(outcome)) return End(std::move(outcome));
  log::Warning(outcome.message());
  // What its remedy says is being done.
  const std::vector<absl::string_view> parts = absl::StrSplit(outcome.message(), ". Remedy: ");
  PlanAgain(std::string(parts[0]));
}

void JobSeries::PlanAgain(std::string lost) {
  is_between_ = true;
  lost_ = std::move(lost);
  planning_since_ = clock_->Monotonic();
  save_deadline_ = planning_since_ + std::min(options_.drain, options_.patience);
  executor_->Post([this] { ReadPlan(); });  // the job that ends has called
}

bool JobSeries::AwaitsSave() {
  const absl::Duration now = clock_->Monotonic();
  if (!job()->may_save() || now >= save_deadline_) return false;
  if (std::exchange(waiting_for_, kSaveUnderWay) != kSaveUnderWay) {
    log::Info(absl::StrCat("waiting for ", kSaveUnderWay));
  }
  next_read_ = now;
  return true;
}

void JobSeries::ReadPlan() {
  next_read_.reset();
  if (is_stopped_) {
    is_between_ = false;
    return;
  }
  if (AwaitsSave()) return;
  if (waiting_for_ == kSaveUnderWay) {
    waiting_for_.clear();
    planning_since_ = clock_->Monotonic();
  }
  // A save that ended later would delete the checkpoint that is chosen now.
  job()->AbandonFolder();
  auto next = std::make_shared<absl::StatusOr<JobPlan>>();
  disk_.Run(
      [next, plan = job()->plan(), lost = lost_, owed = job()->owed_owner()] {
        *next = GoBack(plan, lost, owed);
        return absl::OkStatus();
      },
      [this, next](const absl::Status&) { BeginNextPlan(std::move(*next)); });
}

bool JobSeries::MayReadAgain(const absl::Status& failure) {
  const absl::Duration now = clock_->Monotonic();
  if (!IsStorageFailure(failure) || now - planning_since_ >= options_.patience) return false;
  if (std::exchange(waiting_for_, std::string(failure.message())) != failure.message()) {
    log::Warning(absl::StrCat("the checkpoint to go back to cannot be read, tried again every ",
                              DurationText(kReadPause), ": ", failure.message()));
  }
  next_read_ = now + kReadPause;
  return true;
}

void JobSeries::BeginNextPlan(absl::StatusOr<JobPlan> plan) {
  if (!is_stopped_ && MayReadAgain(plan.status())) return;
  is_between_ = false;
  waiting_for_.clear();
  if (is_stopped_) return;                     // the job before ends, or has ended
  if (!plan.ok()) return Stop(plan.status());  // workers, ps and standbys wait for the next job
  plan->cluster = plan_.cluster;               // it may have changed while the checkpoint was read
  JobController* const before = job();
  Add(*std::move(plan));
  job()->Inherit(before);
  before->worker_calls()->Close(absl::UnavailableError("the job goes back to a checkpoint"));
  job()->Start();
}

void JobSeries::Stop(absl::Status why) {
  if (outcome_.has_value() || EndsStandby(why)) return;
  is_stopped_ = true;
  job()->Stop(std::move(why));
}

void JobSeries::Leave(absl::Status why) {
  if (EndsStandby(why)) return;
  // A large checkpoint takes minutes to read: nobody waits for that.
  is_stopped_ |= is_between_;
  job()->Leave(std::move(why));
}

bool JobSeries::EndsStandby(const absl::Status& why) {
  if (!IsStandingBy()) return false;
  standby_->Stop();
  End(why);
  return true;
}

void JobSeries::StopForOperator(Answer<StopReply> answer) {
  if (!HasCommand()) return answer(standby_->Refusal());
  if (outcome_.has_value()) return answer(DescribeEnd());
  if (stops_.size() >= limits::kMaxParkedStops) {
    return answer(absl::ResourceExhaustedError(
        "the job ends, and too many calls wait for that. Remedy: wait for the chief's exit"));
  }
  stops_.push_back(std::move(answer));
  Stop(WithExitCode(absl::CancelledError("an operator has stopped the job"),
                    ExitCode::kInterrupted));
}

void JobSeries::End(absl::Status outcome) {
  outcome_ = std::move(outcome);
  for (Answer<StopReply>& answer : std::exchange(stops_, {})) answer(DescribeEnd());
  on_end_(*outcome_);
}

StopReply JobSeries::DescribeEnd() const {
  StopReply reply = job_->DescribeProgress();
  reply.set_exit_code(static_cast<int>(ExitCodeFor(*outcome_)));
  reply.set_reason(std::string(outcome_->message()));
  return reply;
}

absl::StatusOr<WorkerCalls*> JobSeries::worker_calls() {
  if (!HasCommand()) return standby_->Refusal();
  return job()->worker_calls();
}

absl::StatusOr<WorkerCalls*> JobSeries::CallsFor(WorkerIndex worker, Incarnation incarnation) {
  absl::StatusOr<WorkerCalls*> calls = worker_calls();
  if (!calls.ok() || !(*calls)->knows_members()) {
    callers_.RecordCall(worker, incarnation, clock_->Monotonic());
  }
  return calls;
}

void JobSeries::GetStatus(Callback<ProcessStatus> done) {
  if (!HasCommand()) return standby_->GetStatus(std::move(done));
  ProcessStatus status;
  job()->FillStatus(&status);
  if (is_between_ && !waiting_for_.empty()) status.set_waiting_for(waiting_for_);
  done(std::move(status));
}

}  // namespace lockstep::chief
