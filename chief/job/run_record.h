// RunRecord holds the results of this run so far for the progress line, the status and the summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/job/job_warnings.h"
#include "chief/leases/evaluation.h"
#include "chief/sync/rate.h"
#include "common/base/ids.h"
#include "common/replicas/replica_view.h"

namespace lockstep::chief {

struct RunRecord {
  // The job goes back to a checkpoint, and this run continues from it at `start`. Copies the facts
  // of the run before that still hold. Evaluations of later versions are made again.
  void GoOnFrom(const RunRecord& before, std::string restored);
  // Replaces an evaluation of the same version, if there is one.
  void AddEvaluation(const EvaluationTotals& totals);

  GlobalStep start;
  GlobalStep global_step;
  uint32_t required = 1;  // gradients that a step needs now: fewer than the job says after SHRINK
  float loss = 0;         // of the last step that is known
  std::vector<float> losses;  // of each step from `start` on, where they are recorded; NaN: unknown
  // As JobState::real_clock.
  Rate rate;
  absl::Duration began;  // the first grant
  absl::Duration last_commit;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  std::vector<EvaluationTotals> evaluations;  // as they ended
  std::string checkpoint;                     // the last one; empty: none yet
  std::string save_error;                     // of the newest save; empty: it succeeded
  std::string restored_from;  // the checkpoint that this run goes on from; empty: none
  JobWarnings warnings;
  std::vector<ReplicaView> replica_views;  // of an elastic job, in order
};

}  // namespace lockstep::chief
