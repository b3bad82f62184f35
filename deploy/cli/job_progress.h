// How a job's progress reads, from the chief's status and from the summary of its end. Pure. Not
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
  // Lines about what no call before has returned. A status is a sample: what happened after the
  // last one of a run is in its summary.
  std::vector<std::string> NewEvaluations(const ProcessStatus& chief);
  std::vector<std::string> NewEvaluations(const Summary& summary);
  std::vector<std::string> NewWarnings(const ProcessStatus& chief);
  std::vector<std::string> NewWarnings(const Summary& summary);

  // The state as one line: step, loss, examples/s, ETA, or what the start waits for.
  static std::string Line(const ProcessStatus& chief);

 private:
  int64_t last_evaluation_ = -1;  // step
  uint64_t last_warning_ = 0;     // number
  uint64_t chief_ = 0;            // incarnation of the one that counted it
};

}  // namespace lockstep::deploy
