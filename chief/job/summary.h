// The run in numbers, as --summary writes it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "chief/job/run_record.h"
#include "chief/plan/plan.h"
#include "proto/ps.pb.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

// Of what each gradient of a worker is counted: the trained variables, parts of split ones by
// themselves, and the loss.
uint32_t VariablesPerGradient(const JobPlan& plan);

// One JSON object; docs/status.md explains its fields. null: there is none, an accuracy of a
// regression, a number that is not finite.
std::string MakeSummary(const JobPlan& plan, const RunRecord& record);

// One evaluation as the status has it: an accuracy only of a classifier.
EvaluationSummary ToStatus(const JobPlan& plan, const EvaluationTotals& totals);

// As the step shard keeps it for the next chief, and back.
EvaluatedVersion ToKept(const EvaluationTotals& totals);
EvaluationTotals FromKept(const EvaluatedVersion& kept);

}  // namespace lockstep::chief
