#include "ps/service/chief_watchdog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"

namespace lockstep::ps {
namespace {

constexpr absl::Duration kFirstMessage = absl::Seconds(10);
constexpr absl::Duration kBetweenWarnings = absl::Seconds(5);
constexpr absl::Duration kBetweenNotes = absl::Seconds(30);
// A chief that is up asks every three seconds.
constexpr absl::Duration kUpFor = absl::Seconds(10);

}  // namespace

ChiefWatchdog::ChiefWatchdog(std::string chief, absl::Duration start, absl::Duration start_timeout)
    : chief_(std::move(chief)),
      start_(start),
      start_timeout_(start_timeout),
      next_message_(start + kFirstMessage) {}

void ChiefWatchdog::Asked(absl::Duration now) { last_asked_ = now; }

bool ChiefWatchdog::IsChiefUp(absl::Duration now) const {
  return last_asked_.has_value() && now - *last_asked_ < kUpFor;
}

std::optional<ChiefWatchdog::Line> ChiefWatchdog::Message(absl::Duration now) {
  if (now < next_message_) return std::nullopt;
  if (IsChiefUp(now)) {
    next_message_ = now + kBetweenNotes;
    return Line{
        absl::StrCat("the chief (", chief_, ") is up and waits for another ps; ./lockstep status ",
                     chief_, " names it"),
        /*is_warning=*/false};
  }
  next_message_ = now + kBetweenWarnings;
  const absl::Duration since = last_asked_.value_or(start_);
  return Line{absl::StrCat("waiting for the chief (", chief_, ") to call",
                           last_asked_.has_value() ? " again" : "", ", for ",
                           DurationText(now - since), "; giving up after ",
                           DurationText(start_timeout_), " (--start_timeout)")};
}

absl::Status ChiefWatchdog::Check(absl::Duration now) const {
  if (now - last_asked_.value_or(start_) < start_timeout_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the chief (", chief_, ") did not call within ", DurationText(start_timeout_),
                   ". Remedy: start it with the same cluster spec, or give a longer "
                   "--start_timeout"));
}

}  // namespace lockstep::ps
