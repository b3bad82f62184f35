#include "chief/copies/place_health.h"

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"

namespace lockstep::chief {

void PlaceHealth::Answered(absl::Duration now) {
  answered_ = now;
  failing_since_.reset();
}

void PlaceHealth::Failed(const absl::Status& failure, absl::Duration now) {
  if (!failing_since_.has_value()) failing_since_ = now;
  failure_ = failure;
}

void PlaceHealth::Lost(const absl::Status& why) {
  is_lost_ = true;
  failure_ = why;
}

std::optional<std::string> PlaceHealth::WhyLost(absl::Duration now, absl::Duration patience,
                                                bool awaits_answer) const {
  if (is_lost_) return std::string(failure_.message());
  const bool is_refusing =
      failing_since_.has_value() && absl::IsUnavailable(failure_) && !awaits_answer;
  if (is_refusing && now - *failing_since_ >= kRefusal) return std::string(failure_.message());
  if (now - answered_ < patience) return std::nullopt;
  return absl::StrCat("it has not answered for ", DurationText(now - answered_));
}

}  // namespace lockstep::chief
