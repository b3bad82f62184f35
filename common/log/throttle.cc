#include "common/log/throttle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::log {

std::optional<std::string> Throttle::Admit(absl::string_view message, absl::Duration now) {
  if (refilled_ == -absl::InfiniteDuration()) refilled_ = now;
  const int64_t refill = absl::ToInt64Seconds(now - refilled_) / absl::ToInt64Seconds(kInterval);
  tokens_ = static_cast<int>(std::min<int64_t>(burst_, tokens_ + refill));
  refilled_ += refill * kInterval;
  if (tokens_ == 0) {
    ++left_out_;
    return std::nullopt;
  }
  --tokens_;
  const int64_t left_out = std::exchange(left_out_, 0);
  if (left_out == 0) return std::string(message);
  return absl::StrCat(message, " (", left_out, " such lines left out)");
}

}  // namespace lockstep::log
