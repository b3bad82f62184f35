#include "common/contact/silence_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

SilenceWatch::SilenceWatch(Options options, absl::Duration now)
    : options_(std::move(options)), heard_at_(now), looked_at_(now) {}

std::optional<std::string> SilenceWatch::OnHeard(absl::Duration now) {
  heard_at_ = now;
  looked_at_ = now;
  failure_.clear();
  if (!told_since_.has_value()) return std::nullopt;
  const absl::Duration away = now - *told_since_;
  told_since_.reset();
  next_report_ = -absl::InfiniteDuration();
  if (told_peer_ != options_.peer) return std::nullopt;
  return absl::StrCat("contact with ", options_.peer, " again, after ", absl::ToInt64Seconds(away),
                      " s");
}

std::optional<std::string> SilenceWatch::CheckSilence(absl::Duration now) {
  const absl::Duration late = now - looked_at_ - options_.period;
  looked_at_ = now;
  if (late > options_.period) heard_at_ = std::min(heard_at_ + late, now);
  const absl::Duration silence = now - heard_at_;
  if (silence < options_.told_after || now < next_report_) return std::nullopt;
  next_report_ = now + kReportEvery;
  told_since_ = heard_at_;
  told_peer_ = options_.peer;
  return absl::StrCat("no contact with ", options_.peer, " for ", absl::ToInt64Seconds(silence),
                      " s: ", failure_.empty() ? options_.reason : failure_);
}

}  // namespace lockstep
