// JobProgress formats a job's progress from the chief's status and the final summary. Pure. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/cli/summary.h"
#include "proto/status.pb.h"

namespace lockstep::deploy {

class JobProgress {
 public:
  // Returns lines that no earlier call has returned. A status is a sample: the summary has the
  // events after the last status of a run.
  std::vector<std::string> NewEvaluations(const ProcessStatus& chief);
  std::vector<std::string> NewEvaluations(const Summary& summary);
  std::vector<std::string> NewWarnings(const ProcessStatus& chief);
  std::vector<std::string> NewWarnings(const Summary& summary);

  // Returns the state as one line: step, loss, examples/s, ETA, or the reason why the start waits.
  static std::string Line(const ProcessStatus& chief);

 private:
  int64_t last_evaluation_ = -1;  // step
  uint64_t last_warning_ = 0;     // number
  uint64_t chief_ = 0;            // incarnation of the chief that counted it
};

}  // namespace lockstep::deploy
