// Evaluations one after another. Pure: time is an argument. Not thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "chief/leases/evaluation.h"

namespace lockstep::chief {

class EvaluationQueue {
 public:
  // As the arguments of Evaluation.
  EvaluationQueue(int64_t examples, int64_t range, absl::Duration patience,
                  int64_t labels_per_example = 1);

  // Lease ids count from here, in place of 1. Before the first evaluation (CHECK).
  void CountLeasesFrom(uint64_t first);

  // Whether version `version` will be evaluated: now, or with `must` after the running one. False:
  // the running one is not done yet, and this one is left out.
  bool Begin(GlobalStep version, bool must);

  void Assign(absl::Span<const WorkerIndex> live, absl::Duration now);
  void AssignTo(WorkerIndex worker, absl::Duration now);
  std::optional<Lease> LeaseOf(WorkerIndex worker) const;
  absl::Status Report(WorkerIndex worker, const LeaseResult& result);

  // The evaluation that has ended, once; the next one begins.
  std::optional<EvaluationTotals> TakeFinished();
  // Ends the running evaluation, which there must be (CHECK), without a result: its version can no
  // longer be read. The next one begins.
  void Abandon();

  const Evaluation* running() const { return running_.has_value() ? &*running_ : nullptr; }

 private:
  void Start(GlobalStep version);
  void StartNext();

  const int64_t examples_;
  const int64_t range_;
  const absl::Duration patience_;
  const int64_t labels_per_example_;
  uint64_t next_lease_ = 1;
  std::optional<Evaluation> running_;
  std::deque<GlobalStep> waiting_;
};

}  // namespace lockstep::chief
