// Common code of the peers of the step rows. Workers are processes that release their gradients at
// one instant. A step lasts from there until the slowest of them has all variables.
//
// Peers are built without our libraries, with only the standard one and their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace lockstep::bench {

struct PeerJob {
  int workers = 0;
  size_t floats = 0;          // of a worker's gradient
  int steps = 0;              // that are measured
  int64_t release_every = 0;  // microseconds: gradients are released at multiples of it
};

// Parses the arguments WORKERS MEBIBYTES STEPS RELEASE_EVERY_US. Ends the program on an error.
PeerJob ParsePeerJob(int argc, char** argv);

// Steps before the first measured one. They touch memory and bring connections up to speed.
inline constexpr int kWarmUpSteps = 3;

// Instants by worker and step, in memory that all processes share. Made before they fork. Processes
// that are not forks of one process each fill their own, and one of them adds up all instants().
class StepTimes {
 public:
  explicit StepTimes(const PeerJob& job);

  int all_steps() const { return kWarmUpSteps + job_.steps; }

  // The worker's gradient of this step is written: sleeps until the next release.
  void Release(int worker, int step);
  // The worker has all variables.
  void Finish(int worker, int step);

  // Zero where nothing was noted.
  std::span<int64_t> instants() const {
    return {times_, 2 * static_cast<size_t>(job_.workers) * all_steps()};
  }

  // One line: the milliseconds of each measured step, from the first release to the last finish.
  // Steps whose workers were not released together are left out.
  void Print() const;

 private:
  int64_t& released(int worker, int step) const { return times_[Index(worker, step)]; }
  int64_t& finished(int worker, int step) const { return times_[Index(worker, step) + 1]; }
  size_t Index(int worker, int step) const {
    return 2 * (static_cast<size_t>(worker) * all_steps() + step);
  }

  const PeerJob job_;
  int64_t* const times_;  // microseconds on the monotonic clock
};

// Calls work(0), work(1), ... each in a process of its own and waits for them. `work` returns false
// if it failed. Returns false if any process failed or died.
bool RunWorkers(int workers, const std::function<bool(int worker)>& work);

// Prints the times, or the failure, at the end of the program. Returns its exit code.
int Report(bool well, const char* failure, const StepTimes& times);

}  // namespace lockstep::bench
