#include "chief/leases/evaluation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::chief {
namespace {

constexpr int64_t kLeasesPerWorker = 4;
constexpr int64_t kMinRange = 256;
constexpr int64_t kMaxRange = 2048;

}  // namespace

Evaluation::Evaluation(GlobalStep version, int64_t examples, int64_t range, uint64_t first_lease,
                       absl::Duration patience)
    : version_(version), first_lease_(first_lease), next_lease_(first_lease) {
  LOCKSTEP_CHECK(examples > 0 && range > 0);
  for (int64_t begin = 0; begin < examples; begin += range) {
    ranges_.push_back(
        {.begin = begin, .end = std::min(begin + range, examples), .patience = patience});
  }
  open_ = static_cast<int64_t>(ranges_.size());
}

void Evaluation::Assign(absl::Span<const WorkerIndex> live, absl::Duration now) {
  const auto is_live = [&](WorkerIndex worker) {
    return std::find(live.begin(), live.end(), worker) != live.end();
  };
  for (Range& range : ranges_) {
    if (range.holder.has_value() && !is_live(*range.holder)) range.holder.reset();
  }
  for (WorkerIndex worker : live) {
    if (LeaseOf(worker).has_value()) continue;
    Range* range = PickFor(now);
    if (range == nullptr) return;
    Give(range, worker, now);
  }
}

// A range that nobody holds, or else the one that is overdue for longest.
Evaluation::Range* Evaluation::PickFor(absl::Duration now) {
  Range* overdue = nullptr;
  for (Range& range : ranges_) {
    if (range.result.has_value()) continue;
    if (!range.holder.has_value()) return &range;
    if (now - range.since <= range.patience) continue;
    if (overdue == nullptr || range.since < overdue->since) overdue = &range;
  }
  if (overdue != nullptr) overdue->patience *= 2;
  return overdue;
}

void Evaluation::Give(Range* range, WorkerIndex worker, absl::Duration now) {
  range->holder = worker;
  range->lease = next_lease_++;
  range->since = now;
  range_of_lease_.push_back(range - ranges_.data());
}

std::optional<Lease> Evaluation::LeaseOf(WorkerIndex worker) const {
  for (const Range& range : ranges_) {
    if (range.holder == worker) {
      return Lease{.id = range.lease, .version = version_, .begin = range.begin, .end = range.end};
    }
  }
  return std::nullopt;
}

absl::Status Evaluation::Report(const LeaseResult& result) {
  if (result.lease < first_lease_ || result.lease >= next_lease_) return absl::OkStatus();
  Range& range = ranges_[range_of_lease_[result.lease - first_lease_]];
  const int64_t expected = range.end - range.begin;
  if (result.examples != expected || result.correct < 0 || result.correct > expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "evaluation lease ", result.lease, " has ", expected, " examples, the result says ",
        result.correct, " correct of ", result.examples));
  }
  if (range.result.has_value()) return absl::OkStatus();
  range.result = result;
  range.holder.reset();
  --open_;
  return absl::OkStatus();
}

EvaluationTotals Evaluation::Totals() const {
  LOCKSTEP_CHECK(done());
  EvaluationTotals totals{.version = version_};
  int64_t correct = 0;
  double loss_sum = 0;
  for (const Range& range : ranges_) {
    totals.examples += range.result->examples;
    correct += range.result->correct;
    loss_sum += range.result->loss_sum;
  }
  totals.accuracy = static_cast<double>(correct) / static_cast<double>(totals.examples);
  totals.loss = loss_sum / static_cast<double>(totals.examples);
  return totals;
}

int64_t RangeSize(int64_t examples, int64_t workers, int64_t batch) {
  if (batch >= examples) return examples;
  const int64_t leases = std::max<int64_t>(1, workers) * kLeasesPerWorker;
  const int64_t fair = (examples + leases - 1) / leases;
  const int64_t wanted = std::clamp(fair, kMinRange, kMaxRange);
  const int64_t whole = std::max<int64_t>(1, batch);
  return (wanted + whole - 1) / whole * whole;
}

}  // namespace lockstep::chief
