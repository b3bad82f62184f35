// Asks every shard what the step at hand waits for.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <vector>

#include "chief/job/job_facts.h"
#include "chief/loop/executor.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

class ProgressProbe {
 public:
  // `shards` and `executor` outlive the calls in flight: destroy the probe after the executor has
  // ended or is closed.
  ProgressProbe(std::vector<PsControl*> shards, Executor* executor);

  // `done` is called when every shard has answered or failed. Does nothing while an earlier probe
  // is under way.
  void Start(std::function<void(const ProgressByShard&)> done);

 private:
  const std::vector<PsControl*> shards_;
  Executor* const executor_;
  ProgressByShard progress_;
  size_t open_ = 0;  // calls in flight
};

}  // namespace lockstep::chief
