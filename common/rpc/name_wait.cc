#include "common/rpc/name_wait.h"

#include "absl/strings/str_cat.h"
#include "common/log/log.h"

namespace lockstep::rpc {
namespace {

constexpr absl::Duration kRetryPeriod = absl::Milliseconds(500);
constexpr absl::Duration kNameLogPeriod = absl::Seconds(5);

}  // namespace

bool PauseUnless(const MonotonicNotification* stop, absl::Duration duration) {
  MonotonicNotification never;
  return !(stop == nullptr ? never : *stop).WaitFor(duration);
}

absl::StatusOr<std::vector<SocketAddress>> WaitForName(const std::string& address,
                                                       const NameWait& wait) {
  const absl::Duration start = wait.clock->Monotonic();
  absl::Duration next_line = start + kNameLogPeriod;
  while (true) {
    absl::StatusOr<std::vector<SocketAddress>> resolved = wait.resolve(address);
    if (resolved.ok()) return resolved;
    const absl::Duration now = wait.clock->Monotonic();
    if (now - start >= wait.patience) {
      return absl::UnavailableError(absl::StrCat(
          resolved.status().message(),
          wait.patience > absl::ZeroDuration()
              ? absl::StrCat(", for ", absl::FormatDuration(wait.patience), " (--start_timeout)")
              : "",
          ". Remedy: correct the cluster spec or --listen, or the name service"));
    }
    if (now >= next_line) {
      log::Warning(absl::StrCat("waiting for a name: ", resolved.status().message()));
      next_line = now + kNameLogPeriod;
    }
    if (!wait.pause(kRetryPeriod)) return absl::CancelledError("told to stop");
  }
}

}  // namespace lockstep::rpc
