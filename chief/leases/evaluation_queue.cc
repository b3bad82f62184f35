#include "chief/leases/evaluation_queue.h"

#include "common/base/check.h"

namespace lockstep::chief {

EvaluationQueue::EvaluationQueue(int64_t examples, int64_t range, absl::Duration patience,
                                 int64_t labels_per_example)
    : examples_(examples),
      range_(range),
      patience_(patience),
      labels_per_example_(labels_per_example) {}

void EvaluationQueue::CountLeasesFrom(uint64_t first) {
  LOCKSTEP_CHECK(!running_.has_value());
  next_lease_ = first;
}

bool EvaluationQueue::Begin(GlobalStep version, bool must) {
  if (!running_.has_value()) {
    Start(version);
    return true;
  }
  if (must) waiting_.push_back(version);
  return must;
}

void EvaluationQueue::Start(GlobalStep version) {
  running_.emplace(version, examples_, range_, next_lease_, patience_, labels_per_example_);
}

void EvaluationQueue::Assign(absl::Span<const WorkerIndex> live, absl::Duration now) {
  if (running_.has_value()) running_->Assign(live, now);
}

void EvaluationQueue::AssignTo(WorkerIndex worker, absl::Duration now) {
  if (running_.has_value()) running_->AssignTo(worker, now);
}

std::optional<Lease> EvaluationQueue::LeaseOf(WorkerIndex worker) const {
  return running_.has_value() ? running_->LeaseOf(worker) : std::nullopt;
}

absl::Status EvaluationQueue::Report(WorkerIndex worker, const LeaseResult& result) {
  return running_.has_value() ? running_->Report(worker, result) : absl::OkStatus();
}

std::optional<EvaluationTotals> EvaluationQueue::TakeFinished() {
  if (!running_.has_value() || !running_->done()) return std::nullopt;
  const EvaluationTotals totals = running_->Totals();
  StartNext();
  return totals;
}

void EvaluationQueue::Abandon() {
  LOCKSTEP_CHECK(running_.has_value());
  StartNext();
}

void EvaluationQueue::StartNext() {
  next_lease_ = running_->next_lease();
  running_.reset();
  if (waiting_.empty()) return;
  Start(waiting_.front());
  waiting_.pop_front();
}

}  // namespace lockstep::chief
