// How a job's progress reads, from the chief's status. Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/status.pb.h"

namespace lockstep::deploy {

class JobProgress {
 public:
  // What has happened since the last call and deserves a line of its own: evaluations.
  std::vector<std::string> News(const ProcessStatus& chief);
  // The state as one line: step, loss, examples/s, ETA, or what the start waits for.
  static std::string Line(const ProcessStatus& chief);

 private:
  int64_t last_evaluation_ = -1;  // step
};

}  // namespace lockstep::deploy
