#include "ps/service/chief_lease.h"

#include <algorithm>
#include <utility>

namespace lockstep::ps {

void ChiefLease::Renew(const LeaseHolder& holder, absl::Duration now) {
  if (state_ != CommandStatus::NONE) {
    const bool is_same = holder.chief == holder_.chief;
    if (is_same && state_ != CommandStatus::HELD) return;
    if (!is_same && holder.term < holder_.term) return;
    const bool is_held = state_ == CommandStatus::HELD && now < until_;
    if (!is_same && holder.term == holder_.term && is_held) return;
  }
  state_ = CommandStatus::HELD;
  holder_ = holder;
  until_ = now + holder.length;
}

void ChiefLease::Release(Incarnation chief) {
  if (state_ == CommandStatus::HELD && chief == holder_.chief) state_ = CommandStatus::RELEASED;
}

void ChiefLease::EndJob(int exit_code, std::string reason) {
  state_ = CommandStatus::JOB_OVER;
  exit_code_ = exit_code;
  reason_ = std::move(reason);
}

void ChiefLease::EndJob(Incarnation chief, int exit_code, std::string reason) {
  if (state_ == CommandStatus::HELD && chief == holder_.chief) {
    EndJob(exit_code, std::move(reason));
  }
}

CommandStatus ChiefLease::Status(absl::Duration now) const {
  CommandStatus status;
  status.set_state(state_);
  if (state_ == CommandStatus::NONE) return status;
  status.set_term(holder_.term.value());
  status.set_chief(holder_.chief.value());
  status.set_chief_index(holder_.index);
  const bool ends = holder_.length < absl::InfiniteDuration();
  if (ends) status.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(holder_.length)));
  if (state_ == CommandStatus::HELD && ends) {
    const absl::Duration left = std::max(absl::ZeroDuration(), until_ - now);
    if (left == absl::ZeroDuration()) status.set_state(CommandStatus::EXPIRED);
    status.set_left_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(left)));
  }
  if (state_ == CommandStatus::JOB_OVER) {
    status.set_exit_code(exit_code_);
    status.set_reason(reason_);
  }
  return status;
}

absl::Duration ChiefLease::Left(absl::Duration now) const {
  const bool is_held = state_ == CommandStatus::HELD && now < until_;
  return is_held ? until_ - now : absl::InfiniteDuration();
}

}  // namespace lockstep::ps
