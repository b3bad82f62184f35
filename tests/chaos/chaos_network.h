// ChaosNetwork connects the tasks of a job under chaos and injects faults of their links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/fault.h"
#include "tests/chaos/ongoing_fault.h"
#include "tests/chaos/task_id.h"

namespace lockstep::test {

// Used by one thread.
class ChaosNetwork {
 public:
  virtual ~ChaosNetwork() = default;

  // Returns a command that starts `command`, the task's own, so that others reach the task at its
  // address in the cluster spec.
  virtual std::vector<std::string> CommandOf(const TaskId& task,
                                             std::vector<std::string> command) const = 0;
  // Returns the address at which a ps or a chief answers this program. If possible, it also answers
  // while other tasks cannot reach it.
  virtual std::string StatusAddressOf(const TaskId& task) const = 0;

  // `fault` is one of links that this network supports. The network outlives the result.
  std::unique_ptr<OngoingFault> Inject(const Fault& fault, const FaultTasks& tasks);

 private:
  virtual void Disturb(const Fault& fault, const FaultTasks& tasks) = 0;
  // Ends a fault that lasts.
  virtual void Restore(const Fault& fault, const FaultTasks& tasks) = 0;
};

}  // namespace lockstep::test
