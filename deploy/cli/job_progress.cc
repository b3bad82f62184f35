#include "deploy/cli/job_progress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/quantity.h"
#include "deploy/cli/state_text.h"

namespace lockstep::deploy {

std::vector<std::string> JobProgress::News(const ProcessStatus& chief) {
  std::vector<std::string> lines;
  for (const EvaluationSummary& evaluation : chief.job().evaluations()) {
    if (evaluation.step() <= last_evaluation_) continue;
    last_evaluation_ = evaluation.step();
    lines.push_back(absl::StrFormat("step %d: test accuracy %.2f %%, loss %.4f, on %s examples",
                                    evaluation.step(), 100 * evaluation.accuracy(),
                                    evaluation.loss(), WithCommas(evaluation.examples())));
  }
  return lines;
}

std::string JobProgress::Line(const ProcessStatus& chief) {
  const JobStatus& job = chief.job();
  if (job.max_steps() == 0) return StateText(chief);
  std::string line =
      absl::StrCat("step ", WithCommas(chief.global_step()), "/", WithCommas(job.max_steps()));
  if (chief.global_step() > 0) {
    absl::StrAppend(&line, absl::StrFormat("  loss %.4f  ", job.loss()),
                    RateText(job.examples_per_second()), " examples/s");
  }
  if (chief.state() != "training") {
    absl::StrAppend(&line, "  ", StateText(chief));
  } else if (job.steps_per_second() > 0) {
    absl::StrAppend(&line, "  ETA ", SecondsText(job.eta_seconds()));
  }
  return line;
}

}  // namespace lockstep::deploy
