// The run in numbers, as --summary writes it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "chief/plan/plan.h"
#include "chief/service/run_record.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

// Of what each gradient of a worker is counted: the trained variables, parts of split ones by
// themselves, and the loss.
uint32_t VariablesPerGradient(const JobPlan& plan);

// One JSON object; docs/status.md explains its fields. null: there is none, an accuracy of a
// regression, a number that is not finite.
std::string MakeSummary(const JobPlan& plan, const RunRecord& record);

// "step 1,200 of 6,000, loss 0.1234, 2,345 examples/s, 12 s left".
std::string ProgressLine(const JobPlan& plan, const RunRecord& record, absl::Duration now);

// One evaluation as the status has it: an accuracy only of a classifier.
EvaluationSummary ToStatus(const JobPlan& plan, const EvaluationTotals& totals);

// As the step shard keeps it for the next chief, and back.
EvaluatedVersion ToKept(const EvaluationTotals& totals);
EvaluationTotals FromKept(const EvaluatedVersion& kept);

// "evaluation at step 300: test accuracy 98.06 %, test loss 0.0712, on 360 examples"; a regression
// has no accuracy, and averages are named.
std::string EvaluationLine(const JobPlan& plan, const EvaluationTotals& totals);

}  // namespace lockstep::chief
