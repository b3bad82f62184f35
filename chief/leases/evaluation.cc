#include "chief/leases/evaluation.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::chief {
namespace {

constexpr int64_t kLeasesPerWorker = 4;
constexpr int64_t kMinRange = 256;
constexpr int64_t kMaxRange = 2048;

}  // namespace

Evaluation::Evaluation(GlobalStep version, int64_t examples, int64_t range, uint64_t first_lease,
                       absl::Duration patience, int64_t labels_per_example)
    : version_(version),
      labels_per_example_(labels_per_example),
      first_lease_(first_lease),
      next_lease_(first_lease) {
  LOCKSTEP_CHECK(examples > 0 && range > 0 && labels_per_example > 0);
  for (int64_t begin = 0; begin < examples; begin += range) {
    ranges_.push_back(
        {.begin = begin, .end = std::min(begin + range, examples), .patience = patience});
    free_.insert(ranges_.size() - 1);
  }
  open_ = static_cast<int64_t>(ranges_.size());
}

void Evaluation::Assign(absl::Span<const WorkerIndex> live, absl::Duration now) {
  const absl::flat_hash_set<WorkerIndex> is_live(live.begin(), live.end());
  for (auto held = holds_.begin(); held != holds_.end();) {
    const auto [worker, range] = *held;
    if (is_live.contains(worker)) {
      ++held;
      continue;
    }
    ranges_[range].holder.reset();
    free_.insert(range);
    holds_.erase(held++);
  }
  for (WorkerIndex worker : live) {
    if (holds_.contains(worker)) continue;
    const std::optional<size_t> range = Pick(now);
    if (!range.has_value()) return;
    Give(*range, worker, now);
  }
}

void Evaluation::AssignTo(WorkerIndex worker, absl::Duration now) {
  if (holds_.contains(worker)) return;
  if (const std::optional<size_t> range = Pick(now)) Give(*range, worker, now);
}

// A range that nobody holds, or else the one that is overdue for longest.
std::optional<size_t> Evaluation::Pick(absl::Duration now) {
  if (!free_.empty()) return *free_.begin();
  std::optional<size_t> overdue;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& range = ranges_[i];
    if (range.result.has_value() || now - range.since <= range.patience) continue;
    if (!overdue.has_value() || range.since < ranges_[*overdue].since) overdue = i;
  }
  if (overdue.has_value()) ranges_[*overdue].patience *= 2;
  return overdue;
}

void Evaluation::Give(size_t index, WorkerIndex worker, absl::Duration now) {
  Range& range = ranges_[index];
  if (range.holder.has_value()) holds_.erase(*range.holder);
  free_.erase(index);
  holds_[worker] = index;
  range.holder = worker;
  range.lease = next_lease_++;
  range.since = now;
  given_.push_back({index, worker});
}

std::optional<Lease> Evaluation::LeaseOf(WorkerIndex worker) const {
  const auto held = holds_.find(worker);
  if (held == holds_.end()) return std::nullopt;
  const Range& range = ranges_[held->second];
  return Lease{.id = range.lease, .version = version_, .begin = range.begin, .end = range.end};
}

absl::Status Evaluation::Report(WorkerIndex worker, const LeaseResult& result) {
  if (result.lease < first_lease_ || result.lease >= next_lease_) return absl::OkStatus();
  const auto [index, holder] = given_[result.lease - first_lease_];
  if (holder != worker) return absl::OkStatus();
  Range& range = ranges_[index];
  const int64_t expected = range.end - range.begin;
  if (result.examples != expected || result.correct < 0 ||
      result.correct > expected * labels_per_example_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "evaluation lease ", result.lease, " has ", expected, " examples, the result says ",
        result.correct, " correct of ", result.examples));
  }
  if (range.result.has_value()) return absl::OkStatus();
  range.result = result;
  if (range.holder.has_value()) holds_.erase(*range.holder);
  range.holder.reset();
  free_.erase(index);
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
  const double labels = static_cast<double>(totals.examples * labels_per_example_);
  totals.accuracy = static_cast<double>(correct) / labels;
  totals.loss = loss_sum / labels;
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
