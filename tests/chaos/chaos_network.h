// How the tasks of a job under chaos reach each other, and how that fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/fault.h"
#include "tests/chaos/ongoing_fault.h"
#include "tests/chaos/task_id.h"

namespace lockstep::test {

// From one thread.
class ChaosNetwork {
 public:
  virtual ~ChaosNetwork() = default;

  // What starts `command`, that of the task, so that others reach it where the cluster spec says.
  virtual std::vector<std::string> CommandOf(const TaskId& task,
                                             std::vector<std::string> command) const = 0;
  // Where a ps or a chief answers this program, also while others cannot reach it, if it can.
  virtual std::string StatusAddressOf(const TaskId& task) const = 0;

  // `fault` is one of links, and one that this network, which outlives it, can have.
  std::unique_ptr<OngoingFault> Inject(const Fault& fault, const FaultTasks& tasks);

 private:
  virtual void Disturb(const Fault& fault, const FaultTasks& tasks) = 0;
  // Ends what lasts of it.
  virtual void Restore(const Fault& fault, const FaultTasks& tasks) = 0;
};

}  // namespace lockstep::test
