// A job whose chief has others that stand by, and what becomes of it when the first one ends.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/client/status_reader.h"
#include "tests/integration/cluster.h"

namespace lockstep::test {

inline constexpr absl::Duration kWhole = absl::Seconds(60);  // of a job
inline constexpr absl::Duration kEnd = absl::Seconds(10);    // of processes that are told to
inline constexpr int kForeverSteps = 1'000'000;
inline const std::vector<std::string> kStandbyFlags = {"--lease=2", "--record_losses"};

// A job with two ps, two workers that are both needed, and `chiefs` chiefs, that has made its first
// steps. Its workers start when all chiefs run, so that no step is made while a chief starts. Fails
// the test case when a process does not get so far.
class StandbyJob {
 public:
  // `more`: of the job's text.
  explicit StandbyJob(int max_steps, int chiefs = 2, bool has_token = false,
                      const std::string& more = "");

  // Of its checkpoints.
  std::string folder() const { return cluster.folder().Path("checkpoints"); }

  void StandBy(int chief);

  // Steps that ps 0 has closed.
  std::optional<int64_t> ClosedSteps();

  // Gives the processes the CPU, before they are looked at again.
  void WaitForNextLook();

  // From now on, until `chief` commands and steps close again: the longest time without a step.
  // Infinite if that is not within kEnd.
  absl::Duration LongestPause(int chief);

  // That `chief` and all others end with 0.
  void CheckEndsWell(int chief);

  Cluster cluster;

 private:
  std::optional<StatusReader> ps_0_;
};

// What a run comes to that nothing disturbs.
struct CalmRun {
  explicit CalmRun(int steps, const std::string& more = "");

  std::vector<double> losses;
  std::map<std::string, std::string> tensors;  // as of TensorsOf
};

// The standby's losses are those of the calm run from the step at which it took over, and the
// model is the same.
void CheckSameBits(StandbyJob* job, int chief, const CalmRun& calm);

}  // namespace lockstep::test
