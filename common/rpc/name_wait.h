// Waits for a name that the name service does not know yet, as that of a pod that is yet to start.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/monotonic_wait.h"
#include "common/rpc/listen_address.h"

namespace lockstep::rpc {

struct NameWait {
  absl::Duration patience = absl::ZeroDuration();  // --start_timeout
  const Clock* clock = Clock::Real();
  std::function<absl::StatusOr<std::vector<SocketAddress>>(const std::string&)> resolve =
      ResolveAddress;
  // Blocks for that long. False: the process is to stop.
  std::function<bool(absl::Duration)> pause;
};

// Blocks for that long, or until `stop` (may be null) is notified: then false.
bool PauseUnless(const MonotonicNotification* stop, absl::Duration duration);

// Resolves `address` again every half second until it succeeds or patience is over, with a log line
// every 5 seconds. UNAVAILABLE (exit 138): the name did not resolve in time. CANCELLED: stopped.
absl::StatusOr<std::vector<SocketAddress>> WaitForName(const std::string& address,
                                                       const NameWait& wait);

}  // namespace lockstep::rpc
