// The run in numbers, as --summary writes it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "chief/plan/plan.h"
#include "chief/service/run_record.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

// One JSON object:
//   steps, start_step           the global step reached, and the one that this run began at
//   train_seconds               from the first grant to the last commit
//   examples_per_second         of those whose gradients were applied
//   accepted, stale             (replica, variable) pairs
//   test_accuracy, test_loss    of the last evaluation
//   evaluations                 of every one: step, examples, accuracy, loss, averages
//   checkpoint                  folder of the last one
//   losses                      one per step from start_step on, where they are recorded
// null: there is none, an accuracy of a regression, a number that is not finite.
std::string MakeSummary(const JobPlan& plan, const RunRecord& record);

// "step 120 of 600, loss 0.1234, 2345 examples/s, 12 s left".
std::string ProgressLine(const JobPlan& plan, const RunRecord& record, absl::Duration now);

// One evaluation as the status has it: an accuracy only of a classifier.
EvaluationSummary ToStatus(const JobPlan& plan, const EvaluationTotals& totals);

// "evaluation at step 300: test accuracy 98.06 %, test loss 0.0712, on 360 examples"; a regression
// has no accuracy, and averages are named.
std::string EvaluationLine(const JobPlan& plan, const EvaluationTotals& totals);

}  // namespace lockstep::chief
