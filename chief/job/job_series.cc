#include "chief/job/job_series.h"

#include <utility>

#include "absl/strings/str_split.h"
#include "common/log/log.h"

namespace lockstep::chief {

JobSeries::JobSeries(JobPlan plan, JobOptions options, std::vector<PsControl*> shards,
                     Executor* executor, const Clock* clock, std::function<void()> on_ready,
                     StatusCallback on_end)
    : options_(options),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_ready_(std::move(on_ready)),
      on_end_(std::move(on_end)) {
  Add(std::move(plan));
}

JobSeries::~JobSeries() {
  if (disk_.joinable()) disk_.join();
}

void JobSeries::Add(JobPlan plan) {
  jobs_.push_back(std::make_unique<JobController>(
      std::move(plan), options_, shards_, executor_, clock_, on_ready_,
      [this](absl::Status outcome) { OnEnd(std::move(outcome)); }));
}

void JobSeries::OnEnd(absl::Status outcome) {
  if (!job().plan().goes_back_after(outcome)) return on_end_(std::move(outcome));
  log::Warning(outcome.message());
  is_between_ = true;
  if (disk_.joinable()) disk_.join();
  // What its remedy says is being done.
  const std::vector<absl::string_view> parts = absl::StrSplit(outcome.message(), ". Remedy: ");
  disk_ = std::thread([this, plan = job().plan(), lost = std::string(parts[0])] {
    executor_->Post([this, next = GoBack(plan, lost)]() mutable { GoOn(std::move(next)); });
  });
}

void JobSeries::GoOn(absl::StatusOr<JobPlan> plan) {
  is_between_ = false;
  if (stop_.has_value()) return on_end_(*stop_);
  if (!plan.ok()) return on_end_(plan.status());
  JobController& before = job();
  Add(*std::move(plan));
  job().Inherit(&before);
  before.worker_calls()->Close(absl::UnavailableError("the job goes back to a checkpoint"));
  job().Start();
}

void JobSeries::Stop(absl::Status why) {
  if (!Defer(why)) job().Stop(std::move(why));
}

void JobSeries::Leave(absl::Status why) {
  if (!Defer(why)) job().Leave(std::move(why));
}

bool JobSeries::Defer(const absl::Status& stop) {
  if (is_between_) stop_ = stop;
  return is_between_;
}

}  // namespace lockstep::chief
