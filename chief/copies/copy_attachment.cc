#include "chief/copies/copy_attachment.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/sync/retry.h"
#include "common/base/lost_variables.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kTransferPoll = absl::Milliseconds(250);

}  // namespace

CopyAttachment::CopyAttachment(CreateVariablesRequest variables, absl::Duration patience,
                               PairRoles* roles, Executor* executor, const Clock* clock)
    : variables_([&] {
        variables.set_awaits_state(true);
        return std::move(variables);
      }()),
      patience_(patience),
      roles_(roles),
      executor_(executor),
      clock_(clock),
      began_(clock->Monotonic()) {
  copy_.Answered(began_);
}

template <typename T>
Callback<T> CopyAttachment::IfAlive(Callback<T> use) {
  return
      [alive = std::weak_ptr(is_alive_), use = std::move(use)](absl::StatusOr<T> result) mutable {
        if (!alive.expired()) use(std::move(result));
      };
}

void CopyAttachment::Start() {
  roles_->MakeCopy(IfAlive<SetViewReply>([this](const absl::StatusOr<SetViewReply>& reply) {
    reply.ok() ? CreateVariables() : Fail(reply.status());
  }));
}

void CopyAttachment::CreateVariables() {
  roles_->other_place()->ps()->Call(
      kCreateVariables, variables_,
      On<CreateVariablesReply>(
          executor_,
          IfAlive<CreateVariablesReply>([this](const absl::StatusOr<CreateVariablesReply>& reply) {
            if (!reply.ok()) return Fail(reply.status());
            copy_.Answered(clock_->Monotonic());
            TellPrimary();
          })));
}

void CopyAttachment::TellPrimary() {
  step_ = Step::kAwaitsAnswer;
  roles_->AddCopy(IfAlive<SetViewReply>([this](const absl::StatusOr<SetViewReply>& reply) {
    step_ = Step::kTransfer;
    if (reply.ok()) return;
    // It is told that it has a copy with each view from now on, so it is told that it has none.
    if (IsTransient(reply.status())) {
      step_ = Step::kTellPrimary;
    } else {
      Fail(reply.status());
    }
  }));
}

void CopyAttachment::Tick() {
  const absl::Duration now = clock_->Monotonic();
  if (outcome_.has_value() || roles_->is_changing()) return;
  if (step_ == Step::kTakeBack) return TakeBack();
  if (step_ == Step::kMakeCopy || step_ == Step::kAwaitsAnswer) return;
  if (const auto lost = copy_.WhyLost(now, patience_, copy_questions_.AwaitsAnswer());
      lost.has_value()) {
    return Fail(absl::UnavailableError(*lost));
  }
  if (step_ == Step::kTellPrimary) TellPrimary();
  if (now >= next_look_) Ask();
}

// The copy first: what the primary says after that is of a copy that lacks nothing.
void CopyAttachment::Ask() {
  const absl::Duration now = clock_->Monotonic();
  if (!questions_.MayAsk(now, patience_)) return;
  next_look_ = now + kTransferPoll;
  const uint64_t question = questions_.Ask(now);
  copy_questions_.Ask(now);  // has the same number
  roles_->other_place()->ps()->Call(
      kGetView, GetViewRequest(),
      On<SetViewReply>(executor_, IfAlive<SetViewReply>(
                                      [this, question](const absl::StatusOr<SetViewReply>& copy) {
                                        OnCopy(question, copy);
                                      })));
}

void CopyAttachment::OnCopy(uint64_t question, const absl::StatusOr<SetViewReply>& copy) {
  if (!copy_questions_.TakeAnswer(question)) return;
  const absl::Duration now = clock_->Monotonic();
  if (!copy.ok()) {
    questions_.TakeAnswer(question);
    copy_.Failed(copy.status(), now);
    next_look_ = now;
    return;
  }
  copy_.Answered(now);
  // Another chief may have made it anew.
  const bool is_ours =
      copy->role() == COPY && copy->epoch() == roles_->epoch() && copy->term() == roles_->term();
  if (!copy->has_variables() || !is_ours) {
    copy_.Lost(absl::UnavailableError("it was started again, without the variables"));
  }
  roles_->serving_place()->ps()->Call(
      kGetView, GetViewRequest(),
      On<SetViewReply>(executor_,
                       IfAlive<SetViewReply>([this, question, is_complete = !copy->awaits_state()](
                                                 const absl::StatusOr<SetViewReply>& primary) {
                         if (questions_.TakeAnswer(question)) OnPrimary(is_complete, primary);
                       })));
}

void CopyAttachment::OnPrimary(bool is_complete, const absl::StatusOr<SetViewReply>& primary) {
  // The calls that are made there find out what has become of it.
  if (!primary.ok() || step_ != Step::kTransfer || !roles_->IsAlone()) return;
  // The copy has refused a mean, and may lack it: neither of the two can serve.
  if (primary->is_deposed()) {
    outcome_ = LostVariablesError(roles_->name());
    return roles_->MarkLost(*outcome_);
  }
  const absl::Duration silent = absl::Milliseconds(primary->copy_silent_ms());
  if (silent >= patience_) {
    copy_.Lost(absl::UnavailableError(
        absl::StrCat("it has not answered the primary for ", absl::FormatDuration(silent))));
  }
  if (!primary->has_copy()) return Fail(absl::AbortedError("the primary has given it up"));
  if (is_complete && !copy_.HasLostVariables()) outcome_ = absl::OkStatus();
}

void CopyAttachment::Fail(const absl::Status& why) {
  if (outcome_.has_value() || step_ == Step::kTakeBack) return;
  failure_ = why;
  if (step_ == Step::kMakeCopy) {
    outcome_ = why;  // the primary has not been told
    return;
  }
  TakeBack();
}

void CopyAttachment::TakeBack() {
  step_ = Step::kTakeBack;
  if (roles_->is_changing()) return;
  roles_->GoOnAlone(absl::StrCat("the new copy of the shard of ", roles_->name(), " at ",
                                 roles_->other_place()->name(), " is given up: ",
                                 failure_.message(), ". The shard goes on without a copy"),
                    [this, alive = std::weak_ptr(is_alive_)](const absl::Status& status) {
                      // Given again with the next tick. Of another error callers find out.
                      if (alive.expired() || (!status.ok() && IsTransient(status))) return;
                      outcome_ = failure_;
                    });
}

}  // namespace lockstep::chief
