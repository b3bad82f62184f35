// Looks in the logs of a job for what tells of a fault.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/chaos/chaos_task.h"
#include "tests/chaos/fault.h"
#include "tests/chaos/sign.h"

namespace lockstep::test {

// From one thread.
class Detection {
 public:
  // What is logged from now on counts, where SignOf says. `tasks`, those of the job, outlive it.
  Detection(const std::vector<std::unique_ptr<ChaosTask>>& tasks, const Fault& fault,
            const FaultTasks& hit);

  void ReadLogs();

  // Between the construction and the first sign; infinite: there is none yet.
  absl::Duration after() const { return after_; }
  // Whose log has it.
  const std::string& by() const { return by_; }
  // Of a fault between two tasks: until both have named the other; infinite: they have not.
  absl::Duration after_by_both() const { return after_by_both_; }

 private:
  struct Source {
    const ChaosTask* task;
    std::string sign;
    size_t read_to;  // what was looked at or is older
    bool is_found = false;
  };
  bool IsWitness(const TaskId& task, const FaultTasks& hit) const;
  // Whether the log has the sign now.
  static bool LookAt(Source* source);

  absl::Duration begin_;
  Sign sign_;
  std::vector<Source> sources_;
  absl::Duration after_ = absl::InfiniteDuration();
  absl::Duration after_by_both_ = absl::InfiniteDuration();
  std::string by_;
};

}  // namespace lockstep::test
