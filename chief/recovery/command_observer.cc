#include "chief/recovery/command_observer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"
#include "common/base/printable.h"
#include "common/base/quantity.h"

namespace lockstep::chief {
namespace {

using Decision = CommandObserver::Decision;

constexpr int kLargestExitCode = 255;

// For a step shard that was started again: its chief calls it four times in a lease.
constexpr absl::Duration kNextLook = absl::Milliseconds(100);
// A chief that was killed and started again leaves it to those that have stood by all the time.
constexpr absl::Duration kAfterOthers = absl::Milliseconds(300);
// Of a step shard that refuses this chief.
constexpr absl::Duration kNextTry = absl::Seconds(1);
// For the ps of a job that is done.
constexpr absl::Duration kLeftPatience = absl::Seconds(1);

Decision TakeCommand(std::string why) {
  return {.action = Decision::kTakeCommand, .why = std::move(why)};
}

Decision End(absl::Status status) { return {.action = Decision::kEnd, .end = std::move(status)}; }

std::string LeaseText(const CommandStatus& status) {
  return DurationText(absl::Milliseconds(status.lease_ms()));
}

}  // namespace

CommandObserver::CommandObserver(ObserverOptions options, absl::Duration now)
    : options_(std::move(options)),
      start_(now),
      retry_(CallKind::kCommand,
             {.first_pause = absl::Milliseconds(100), .patience = options_.patience}) {}

uint64_t CommandObserver::watched_term() const {
  constexpr uint64_t kNobodys = std::numeric_limits<uint64_t>::max();
  return known_.term() == 0 && options_.begins ? kNobodys : known_.term();
}

std::string CommandObserver::NameOf(uint32_t chief) const {
  const bool is_known = chief < options_.chiefs.size();
  return absl::StrCat("chief ", chief,
                      is_known ? absl::StrCat(" (", options_.chiefs[chief], ")") : "");
}

std::string CommandObserver::Commander() const {
  return is_commander_known() ? NameOf(known_.chief_index()) : "";
}

std::string CommandObserver::WaitingFor() const {
  if (!problem_.empty()) return problem_;
  return is_commander_known() ? "" : "the first chief to take command";
}

void CommandObserver::NoteTerm(uint64_t term) { highest_term_ = std::max(highest_term_, term); }

void CommandObserver::SetNames(std::vector<std::string> chiefs, std::string step_shard) {
  options_.chiefs = std::move(chiefs);
  options_.step_shard = std::move(step_shard);
}

Decision CommandObserver::OnStatus(const CommandStatus& status, absl::Duration now) {
  retry_.OnSuccess();
  refused_since_.reset();
  problem_.clear();
  if (status.state() == CommandStatus::NONE) return OnNone(now);
  none_since_.reset();
  if (status.state() == CommandStatus::JOB_OVER) return OnJobOver(status);
  known_ = status;
  NoteTerm(status.term());
  switch (status.state()) {
    case CommandStatus::EXPIRED:
      return OnExpired(status, now);
    case CommandStatus::RELEASED:
      return TakeCommand(
          absl::StrCat(Commander(), " has ended and leaves the job to the next one"));
    default:
      was_held_ = true;
      // The step shard was started again and has no term yet: it parks no call for this lease.
      return {.pause = status.term() == 0 ? kNextLook : absl::ZeroDuration()};
  }
}

Decision CommandObserver::OnExpired(const CommandStatus& status, absl::Duration now) {
  const bool is_new = now - start_ < absl::Milliseconds(status.lease_ms());
  if (is_new && std::exchange(left_to_others_, status.term()) != status.term()) {
    return {.pause = kAfterOthers};
  }
  return TakeCommand(absl::StrCat(Commander(), " has been silent for longer than its lease of ",
                                  LeaseText(status)));
}

Decision CommandObserver::OnNone(absl::Duration now) {
  if (!is_commander_known()) {
    if (options_.begins) return TakeCommand("no chief has commanded yet");
    return {.pause = kNextLook};
  }
  if (!none_since_.has_value()) none_since_ = now;
  if (now - *none_since_ < absl::Milliseconds(known_.lease_ms())) return {.pause = kNextLook};
  return TakeCommand(absl::StrCat(options_.step_shard, " was started again, and ", Commander(),
                                  " has not called it for ", LeaseText(known_)));
}

Decision CommandObserver::OnRefused(const absl::Status& refusal, absl::Duration now) {
  if (!refused_since_.has_value()) refused_since_ = now;
  if (now - *refused_since_ >= options_.patience) return End(refusal);
  return {.pause = kNextTry};
}

Decision CommandObserver::OnJobOver(const CommandStatus& status) const {
  if (status.exit_code() == 0) return End(absl::OkStatus());
  const std::string reason = Printable(status.reason(), limits::kMaxErrorBytes);
  const bool can_go_on = status.exit_code() >= kFirstRetryableCode;
  if (can_go_on && !was_held_) {
    return TakeCommand(absl::StrCat("the chief before has given the job up: ", reason));
  }
  const bool is_sound = status.exit_code() > 0 && status.exit_code() <= kLargestExitCode;
  return End(
      WithExitCode(absl::FailedPreconditionError(absl::StrCat("the job was given up: ", reason)),
                   is_sound ? static_cast<ExitCode>(status.exit_code()) : ExitCode::kBug));
}

Decision CommandObserver::OnFailure(const absl::Status& failure, absl::Duration now) {
  if (absl::IsDeadlineExceeded(failure)) {  // of a call that was parked: it arrived, and was taken
    refused_since_.reset();
    if (is_commander_known()) problem_.clear();
    return {};
  }
  const bool may_pass = is_commander_known() && absl::IsFailedPrecondition(failure);
  if (!may_pass && !IsRetryable(failure, CallKind::kCommand)) return End(failure);
  problem_ = absl::StrCat(options_.step_shard, ": ", failure.message());
  if (may_pass) return OnRefused(failure, now);
  const std::optional<absl::Duration> pause = retry_.OnFailure(failure, now);
  const bool may_be_over = options_.is_done && !is_commander_known();
  if (may_be_over && retry_.FailingFor(now) >= kLeftPatience) return End(absl::OkStatus());
  if (pause.has_value()) return {.pause = *pause};
  return End(absl::UnavailableError(
      absl::StrCat(options_.step_shard, " was not reached for ", DurationText(options_.patience),
                   " (--start_timeout): ", failure.message(), ". Remedy: start it again")));
}

Decision CommandObserver::OnTick(absl::Duration now) const {
  if (is_commander_known() || !problem_.empty() || now - start_ < options_.patience) return {};
  return End(absl::UnavailableError(absl::StrCat("no chief has taken command for ",
                                                 DurationText(options_.patience),
                                                 " (--start_timeout). Remedy: start chief 0")));
}

}  // namespace lockstep::chief
