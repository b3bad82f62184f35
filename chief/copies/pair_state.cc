#include "chief/copies/pair_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"

namespace lockstep::chief {
namespace {

bool Serves(const absl::StatusOr<SetViewReply>& of) {
  return of.ok() && of->has_variables() && of->role() == PRIMARY;
}

// Both terms count for the next one.
PairView ViewOf(PairState state, const SetViewReply& of,
                const absl::StatusOr<SetViewReply>& other) {
  PairView view{state, of};
  if (other.ok()) view.reply.set_term(std::max(of.term(), other->term()));
  return view;
}

}  // namespace

absl::StatusOr<PairView> JudgePair(const absl::StatusOr<SetViewReply>& primary,
                                   const absl::StatusOr<SetViewReply>& copy) {
  const bool is_newer = Serves(copy) && (!primary.ok() || copy->epoch() >= primary->epoch());
  if (is_newer) return ViewOf(PairState::kMoved, *copy, primary);
  if (Serves(primary) && !primary->has_copy()) {
    return ViewOf(PairState::kAlone, *primary, copy);
  }
  if (!primary.ok()) return primary.status();
  if (!copy.ok()) return copy.status();
  PairView view = ViewOf(PairState::kPair, *primary, copy);
  const bool has_both = primary->has_variables() && copy->has_variables() &&
                        primary->epoch() == copy->epoch() && primary->job() == copy->job();
  // The one that is left may lack steps that the other one has shown.
  view.reply.set_has_variables(has_both);
  view.reply.set_epoch(std::max(primary->epoch(), copy->epoch()));
  return view;
}

void MemberHealth::Answered(absl::Duration now) {
  answered_ = now;
  failing_since_.reset();
}

void MemberHealth::Failed(const absl::Status& failure, absl::Duration now) {
  if (!failing_since_.has_value()) failing_since_ = now;
  failure_ = failure;
}

void MemberHealth::Lost(const absl::Status& why) {
  is_lost_ = true;
  failure_ = why;
}

std::optional<std::string> MemberHealth::WhyLost(absl::Duration now,
                                                 absl::Duration patience) const {
  if (is_lost_) return std::string(failure_.message());
  if (failing_since_.has_value() && absl::IsUnavailable(failure_) &&
      now - *failing_since_ >= kRefusal) {
    return std::string(failure_.message());
  }
  if (now - answered_ < patience) return std::nullopt;
  return absl::StrCat("it has not answered for ", DurationText(now - answered_));
}

}  // namespace lockstep::chief
