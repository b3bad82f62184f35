#include "chief/job/log_lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chief/job/job_rules.h"
#include "chief/membership/describe.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"

namespace lockstep::chief {
namespace {

absl::Status PeersLost(absl::string_view what, absl::string_view remedy) {
  return WithExitCode(absl::UnavailableError(absl::StrCat(what, ". Remedy: ", remedy)),
                      ExitCode::kPeersLost);
}

}  // namespace

std::string ShardsReadyLine(const JobPlan& plan) {
  return absl::StrCat(CountText(plan.cluster.ps.size(), "ps is ready", "ps are ready"), ": ",
                      CountText(CountModelVariables(plan), "variable"), ", at most ",
                      BytesText(static_cast<uint64_t>(plan.balance.max_bytes)), " on one, ",
                      BytesText(static_cast<uint64_t>(plan.balance.mean_bytes)), " on average");
}

std::string AlreadyDoneLine(const JobPlan& plan) {
  return absl::StrCat("the job is done: ", plan.restore_from, " is of step ",
                      WithCommas(plan.start.value()), ", the job ends at step ",
                      WithCommas(plan.max_steps.value()));
}

std::string GoneBackWarning(const JobPlan& plan, bool takes_over) {
  return absl::StrCat(plan.lost, "; ",
                      takes_over                  ? "the job goes on where the ps are"
                      : plan.restore_from.empty() ? "every ps goes back to the initial values"
                                                  : "every ps goes back to " + plan.restore_from);
}

std::string DivergedStartWarning(const JobPlan& plan) {
  return absl::StrCat("the job goes on after it has diverged: ", plan.diverged);
}

std::string TakeoverLine(GlobalStep step, size_t workers) {
  return absl::StrCat("taking over at step ", WithCommas(step.value()), ", with ",
                      CountText(workers, "worker"));
}

std::string TrainingLine(const JobPlan& plan, const RunRecord& record, const Membership& membership,
                         absl::Duration now) {
  const std::string missing = DescribeMissing(membership, now);
  return absl::StrCat("training begins at step ", WithCommas(record.start.value()), " of ",
                      WithCommas(plan.max_steps.value()), " with ",
                      CountText(membership.Live().size(), "worker"), ", ",
                      ReplicasToAggregate(plan, record), " to aggregate",
                      missing.empty() ? "" : absl::StrCat("; ", missing));
}

absl::Status StartTimedOut(absl::Duration waited, absl::string_view waiting_for) {
  return absl::UnavailableError(absl::StrCat(
      "the job could not start within ", DurationText(waited), ", waiting for ", waiting_for,
      ". Remedy: start what is missing, or correct its address in the cluster spec; "
      "--start_timeout sets how long to wait"));
}

std::string ProgressLine(const JobPlan& plan, const RunRecord& record, absl::Duration now) {
  const double steps_per_second = record.rate.StepsPerSecond(now);
  std::string line =
      absl::StrCat("step ", WithCommas(record.global_step.value()), " of ",
                   WithCommas(plan.max_steps.value()), ", loss ", LossText(record.loss), ", ",
                   RateText(steps_per_second * ExamplesPerStep(plan, record)), " examples/s");
  if (steps_per_second > 0) {
    const int64_t left = plan.max_steps.value() - record.global_step.value();
    absl::StrAppend(&line, ", ", SecondsText(static_cast<double>(left) / steps_per_second),
                    " left");
  }
  return line;
}

std::string LossWarning(GlobalStep step) {
  return absl::StrCat("the loss of step ", WithCommas(step.value()),
                      " is not a finite number. Remedy: lower the learning rate, check the data");
}

std::string ReplicaViewLine(const ReplicaView& view) {
  const std::string workers = absl::StrJoin(
      view.workers, ", ",
      [](std::string* text, WorkerIndex worker) { absl::StrAppend(text, worker.value()); });
  return absl::StrCat("from step ", WithCommas(view.first.value()), " on ",
                      CountText(view.total(), "replica shares", "replicas share"),
                      " the global batch: ", view.total() == 1 ? "worker " : "workers ", workers,
                      " (view ", view.number, ")");
}

std::string ShrinkWarning(uint32_t required, uint32_t planned, absl::string_view missing) {
  return absl::StrCat("steps go on with ", required, " of ", CountText(planned, "gradient"),
                      missing.empty() ? "" : "; ", missing);
}

absl::Status TooFewWorkers(absl::string_view shortage, OnShortage policy) {
  return PeersLost(shortage, policy == OnShortage::kShrink
                                 ? "give the workers more data"
                                 : "start the cluster again, the chief with --resume, or set "
                                   "sync.quorum_policy to WAIT");
}

absl::Status TooFewWorkersFor(absl::Duration lacking, absl::string_view shortage) {
  return PeersLost(absl::StrCat("too few workers for ", DurationText(lacking),
                                " (--quorum_deadline); ", shortage),
                   "start the missing workers, and the chief with --resume");
}

std::string EvaluationLine(const JobPlan& plan, const EvaluationTotals& totals) {
  return absl::StrCat(
      "evaluation ", plan.job.evaluation().use_averages() ? "of the averages " : "", "at step ",
      WithCommas(totals.version.value()), ": ",
      plan.is_classifier ? absl::StrFormat("test accuracy %.2f %%, ", 100 * totals.accuracy) : "",
      "test loss ", LossText(totals.loss), ", on ", CountText(totals.examples, "example"));
}

std::string EvaluationSkippedWarning(GlobalStep version) {
  return absl::StrCat("no evaluation at step ", WithCommas(version.value()),
                      ": the one before is not done yet");
}

std::string EvaluationLostWarning(GlobalStep version, absl::string_view shard) {
  return absl::StrCat("no evaluation at step ", WithCommas(version.value()),
                      ": the version was lost with ", shard, ", whose copy had not kept it");
}

std::string SaveSkippedWarning(GlobalStep version) {
  return absl::StrCat("no checkpoint at step ", WithCommas(version.value()),
                      ": the one before is not written yet");
}

std::string SaveFailedWarning(GlobalStep version, const absl::Status& why) {
  return absl::StrCat("no checkpoint at step ", WithCommas(version.value()), ": ", why.message());
}

absl::Status LastSaveFailed(absl::Duration failing, const absl::Status& why) {
  return PeersLost(
      absl::StrCat("the last checkpoint could not be written for ", DurationText(failing), ": ",
                   why.message(), ". The ps keep the model"),
      "repair the checkpoint folder, then start the chief again: it saves the model "
      "and ends the job");
}

std::string EndLine(const absl::Status& outcome, Told told, bool goes_back) {
  if (absl::IsAborted(outcome)) {
    return absl::StrCat("this chief ends, another one has its place: ", outcome.message());
  }
  if (outcome.ok() || goes_back) return "";
  if (told == Told::kNobody) {
    return absl::StrCat("this chief ends and leaves ps and workers to the next one: ",
                        outcome.message());
  }
  return absl::IsCancelled(outcome) ? absl::StrCat("the job ends: ", outcome.message())
                                    : "the job ends with an error";
}

}  // namespace lockstep::chief
