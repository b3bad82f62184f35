#include "ps/service/chief_wait.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::ps {
namespace {

constexpr absl::Duration kFirstMessage = absl::Seconds(10);
constexpr absl::Duration kBetweenMessages = absl::Seconds(5);

int64_t Seconds(absl::Duration duration) { return absl::ToInt64Seconds(duration); }

}  // namespace

ChiefWait::ChiefWait(std::string chief, absl::Duration start, absl::Duration start_timeout)
    : chief_(std::move(chief)),
      start_(start),
      start_timeout_(start_timeout),
      next_message_(start + kFirstMessage) {}

std::optional<std::string> ChiefWait::Message(absl::Duration now) {
  if (now < next_message_) return std::nullopt;
  next_message_ = now + kBetweenMessages;
  return absl::StrCat("waiting for the chief (", chief_, ") to call, for ", Seconds(now - start_),
                      " s; giving up after ", Seconds(start_timeout_), " s (--start_timeout)");
}

absl::Status ChiefWait::Check(absl::Duration now) const {
  if (now - start_ < start_timeout_) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the chief (", chief_, ") did not call within ", Seconds(start_timeout_),
                   " s. Remedy: start it with the same cluster spec, or give a longer "
                   "--start_timeout"));
}

}  // namespace lockstep::ps
