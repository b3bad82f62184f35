#include "common/security/refusal_pace.h"

#include <algorithm>

namespace lockstep::security {
namespace {

absl::Duration Allowance() { return RefusalPace::kAtOnce * RefusalPace::kInterval; }

absl::Duration CostOf(uint64_t message_bytes) {
  return RefusalPace::kInterval *
         static_cast<int64_t>(1 + message_bytes / RefusalPace::kBytesOfRefusal);
}

}  // namespace

bool IsRefusal(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

absl::Duration RefusalPace::Hold(absl::string_view caller, uint64_t message_bytes,
                                 absl::Duration now) {
  absl::Duration* const paid_at = Find(caller, now);
  *paid_at =
      std::min(std::max(*paid_at, now) + CostOf(message_bytes), now + Allowance() + kMaxHold);
  return std::max(absl::ZeroDuration(), *paid_at - now - Allowance());
}

absl::Duration* RefusalPace::Find(absl::string_view caller, absl::Duration now) {
  if (const auto found = paid_at_.find(caller); found != paid_at_.end()) return &found->second;
  if (paid_at_.size() >= kMaxCallers && now >= next_sweep_) {
    // A full bucket is as good as none.
    absl::erase_if(paid_at_, [now](const auto& entry) { return entry.second <= now; });
    next_sweep_ = now + kInterval;
  }
  if (paid_at_.size() >= kMaxCallers) return &paid_at_of_others_;
  return &paid_at_.emplace(std::string(caller), now).first->second;
}

}  // namespace lockstep::security
