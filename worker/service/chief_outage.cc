#include "worker/service/chief_outage.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

std::optional<std::string> ChiefOutage::OnFailure(absl::string_view reason,
                                                  absl::Duration failing_for, absl::Duration now) {
  if (failing_for < kReportEvery || now < next_report_) return std::nullopt;
  next_report_ = now + kReportEvery;
  told_since_ = now - failing_for;
  return absl::StrCat("no contact with the chief for ", absl::ToInt64Seconds(failing_for),
                      " s: ", reason);
}

std::optional<std::string> ChiefOutage::OnContact(absl::Duration now) {
  if (!told_since_.has_value()) return std::nullopt;
  const absl::Duration away = now - *told_since_;
  told_since_.reset();
  next_report_ = -absl::InfiniteDuration();
  return absl::StrCat("the chief is back after ", absl::ToInt64Seconds(away), " s");
}

}  // namespace lockstep::worker
