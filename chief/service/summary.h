// The run in numbers, as --summary writes it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "chief/plan/plan.h"
#include "chief/service/run_record.h"

namespace lockstep::chief {

// JSON. Accuracy and loss of the test set are null where it was not evaluated, and accuracy for a
// regression; so are numbers that are not finite. docs/operations.md lists the fields.
std::string MakeSummary(const JobPlan& plan, const RunRecord& record);

// "step 120 of 600, loss 0.1234, 2345 examples/s, 12 s left".
std::string ProgressLine(const JobPlan& plan, const RunRecord& record, absl::Duration now);

// "evaluation at step 300: accuracy 98.06 %, loss 0.0712 (360 examples)".
std::string EvaluationLine(const JobPlan& plan, const EvaluationTotals& totals);

}  // namespace lockstep::chief
