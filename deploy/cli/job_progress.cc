#include "deploy/cli/job_progress.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/quantity.h"
#include "deploy/cli/state_text.h"

namespace lockstep::deploy {
namespace {

std::string EvaluationLine(const EvaluationSummary& evaluation) {
  const std::string values = evaluation.averages() ? " (averages)" : "";
  const std::string loss = LossText(evaluation.loss());
  return absl::StrCat("step ", WithCommas(evaluation.step()), ": ",
                      evaluation.regression()
                          ? absl::StrCat("test loss", values, " ", loss)
                          : absl::StrCat("test accuracy", values, " ",
                                         PercentText(evaluation.accuracy()), ", loss ", loss),
                      ", on ", CountText(evaluation.examples(), "example"));
}

template <typename Evaluations>
std::vector<std::string> After(const Evaluations& evaluations, int64_t* last) {
  std::vector<std::string> lines;
  for (const EvaluationSummary& evaluation : evaluations) {
    if (evaluation.step() <= *last) continue;
    *last = evaluation.step();
    lines.push_back(EvaluationLine(evaluation));
  }
  return lines;
}

template <typename Warnings>
std::vector<std::string> After(const Warnings& warnings, uint64_t* last) {
  std::vector<std::string> lines;
  for (const JobWarning& warning : warnings) {
    if (warning.number() <= *last) continue;
    *last = warning.number();
    lines.push_back("warning: " + Shown(warning.text()));
  }
  return lines;
}

}  // namespace

std::vector<std::string> JobProgress::NewEvaluations(const ProcessStatus& chief) {
  return After(chief.job().evaluations(), &last_evaluation_);
}

std::vector<std::string> JobProgress::NewEvaluations(const Summary& summary) {
  return After(summary.evaluations, &last_evaluation_);
}

std::vector<std::string> JobProgress::NewWarnings(const ProcessStatus& chief) {
  // Each start of a chief counts its warnings anew.
  if (std::exchange(chief_, chief.incarnation()) != chief.incarnation()) last_warning_ = 0;
  return After(chief.job().warnings(), &last_warning_);
}

std::vector<std::string> JobProgress::NewWarnings(const Summary& summary) {
  return After(summary.warnings, &last_warning_);
}

std::string JobProgress::Line(const ProcessStatus& chief) {
  const JobStatus& job = chief.job();
  if (job.max_steps() == 0) return StateText(chief);
  std::string line =
      absl::StrCat("step ", WithCommas(chief.global_step()), "/", WithCommas(job.max_steps()));
  if (chief.global_step() > job.start_step()) {
    absl::StrAppend(&line, "  loss ", LossText(job.loss()));
    if (job.examples_per_second() > 0) {
      absl::StrAppend(&line, "  ", RateText(job.examples_per_second()), " examples/s");
    }
  }
  if (chief.state() != "training") {
    absl::StrAppend(&line, "  ", StateText(chief));
  } else if (job.steps_per_second() > 0) {
    absl::StrAppend(&line, "  ETA ", SecondsText(job.eta_seconds()));
  }
  return line;
}

}  // namespace lockstep::deploy
