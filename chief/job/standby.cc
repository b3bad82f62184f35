#include "chief/job/standby.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/base/remedy.h"
#include "common/log/log.h"
#include "common/status/command_summary.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kLookedFor = absl::Seconds(5);
constexpr absl::Duration kStatusLimit = absl::Seconds(1);
constexpr absl::Duration kNextLook = absl::Milliseconds(100);

// Where the step shard does not tell who commands.
ProcessStatus UnknownCommander(std::string waiting_for) {
  ProcessStatus status;
  status.set_state("standby");
  status.set_waiting_for(std::move(waiting_for));
  status.mutable_standby_of()->set_state("unknown");
  return status;
}

}  // namespace

struct Standby::StatusCall {
  absl::Duration until;
  Callback<ProcessStatus> done;  // null: it has been answered
};

Standby::Standby(ObserverOptions options, WatchCommandRequest request, PsControl* step_shard,
                 Executor* executor, const Clock* clock, Hooks hooks)
    : options_(options),
      request_(std::move(request)),
      step_shard_(step_shard),
      executor_(executor),
      clock_(clock),
      hooks_(std::move(hooks)),
      observer_(std::move(options), clock->Monotonic()),
      reminder_(kLookedFor, clock->Monotonic()) {}

void Standby::Start() {
  is_waiting_ = true;
  Ask();
}

void Standby::WaitAgain() {
  log::Info("another chief was faster");
  Start();
}

void Standby::SetNames(std::vector<std::string> chiefs, std::string step_shard) {
  observer_.SetNames(chiefs, step_shard);
  options_.chiefs = std::move(chiefs);
  options_.step_shard = std::move(step_shard);
}

void Standby::Tick() {
  const absl::Duration now = clock_->Monotonic();
  for (const auto& call : std::exchange(status_calls_, {})) {
    if (call->done == nullptr) continue;
    if (now < call->until) {
      status_calls_.push_back(call);
      continue;
    }
    std::exchange(call->done, nullptr)(
        UnknownCommander(absl::StrCat(options_.step_shard, ", which does not answer")));
  }
  if (!is_waiting_) return;
  if (!is_asking_ && now >= next_call_) Ask();
  if (const CommandObserver::Decision decision = observer_.OnTick(now);
      decision.action == CommandObserver::Decision::kEnd) {
    return Follow(decision);
  }
  const std::string waiting_for = observer_.WaitingFor();
  if (waiting_for.empty()) return reminder_.Progress(now);
  if (reminder_.Due(now)) {
    log::Warning(absl::StrCat("standing by for ", DurationText(reminder_.Silence(now)),
                              ", waiting for ", waiting_for));
  }
}

void Standby::Ask() {
  if (is_asking_) return;
  is_asking_ = true;
  request_.set_term(observer_.watched_term());
  step_shard_->Call(
      kWatchCommand, request_,
      On<WatchCommandReply>(executor_, [this](const auto& reply) { OnAnswer(reply); }));
}

void Standby::OnAnswer(const absl::StatusOr<WatchCommandReply>& reply) {
  is_asking_ = false;
  if (!is_waiting_) return;
  const absl::Duration now = clock_->Monotonic();
  if (!reply.ok()) return OnFailure(reply.status());
  ++num_answers_;
  looks_since_.reset();
  const CommandObserver::Decision decision = observer_.OnStatus(reply->command(), now);
  if (reply->command().state() == CommandStatus::HELD) LogCommander(reply->command());
  Follow(decision);
}

void Standby::OnFailure(const absl::Status& failure) {
  // A ps that waits for a chief parks the call: it is there.
  if (absl::IsDeadlineExceeded(failure)) found_end_.reset();
  const CommandObserver::Decision decision = observer_.OnFailure(failure, clock_->Monotonic());
  const bool is_done = decision.action == CommandObserver::Decision::kEnd && decision.end.ok();
  is_done ? LookForEnd() : Follow(decision);
}

void Standby::LookForEnd() {
  // No ps has been there since the look began.
  if (found_end_ == num_answers_) return Follow({.action = CommandObserver::Decision::kEnd});
  const absl::Duration now = clock_->Monotonic();
  if (!looks_since_.has_value()) looks_since_ = now;
  if (now - *looks_since_ >= options_.patience) {
    return Follow({.action = CommandObserver::Decision::kEnd, .end = EndUnknownError()});
  }
  // It asks on meanwhile: the disk may hang.
  Follow({.pause = kNextLook});
  if (std::exchange(is_looking_, true)) return;
  hooks_.find_end([this, answers = num_answers_](const absl::StatusOr<std::string>& checkpoint) {
    is_looking_ = false;
    OnLook(checkpoint, answers);
  });
}

void Standby::OnLook(const absl::StatusOr<std::string>& checkpoint, uint64_t answers) {
  if (!checkpoint.ok()) {
    // The next call that fails looks again.
    if (std::exchange(look_failure_, checkpoint.status()) == checkpoint.status()) return;
    return log::Warning(absl::StrCat("cannot see whether the job is done, looking again: ",
                                     checkpoint.status().message()));
  }
  looks_since_.reset();
  look_failure_ = absl::OkStatus();
  // Another chief has begun a run since.
  if (checkpoint->empty()) return observer_.ForgetEnd();
  // The call under way may wait at a ps that is there again.
  found_end_ = answers;
}

absl::Status Standby::EndUnknownError() const {
  return SetRemedy(
      absl::UnavailableError(
          absl::StrCat(options_.step_shard,
                       " was not reached, and whether the job is done could not be seen for ",
                       DurationText(options_.patience), " (--start_timeout): ",
                       look_failure_.ok() ? "no answer from the disk" : look_failure_.message())),
      "see that this host can read checkpoint.folder; or, if the job is not done, start the ps "
      "again");
}

void Standby::Follow(const CommandObserver::Decision& decision) {
  switch (decision.action) {
    case CommandObserver::Decision::kAsk:
      next_call_ = clock_->Monotonic() + decision.pause;
      if (decision.pause == absl::ZeroDuration()) Ask();
      return;
    case CommandObserver::Decision::kTakeCommand:
      is_waiting_ = false;
      log::Warning(absl::StrCat("taking command: ", decision.why));
      return hooks_.take_command();
    case CommandObserver::Decision::kEnd:
      is_waiting_ = false;
      if (decision.end.ok()) log::Info("the job is done");
      return hooks_.on_end(decision.end);
  }
}

void Standby::LogCommander(const CommandStatus& status) {
  if (std::exchange(logged_chief_, status.chief()) == status.chief()) return;
  log::Info(absl::StrCat("standing by: ", observer_.Commander(), " commands, with a lease of ",
                         DurationText(absl::Milliseconds(status.lease_ms()))));
}

absl::Status Standby::MayTake(uint64_t term) {
  if (term <= observer_.highest_term() + 1) return absl::OkStatus();
  observer_.NoteTerm(term - 1);
  return absl::AbortedError(absl::StrCat("another chief has taken term ", term - 1));
}

absl::Status Standby::Refusal() const {
  const std::string commander = observer_.Commander();
  return absl::UnavailableError(absl::StrCat(
      "this chief stands by", commander.empty() ? "" : absl::StrCat(" for ", commander)));
}

void Standby::GetStatus(Callback<ProcessStatus> done) {
  auto call =
      std::make_shared<StatusCall>(StatusCall{clock_->Monotonic() + kStatusLimit, std::move(done)});
  status_calls_.push_back(call);
  step_shard_->Call(
      kGetView, GetViewRequest(),
      On<SetViewReply>(executor_, [this, call](const absl::StatusOr<SetViewReply>& reply) {
        if (call->done == nullptr) return;
        auto done = std::exchange(call->done, nullptr);
        if (!reply.ok()) {
          return done(
              UnknownCommander(absl::StrCat(options_.step_shard, ": ", reply.status().message())));
        }
        ProcessStatus status;
        status.set_state("standby");
        status.set_waiting_for(observer_.WaitingFor());
        status.set_global_step(reply->global_step());
        const CommandStatus& command = reply->command_status();
        const bool is_known = command.chief_index() < options_.chiefs.size();
        *status.mutable_standby_of() =
            Summarize(command, is_known ? options_.chiefs[command.chief_index()] : "");
        done(std::move(status));
      }));
}

}  // namespace lockstep::chief
