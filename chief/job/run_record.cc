#include "chief/job/run_record.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep::chief {

void RunRecord::GoOnFrom(const RunRecord& before, std::string restored) {
  warnings = before.warnings;
  save_error = before.save_error;
  // Not the last one that was saved: that may have become unreadable.
  if (!before.checkpoint.empty()) checkpoint = std::move(restored);
  std::ranges::copy_if(before.evaluations, std::back_inserter(evaluations),
                       [this](const EvaluationTotals& totals) { return totals.version <= start; });
}

void RunRecord::AddEvaluation(const EvaluationTotals& totals) {
  const auto same = std::ranges::find(evaluations, totals.version, &EvaluationTotals::version);
  if (same == evaluations.end()) return evaluations.push_back(totals);
  *same = totals;
}

}  // namespace lockstep::chief
