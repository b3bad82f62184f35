#include "worker/peer/member_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

MemberWatch::MemberWatch(std::vector<std::string> names, absl::Duration patience)
    : patience_(patience) {
  for (std::string& name : names) members_.push_back({std::move(name)});
}

void MemberWatch::Start(absl::Duration now) {
  for (Member& member : members_) {
    member.answered_at = now;
    member.error = absl::OkStatus();
  }
}

void MemberWatch::OnAnswered(int position, absl::Duration now) {
  members_[position].answered_at = now;
  members_[position].error = absl::OkStatus();
}

void MemberWatch::OnError(int position, const absl::Status& error) {
  members_[position].error = error;
}

absl::Status MemberWatch::Check(absl::Duration now) const {
  const auto silent = std::ranges::min_element(members_, {}, &Member::answered_at);
  if (silent == members_.end() || now - silent->answered_at < patience_) return absl::OkStatus();
  const std::string message =
      absl::StrCat("collective: ", silent->name, " has answered no call for ",
                   absl::FormatDuration(now - silent->answered_at));
  if (!absl::IsUnavailable(silent->error)) return absl::DeadlineExceededError(message);
  return absl::UnavailableError(absl::StrCat(message, ": ", silent->error.message()));
}

}  // namespace lockstep::worker
