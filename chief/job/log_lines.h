// Texts of log lines, warnings and errors for the events of a job. Pure.
//
// StatusReporter has the texts for the state of a job.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/job/phase.h"
#include "chief/job/run_record.h"
#include "chief/membership/membership.h"
#include "chief/plan/plan.h"

namespace lockstep::chief {

// Start.
std::string ShardsReadyLine(const JobPlan& plan);
std::string AlreadyDoneLine(const JobPlan& plan);
std::string GoneBackWarning(const JobPlan& plan, bool takes_over);
std::string DivergedStartWarning(const JobPlan& plan);
std::string TakeoverLine(GlobalStep step, size_t workers);
std::string TrainingLine(const JobPlan& plan, const RunRecord& record, const Membership& membership,
                         absl::Duration now);
absl::Status StartTimedOut(absl::Duration waited, absl::string_view waiting_for);

// Training.
// "step 1,200 of 6,000, loss 0.1234, 2,345 examples/s, 12 s left".
std::string ProgressLine(const JobPlan& plan, const RunRecord& record, absl::Duration now);
std::string LossWarning(GlobalStep step);
std::string ShrinkWarning(uint32_t required, uint32_t planned, absl::string_view missing);
// "from step 40 on 2 replicas share the global batch: workers 1 and 2 (view 3)".
std::string ReplicaViewLine(const ReplicaView& view);
// The error that ends the job. `shortage` names the missing workers. PeersLost.
absl::Status TooFewWorkers(absl::string_view shortage, OnShortage policy);
absl::Status TooFewWorkersFor(absl::Duration lacking, absl::string_view shortage);

// Evaluations and checkpoints.
// "evaluation at step 300: test accuracy 98.06 %, test loss 0.0712, on 360 examples"; a regression
// has no accuracy, and averages are named.
std::string EvaluationLine(const JobPlan& plan, const EvaluationTotals& totals);
std::string EvaluationSkippedWarning(GlobalStep version);
std::string EvaluationLostWarning(GlobalStep version, absl::string_view shard);
std::string SaveSkippedWarning(GlobalStep version);
std::string SaveFailedWarning(GlobalStep version, const absl::Status& why);
absl::Status LastSaveFailed(absl::Duration failing, const absl::Status& why);

// End. Empty: the outcome has the text, or the job goes back to a checkpoint.
std::string EndLine(const absl::Status& outcome, Told told, bool goes_back);

}  // namespace lockstep::chief
