// A fault of a job from its injection until it is healed.
#pragma once

#include <optional>
#include <string>

#include "tests/chaos/task_id.h"

namespace lockstep::test {

// Injects the fault when it is made. From one thread.
class OngoingFault {
 public:
  virtual ~OngoingFault() = default;

  // Called while the job is tended: does what is to be done next. `num_advances`: answers with new
  // steps since the fault was made. True: all of it is done, but for Heal.
  virtual bool Advance(int /*num_advances*/) { return true; }
  // Ends what lasts of it. Once, after Advance has returned true.
  virtual void Heal() {}
  // Of a fault that hits one of several tasks: which, once Advance has returned true.
  virtual std::optional<TaskId> hit() const { return std::nullopt; }
  // Which part of it is done now, after each of which the job trains again.
  virtual int part() const { return 0; }
  // What it has met that is wrong; empty: nothing.
  virtual std::string defect() const { return ""; }
};

}  // namespace lockstep::test
