#include "worker/device/cuda/launch_lock.h"

#include "common/base/check.h"

namespace lockstep::worker::cuda {

ABSL_CONST_INIT absl::Mutex LaunchLock::mutex_(absl::kConstInit);
constinit thread_local LaunchLock::Hold LaunchLock::held_ = LaunchLock::Hold::kNone;

// The analysis knows no lock that a thread takes only once.
LaunchLock::Shared::Shared() ABSL_NO_THREAD_SAFETY_ANALYSIS : is_first_(held_ == Hold::kNone) {
  if (!is_first_) return;
  mutex_.ReaderLock();
  held_ = Hold::kShared;
}

LaunchLock::Shared::~Shared() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (!is_first_) return;
  held_ = Hold::kNone;
  mutex_.ReaderUnlock();
}

LaunchLock::Exclusive::Exclusive() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  LOCKSTEP_CHECK(held_ == Hold::kNone);
  mutex_.Lock();
  held_ = Hold::kExclusive;
}

LaunchLock::Exclusive::~Exclusive() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  held_ = Hold::kNone;
  mutex_.Unlock();
}

}  // namespace lockstep::worker::cuda
