// Schedule draws the faults that a chaos run injects, one round after another, from its seed. Pure.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/chaos/fault.h"

namespace lockstep::test {

class Schedule {
 public:
  Schedule(uint64_t seed, int num_ps, int num_workers, std::vector<Fault> among);

  // The faults of the next round: one, or every fifth time two at once, of different tasks.
  // Each of the faults comes once before any comes again.
  std::vector<Fault> Next();
  // Returns the wait until the next round begins, at some moment of a step or of a save.
  absl::Duration NextWait();

 private:
  Fault Draw();
  // Draws the index of a task with this role.
  int DrawIndex(FaultTarget target);
  // Draws a number below `limit`: the same on every machine, which std::uniform_int_distribution
  // does not promise.
  uint64_t Below(uint64_t limit) { return random_() % limit; }

  const int num_ps_;
  const int num_workers_;
  const std::vector<Fault> among_;
  std::mt19937_64 random_;
  std::vector<Fault> left_;  // of this turn through all faults
  int rounds_ = 0;
};

}  // namespace lockstep::test
