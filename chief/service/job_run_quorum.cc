// What a job run does about workers that are lacking.
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/membership/describe.h"
#include "chief/service/job_run.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

// In a row, that find everybody waiting.
constexpr int kCertainProbes = 2;

absl::Status TooFewWorkers(absl::string_view what, absl::string_view remedy) {
  return WithExitCode(absl::UnavailableError(absl::StrCat(what, ". Remedy: ", remedy)),
                      ExitCode::kPeersLost);
}

}  // namespace

ReplicaCounts JobRun::CountReplicas(GlobalStep step) {
  // A shard may not know yet who is gone: it would count late pushes of theirs beside fewer others.
  // So a worker counts from when all shards have it as a member until none has.
  const bool shrinks = quorum_rules_.on_shortage == OnShortage::kShrink;
  ReplicaCounts counts =
      membership_.CountFor(step, shrinks ? views_->confirmed() : membership_.Live());
  counts.stalled = stall_.probes >= kCertainProbes && stall_.step == step &&
                   stall_.membership == membership_.changes();
  return counts;
}

// Comes after the successors of those whose leases ended have been let in.
void JobRun::WatchQuorum() {
  if (plan_.asynchronous()) return WatchShortage(CountReplicas(record_.global_step).able == 0);
  const bool shrinks = quorum_rules_.on_shortage == OnShortage::kShrink;
  const GlobalStep step = record_.global_step;
  const Quorum quorum = EvaluateQuorum(quorum_rules_, CountReplicas(step), step);
  const Quorum before = std::exchange(quorum_, quorum);
  const absl::Duration now = clock_->Monotonic();
  if (quorum.must_end) {
    const char* remedy = shrinks ? "give the workers more data"
                                 : "start the cluster again, the chief with --resume, or set "
                                   "sync.quorum_policy to WAIT";
    return EndAfterSaving(TooFewWorkers(DescribeShortage(now), remedy), Told::kEverybody);
  }
  if (shrinks && quorum.required != steps_->required()) {
    const std::string missing = DescribeMissing(membership_, now);
    Warn(absl::StrCat("steps go on with ", quorum.required, " of ",
                      CountText(plan_.required(), "gradient"), missing.empty() ? "" : "; ",
                      missing));
    steps_->SetRequired(quorum.required);
  } else if (quorum.is_short && !before.is_short) {
    log::Warning(absl::StrCat("waiting for ", DescribeShortage(now)));
  }
  WatchShortage(quorum.possible < steps_->required());
}

// The last version is evaluated by any worker that lives, under every policy.
void JobRun::WatchEvaluationQuorum() {
  const bool is_short =
      evaluations_.has_value() && evaluations_->running() != nullptr && membership_.Live().empty();
  if (is_short && quorum_rules_.on_shortage == OnShortage::kAbort && !IsSaving()) {
    return EndAfterSaving(TooFewWorkers(DescribeShortage(clock_->Monotonic()),
                                        "start the cluster again, the chief with --resume, or set "
                                        "sync.quorum_policy to WAIT"),
                          Told::kEverybody);
  }
  WatchShortage(is_short);
}

std::string JobRun::DescribeShortage(absl::Duration now) const {
  const std::string missing = DescribeMissing(membership_, now);
  const absl::string_view separator = missing.empty() ? "" : "; ";
  if (phase_ != Phase::kCompleting) {
    return absl::StrCat("step ", WithCommas(record_.global_step.value()), ": ", missing, separator,
                        DescribeNeed());
  }
  return absl::StrCat("the evaluation of step ",
                      WithCommas(evaluations_->running()->version().value()), ": ", missing,
                      separator, "it needs a worker, and none lives");
}

void JobRun::WatchShortage(bool is_short) {
  if (!is_short) return short_since_.reset();
  const absl::Duration now = clock_->Monotonic();
  if (!short_since_.has_value()) short_since_ = now;
  if (now - *short_since_ < options_.quorum_deadline) return;
  EndAfterSaving(
      TooFewWorkers(absl::StrCat("too few workers for ", DurationText(now - *short_since_),
                                 " (--quorum_deadline); ", DescribeShortage(now)),
                    "start the missing workers, and the chief with --resume"),
      Told::kEverybody);
}

}  // namespace lockstep::chief
