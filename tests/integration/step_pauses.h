// The longest time without a step of a job, as its chief tells its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/client/status_reader.h"
#include "tests/chaos/step_watch.h"
#include "tests/support/process.h"

namespace lockstep::test {

// From one thread.
class StepPauses {
 public:
  explicit StepPauses(std::string chief_address) : reader_(std::move(chief_address)) { Begin(); }

  // Forgets pauses before now.
  void Begin();
  // Asks the chief for its step until `done`. False: `chief` has ended, or `patience` has.
  bool WatchUntil(const std::function<bool()>& done, Process* chief, absl::Duration patience);
  // Asks once.
  void ReadStep();

  // As of the last answer.
  int64_t step() const { return step_; }
  // As StepWatch.
  int num_advances() const { return watch_.num_advances(); }
  absl::Duration Longest() const;

 private:
  StatusReader reader_;
  StepWatch watch_;
  int64_t step_ = 0;
};

}  // namespace lockstep::test
