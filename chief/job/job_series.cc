#include "chief/job/job_series.h"

#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"
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
  if (is_stopped_ || !job().plan().goes_back_after(outcome)) return End(std::move(outcome));
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
  if (is_stopped_) return;  // the job before ends, or has ended
  if (leave_.has_value()) return End(*leave_);
  if (!plan.ok()) return End(plan.status());
  JobController& before = job();
  Add(*std::move(plan));
  job().Inherit(&before);
  before.worker_calls()->Close(absl::UnavailableError("the job goes back to a checkpoint"));
  job().Start();
}

void JobSeries::Stop(absl::Status why) {
  is_stopped_ = true;
  job().Stop(std::move(why));
}

void JobSeries::Leave(absl::Status why) {
  if (!is_between_) return job().Leave(std::move(why));
  if (!is_stopped_) leave_ = std::move(why);
}

void JobSeries::StopForOperator(Answer<StopReply> answer) {
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
  StopReply reply = jobs_.back()->DescribeProgress();
  reply.set_exit_code(static_cast<int>(ExitCodeFor(*outcome_)));
  reply.set_reason(std::string(outcome_->message()));
  return reply;
}

}  // namespace lockstep::chief
