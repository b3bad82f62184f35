#include "worker/step/progress.h"

#include <algorithm>

#include "common/base/check.h"

namespace lockstep::worker {

ProgressReport Combine(std::span<const Progress> replicas) {
  LOCKSTEP_CHECK(!replicas.empty());
  ProgressReport all = replicas[0].Report();
  for (const Progress& replica : replicas.subspan(1)) {
    const ProgressReport report = replica.Report();
    all.local_step = std::max(all.local_step, report.local_step);
    if (report.waiting_for.empty()) all.waiting_for.clear();
    all.examples += report.examples;
    all.accepted += report.accepted;
    all.stale += report.stale;
    all.seconds_computing += report.seconds_computing;
    all.seconds_waiting_for_data += report.seconds_waiting_for_data;
    all.seconds_training += report.seconds_training;
    all.loss += report.loss;
    all.done = all.done && report.done;
  }
  const double count = static_cast<double>(replicas.size());
  all.seconds_computing /= count;
  all.seconds_waiting_for_data /= count;
  all.seconds_training /= count;
  all.loss /= static_cast<float>(replicas.size());
  return all;
}

}  // namespace lockstep::worker
