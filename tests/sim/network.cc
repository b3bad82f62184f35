#include "tests/sim/network.h"

#include <algorithm>

namespace lockstep::sim {

void Network::Cut(const Link& direction, absl::Duration length) {
  events_->trace().NoteFault(Fault::kCut);
  absl::Duration& until = cut_until_[direction];
  until = std::max(until, events_->Monotonic() + length);
}

void Network::CloseConnections(const Node& node) {
  for (const auto& [link, ended] : calls_) {
    const std::shared_ptr<OpenCall> call = ended.lock();
    const bool is_concerned = link.from == node || link.to == node;
    if (call == nullptr || !call->is_open() || !is_concerned) continue;
    events_->Plan(Delay(), EventKind::kFailure, link.Reversed(), [this, call] {
      call->Fail(events_, absl::UnavailableError("the connection was closed: no keepalive"));
    });
  }
}

void Network::NoteCall(const Link& link, const std::shared_ptr<OpenCall>& call) {
  if (calls_.size() >= most_calls_) {
    std::erase_if(calls_, [](const auto& noted) {
      const std::shared_ptr<OpenCall> call = noted.second.lock();
      return call == nullptr || !call->is_open();
    });
    most_calls_ = std::max<size_t>(64, 2 * calls_.size());
  }
  calls_.emplace_back(link, call);
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
