#include "tests/sim/network.h"

#include <algorithm>

namespace lockstep::sim {

void Network::Cut(const Link& direction, absl::Duration length) {
  events_->trace().NoteFault(Fault::kCut);
  absl::Duration& until = cut_until_[direction];
  until = std::max(until, events_->Monotonic() + length);
}

std::optional<absl::Duration> Network::Transit(const Link& direction, absl::Duration deadline) {
  const absl::Duration now = events_->Monotonic();
  absl::Duration transit = Delay();
  if (const auto cut = cut_until_.find(direction); cut != cut_until_.end() && cut->second > now) {
    const absl::Duration held = cut->second - now;
    if (held > kKeepalive) return std::nullopt;
    transit += held;
  }
  const absl::Duration left = std::max(deadline - now, absl::ZeroDuration());
  if (left <= rpc::kParkedDeadline && Happens(options_.stalls)) {
    events_->trace().NoteFault(Fault::kStalledMessage);
    transit =
        std::max(transit, left + random_->Between(absl::ZeroDuration(), options_.most_lateness));
  }
  return transit;
}

void Network::NoteArrival(const Link& direction, uint64_t number) {
  uint64_t& last = last_arrived_[direction];
  if (number < last) events_->trace().NoteFault(Fault::kReorderedMessage);
  last = std::max(last, number);
}

}  // namespace lockstep::sim
