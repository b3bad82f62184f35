// Register enters a worker into the job. It calls the chief until the job runs, and logs every few
// seconds what it waits for.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/monotonic_wait.h"
#include "common/client/chief_client.h"

namespace lockstep::worker {

struct RegistrationOptions {
  std::string chief_name;                             // "chief (host:port)", for messages
  absl::Duration start_timeout = absl::Seconds(120);  // for a chief that cannot be reached
  const Clock* clock = Clock::Real();
};

// Blocks until the reply is ready, or done: the job was over before this worker came. UNAVAILABLE
// naming the chief: it was not reached within the start timeout. CANCELLED: `stop` was notified. A
// refusal of the chief is returned unchanged (ALREADY_EXISTS: another worker has this index;
// FAILED_PRECONDITION: the cluster specs differ).
absl::StatusOr<RegisterTaskReply> Register(ChiefClient* chief, RegisterTaskRequest request,
                                           const RegistrationOptions& options,
                                           const MonotonicNotification* stop);

}  // namespace lockstep::worker
