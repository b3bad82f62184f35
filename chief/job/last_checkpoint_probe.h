// Looks in the checkpoint folder, now and then, whether the job has its last checkpoint.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "chief/job/job_state.h"
#include "chief/loop/disk_thread.h"
#include "common/base/ids.h"

namespace lockstep::chief {

class LastCheckpointProbe {
 public:
  // Of a job without a checkpoint folder nothing is found. The first look is due a lease after
  // `now`, which is monotonic, as in Tick: a ps that lives answers sooner. The executor of `inputs`
  // outlives the probe.
  LastCheckpointProbe(const JobInputs& inputs, absl::Duration now);

  // Looks if it is due. Several times a second. `on_found` is called if there is one, at once or
  // later, and never once the executor has ended or is closed. The probe outlives the look.
  void Tick(absl::Duration now, std::function<void()> on_found);
  // A look is under way.
  bool is_busy() const { return is_busy_; }

 private:
  const std::string root_;
  const GlobalStep last_;
  const absl::Duration pause_;
  absl::Duration next_;
  bool is_busy_ = false;
  DiskThread disk_;
};

}  // namespace lockstep::chief
