// The rules of JobDef.losses that need no model.
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "common/base/annotate.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/config/job_fields.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckName(const std::string& name, absl::flat_hash_set<std::string>* names) {
  bool is_sound = !name.empty() && name.size() <= limits::kMaxNameBytes;
  for (const char c : name) is_sound = is_sound && (absl::ascii_isalnum(c) || c == '_');
  if (!is_sound) {
    return Broken(
        "losses.name",
        absl::StrCat("expected 1 to ", limits::kMaxNameBytes, " letters, digits or '_', got \"",
                     absl::CHexEscape(name.substr(0, limits::kMaxNameBytes)), "\""),
        "write name: \"generator\" or the like");
  }
  if (names->insert(name).second) return absl::OkStatus();
  return Broken("losses.name", absl::StrCat("two losses are called \"", name, "\""),
                "give each loss a name of its own");
}

// An optimizer is checked as that of a job is.
absl::Status CheckOptimizerOf(const LossDef& loss) {
  if (!loss.has_optimizer()) {
    return Broken("optimizer", "it is missing",
                  "write optimizer { rmsprop {} learning_rate { base: 0.01 } } or another one");
  }
  JobDef job;
  *job.mutable_optimizer() = loss.optimizer();
  LOCKSTEP_RETURN_IF_ERROR(CheckJobFields(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckOptimizer(loss.optimizer()));
  if (!loss.optimizer().has_variable_averages()) return absl::OkStatus();
  return Broken("optimizer.variable_averages", "a job with several losses keeps no averages",
                "remove it");
}

absl::Status CheckLoss(const LossDef& loss) {
  if (loss.loss().empty()) {
    return Broken("loss", "it is missing", "name a loss layer of the model, loss: \"g_loss\"");
  }
  if (loss.trains().empty()) {
    return Broken("trains", "it is missing",
                  "write how the names of the layers begin that it trains, trains: \"g_\"");
  }
  if (loss.steps() < 0 || loss.steps() > limits::kMaxStep) {
    return OutOfRange("steps", absl::StrCat("1 to ", limits::kMaxStep), loss.steps());
  }
  return CheckOptimizerOf(loss);
}

absl::Status CheckBesides(const JobDef& job) {
  if (job.has_optimizer()) {
    return Broken("optimizer", "losses have optimizers of their own", "remove it, or losses");
  }
  if (job.sync().has_asynchronous()) {
    return Broken("sync.asynchronous",
                  "losses take turns, which the steps of an asynchronous job cannot",
                  "remove it, or losses");
  }
  if (job.strategy().has_replicated()) {
    return Broken("strategy.replicated", "the towers reduce every variable in every step",
                  "remove it, or losses");
  }
  if (job.evaluation().every_steps() > 0 || job.evaluation().use_averages()) {
    return Broken(
        job.evaluation().every_steps() > 0 ? "evaluation.every_steps" : "evaluation.use_averages",
        "a job with several losses is not evaluated", "remove it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLosses(const JobDef& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckBesides(job));
  absl::flat_hash_set<std::string> names;
  int64_t cycle = 0;
  for (const LossDef& loss : job.losses()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckName(loss.name(), &names));
    const absl::Status sound = CheckLoss(loss);
    if (!sound.ok()) return Annotate(sound, absl::StrCat("losses \"", loss.name(), "\""));
    cycle += loss.steps();
    if (cycle <= limits::kMaxStep) continue;
    return OutOfRange("losses.steps", absl::StrCat("at most ", limits::kMaxStep, " together"),
                      cycle);
  }
  return absl::OkStatus();
}

void FillLosses(JobDef* job) {
  for (LossDef& loss : *job->mutable_losses()) {
    if (loss.steps() == 0) loss.set_steps(1);
    JobDef of;
    of.mutable_optimizer()->Swap(loss.mutable_optimizer());
    FillJobFields(&of);
    loss.mutable_optimizer()->Swap(of.mutable_optimizer());
  }
  if (job->losses().empty()) return;
  job->clear_optimizer();  // which has defaults, too
  job->mutable_evaluation()->set_not_at_end(true);
}

}  // namespace lockstep
