#include "chief/copies/shard_pair.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chief/sync/retry.h"
#include "common/base/lost_variables.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(250);

template <typename Request>
const Request& As(const google::protobuf::MessageLite& request) {
  return static_cast<const Request&>(request);
}

template <typename Reply>
Reply* As(google::protobuf::MessageLite* reply) {
  return static_cast<Reply*>(reply);
}

bool Is(const MethodInfo& method, const MethodInfo& other) {
  return absl::string_view(method.path) == other.path;
}

// "host" of "host:port".
std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

absl::Status StartedAgain() {
  return absl::UnavailableError("it was started again, without the variables");
}

bool ShowsLoss(const absl::Status& status) {
  return HasLostVariables(status) || IsNoVariables(status);
}

}  // namespace

ShardPair::ShardPair(ShardPairOptions options, PsControl* primary, PsControl* host,
                     Executor* executor, const Clock* clock)
    : options_(std::move(options)),
      primary_(primary),
      host_(host),
      executor_(executor),
      clock_(clock) {}

void ShardPair::Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
                      google::protobuf::MessageLite* reply, StatusCallback done) {
  if (Is(method, kGetView) && !IsGuarded()) {
    return Look(As<SetViewReply>(reply), std::move(done));
  }
  if (Is(method, kSetView)) {
    return SetView(As<SetViewRequest>(request), As<SetViewReply>(reply), std::move(done));
  }
  if (Is(method, kCreateVariables)) {
    return CreateVariables(As<CreateVariablesRequest>(request), As<CreateVariablesReply>(reply),
                           std::move(done));
  }
  if (Is(method, kWatchCommand)) {
    return WatchCommand(As<WatchCommandRequest>(request), As<WatchCommandReply>(reply),
                        std::move(done));
  }
  // Standby chiefs and the processes of the job hear of both from either.
  if (Is(method, kRenewLease) && state_ == PairState::kPair) Tell(copy_, kRenewLease, request);
  if (Is(method, kFinish)) {
    if (copy_ != nullptr && copy_ != serving()) Tell(copy_, kFinish, request);
    if (primary_ != serving()) Tell(primary_, kFinish, request);
  }
  Forward(method, request, reply, std::move(done));
}

template <typename Request, typename Reply>
void ShardPair::Tell(PsControl* to, const PsMethod<Request, Reply>& method,
                     const google::protobuf::MessageLite& request) {
  to->Call(method, As<Request>(request), [](const absl::StatusOr<Reply>&) {});
}

void ShardPair::Forward(const MethodInfo& method, const google::protobuf::MessageLite& request,
                        google::protobuf::MessageLite* reply, StatusCallback done) {
  if (is_changing_) {
    return done(absl::UnavailableError(
        absl::StrCat(options_.name, ": the other ps of the shard takes its place")));
  }
  if (state_ == PairState::kLost) return done(LostVariablesError(options_.name));
  Member* const member = state_ == PairState::kMoved ? &copy_member_ : &primary_member_;
  const uint64_t call = ++last_call_;
  pending_[call] = {reply, std::move(done)};
  const std::shared_ptr<google::protobuf::MessageLite> own(reply->New());
  serving()->Start(
      method, request, own.get(), [this, call, method, member, own](const absl::Status& status) {
        executor_->Post([this, call, method, member, own, status] {
          auto pending = pending_.extract(call);
          if (pending.empty()) return;
          const absl::Status noted =
              status.ok() ? NoteAnswer(member, method, *own) : NoteFailure(member, status);
          if (!noted.ok()) return pending.mapped().done(noted);
          pending.mapped().reply->CheckTypeAndMergeFrom(*own);
          pending.mapped().done(absl::OkStatus());
        });
      });
}

absl::Status ShardPair::NoteAnswer(Member* member, const MethodInfo& method,
                                   const google::protobuf::MessageLite& reply) {
  if (Is(method, kCommitStep)) {
    committed_ = std::max(committed_, As<CommitStepReply>(reply).global_step());
  }
  const bool tells_state = Is(method, kGetView) || Is(method, kSetView);
  if (!IsGuarded() || !tells_state || As<SetViewReply>(reply).has_variables()) {
    return absl::OkStatus();
  }
  return NoteFailure(member, LostVariablesError(options_.name));
}

absl::Status ShardPair::NoteFailure(Member* member, absl::Status failure) {
  if (!IsGuarded()) return failure;
  if (ShowsLoss(failure)) {
    member->health.Lost(StartedAgain());
    failure = absl::UnavailableError(failure.message());
  }
  if (absl::IsUnavailable(failure)) next_look_ = absl::ZeroDuration();
  return failure;
}

void ShardPair::Look(SetViewReply* reply, StatusCallback done) {
  struct Answers {
    absl::StatusOr<SetViewReply> primary;
    absl::StatusOr<SetViewReply> copy;
    int missing = 2;
    StatusCallback done;
  };
  const auto answers = std::make_shared<Answers>();
  answers->done = std::move(done);
  const auto join = [this, answers, reply] {
    if (--answers->missing > 0) return;
    OnLooked(answers->primary, answers->copy, reply, std::move(answers->done));
  };
  primary_->Call(kGetView, GetViewRequest(),
                 On<SetViewReply>(executor_, [=](absl::StatusOr<SetViewReply> view) {
                   answers->primary = std::move(view);
                   join();
                 }));
  AskCopy([=](absl::StatusOr<SetViewReply> view) {
    answers->copy = std::move(view);
    join();
  });
}

void ShardPair::AskHost(Callback<SetViewReply> done) {
  GetViewRequest request;
  request.set_opens_copy_port(true);
  host_->Call(kGetView, request, On<SetViewReply>(executor_, std::move(done)));
}

void ShardPair::AskCopy(Callback<SetViewReply> done) {
  AskHost([this, done = std::move(done)](const absl::StatusOr<SetViewReply>& host) mutable {
    if (!host.ok()) return done(host.status());
    if (host->copy_port() == 0) {
      return done(absl::FailedPreconditionError(
          absl::StrCat(options_.host_name,
                       " keeps no copies. Remedy: install the same version "
                       "everywhere, and use a cluster spec with two ps")));
    }
    const std::string address = CopyAddress(*host);
    if (std::exchange(copy_address_, address) != address) {
      copies_.push_back(options_.connect(address));
      copy_ = copies_.back().get();
    }
    copy_->Call(kGetView, GetViewRequest(), On<SetViewReply>(executor_, std::move(done)));
  });
}

void ShardPair::OnLooked(const absl::StatusOr<SetViewReply>& primary,
                         const absl::StatusOr<SetViewReply>& copy, SetViewReply* reply,
                         StatusCallback done) {
  absl::StatusOr<PairView> view = JudgePair(primary, copy);
  if (!view.ok()) return done(view.status());
  state_ = view->state;
  is_confirmed_ = false;
  epoch_ = std::max<uint64_t>(epoch_, view->reply.epoch());
  committed_ = view->reply.global_step();
  *reply = std::move(view->reply);
  done(absl::OkStatus());
}

void ShardPair::SetView(const SetViewRequest& request, SetViewReply* reply, StatusCallback done) {
  if (request.epoch() > epoch_) return BeginEpoch(request, reply, std::move(done));
  SetViewRequest told = request;
  if (state_ == PairState::kPair) told.set_copy_address(copy_address_);
  view_ = request;
  // First the one that serves: of two chiefs one is faster there, and the other one stops.
  Forward(kSetView, told, reply,
          [this, request, reply, done = std::move(done)](const absl::Status& status) mutable {
            if (!status.ok() || state_ != PairState::kPair) return done(status);
            SetCopysView(request,
                         [this, reply, done = std::move(done)](absl::Status copys) mutable {
                           if (copys.ok() && reply->has_copy() && reply->has_variables()) Confirm();
                           done(std::move(copys));
                         });
          });
}

// Another epoch is another state, at both. The ps with the copy may have been started again since.
void ShardPair::BeginEpoch(const SetViewRequest& request, SetViewReply* reply,
                           StatusCallback done) {
  is_confirmed_ = false;
  AskCopy([this, request, reply,
           done = std::move(done)](const absl::StatusOr<SetViewReply>& copy) mutable {
    if (!copy.ok()) return done(copy.status());
    epoch_ = std::max<uint64_t>(epoch_, request.epoch());
    state_ = PairState::kPair;
    primary_member_.health = copy_member_.health = MemberHealth();
    SetView(request, reply, std::move(done));
  });
}

void ShardPair::SetCopysView(const SetViewRequest& request, StatusCallback done) {
  SetViewRequest copys = request;
  copys.set_role(COPY);
  copys.clear_members();
  copy_->Call(kSetView, copys,
              On<SetViewReply>(executor_, [this, done = std::move(done)](
                                              const absl::StatusOr<SetViewReply>& reply) mutable {
                done(reply.ok() ? absl::OkStatus() : NoteFailure(&copy_member_, reply.status()));
              }));
}

void ShardPair::CreateVariables(const CreateVariablesRequest& request, CreateVariablesReply* reply,
                                StatusCallback done) {
  if (state_ != PairState::kPair) {
    return Forward(kCreateVariables, request, reply, std::move(done));
  }
  Forward(kCreateVariables, request, reply,
          [this, request, done = std::move(done)](const absl::Status& status) mutable {
            if (!status.ok() || state_ != PairState::kPair) return done(status);
            copy_->Call(
                kCreateVariables, request,
                On<CreateVariablesReply>(
                    executor_, [this, done = std::move(done)](
                                   const absl::StatusOr<CreateVariablesReply>& created) mutable {
                      if (created.ok()) Confirm();
                      // It may be at another port now.
                      if (absl::IsUnavailable(created.status())) {
                        AskCopy([](const absl::StatusOr<SetViewReply>&) {});
                      }
                      done(created.status());
                    }));
          });
}

void ShardPair::Confirm() {
  if (IsGuarded() || state_ != PairState::kPair) return;
  is_confirmed_ = true;
  const absl::Duration now = clock_->Monotonic();
  primary_member_.health.Answered(now);
  copy_member_.health.Answered(now);
}

void ShardPair::WatchCommand(const WatchCommandRequest& request, WatchCommandReply* reply,
                             StatusCallback done) {
  const bool at_copy = watches_copy_ && copy_ != nullptr;
  PsControl* const ps = at_copy ? copy_ : serving();
  const std::shared_ptr<WatchCommandReply> own = std::make_shared<WatchCommandReply>();
  ps->Start(kWatchCommand, request, own.get(),
            [this, own, reply, at_copy, done = std::move(done)](absl::Status status) mutable {
              executor_->Post([this, own, reply, at_copy, status = std::move(status),
                               done = std::move(done)]() mutable {
                if (status.ok()) *reply = std::move(*own);
                // The other one knows, too.
                if (absl::IsUnavailable(status)) {
                  watches_copy_ = !at_copy;
                  if (copy_ == nullptr) AskCopy([](const absl::StatusOr<SetViewReply>&) {});
                }
                done(std::move(status));
              });
            });
}

void ShardPair::Tick() {
  const absl::Duration now = clock_->Monotonic();
  if (!IsGuarded() || is_changing_) return;
  const auto primary = primary_member_.health.WhyLost(now, options_.patience);
  const auto copy = copy_member_.health.WhyLost(now, options_.patience);
  if (primary_member_.health.HasLostVariables() && copy_member_.health.HasLostVariables()) {
    return Serve(PairState::kLost, absl::StrCat(options_.name, " is lost, and so is its copy"));
  }
  // With both away there is nobody to go on.
  if (primary.has_value() && !copy.has_value()) return MoveToCopy(*primary);
  if (copy.has_value() && !primary.has_value()) return GoOnAlone(*copy);
  if (now < next_look_) return;
  next_look_ = now + kLook;
  Ask(&primary_member_, primary_);
  Ask(&copy_member_, copy_);
}

void ShardPair::Ask(Member* member, PsControl* ps) {
  if (std::exchange(member->is_asked, true)) return;
  ps->Call(kGetView, GetViewRequest(),
           On<SetViewReply>(executor_, [this, member](const absl::StatusOr<SetViewReply>& reply) {
             OnState(member, reply);
           }));
}

void ShardPair::OnState(Member* member, const absl::StatusOr<SetViewReply>& reply) {
  member->is_asked = false;
  const absl::Duration now = clock_->Monotonic();
  if (!reply.ok()) {
    member->health.Failed(reply.status(), now);
    next_look_ = absl::ZeroDuration();
    if (member == &copy_member_) FindRestart();
    return;
  }
  member->health.Answered(now);
  if (!IsGuarded()) return;
  if (!reply->has_variables() || reply->epoch() != epoch_) {
    member->health.Lost(StartedAgain());
  }
  // The chief reaches both, and the one does not reach the other.
  const absl::Duration silent = absl::Milliseconds(reply->copy_silent_ms());
  if (member == &primary_member_ && silent >= options_.patience) {
    copy_member_.health.Lost(absl::UnavailableError(absl::StrCat(
        "it has not answered ", options_.name, " for ", absl::FormatDuration(silent))));
  }
}

void ShardPair::FindRestart() {
  AskHost([this](const absl::StatusOr<SetViewReply>& host) {
    const bool is_another = host.ok() && CopyAddress(*host) != copy_address_;
    if (is_another) copy_member_.health.Lost(StartedAgain());
  });
}

std::string ShardPair::CopyAddress(const SetViewReply& host) const {
  return absl::StrCat(HostOf(options_.host_address), ":", host.copy_port());
}

void ShardPair::MoveToCopy(const std::string& why) {
  is_changing_ = true;
  SetViewRequest request = view_;
  request.set_role(PRIMARY);
  request.clear_copy_address();
  request.set_global_step(committed_);
  copy_->Call(kSetView, request,
              On<SetViewReply>(executor_, [this, why](const absl::StatusOr<SetViewReply>& reply) {
                OnChanged(
                    PairState::kMoved,
                    absl::StrCat(options_.name, " is lost: ", why,
                                 ". Its copy serves the workers now, at ", options_.host_name),
                    reply);
              }));
}

void ShardPair::GoOnAlone(const std::string& why) {
  is_changing_ = true;
  SetViewRequest request = view_;
  request.clear_copy_address();
  primary_->Call(
      kSetView, request,
      On<SetViewReply>(executor_, [this, why](const absl::StatusOr<SetViewReply>& reply) {
        OnChanged(PairState::kAlone,
                  absl::StrCat("the copy of ", options_.name, " at ", options_.host_name,
                               " is lost: ", why, ". The shard goes on without a copy"),
                  reply);
      }));
}

void ShardPair::OnChanged(PairState to, const std::string& line,
                          const absl::StatusOr<SetViewReply>& reply) {
  is_changing_ = false;
  // Asked again with the next tick.
  if (!reply.ok() && IsTransient(reply.status())) return;
  // A newer chief commands, or this one is lost, too: callers find out.
  const bool serves = reply.ok() && reply->has_variables();
  Serve(serves ? to : PairState::kLost,
        serves ? line : absl::StrCat(options_.name, " is lost, and so is its copy"));
}

void ShardPair::Serve(PairState state, const std::string& line) {
  log::Warning(line);
  state_ = state;
  is_confirmed_ = false;
  for (auto& [call, pending] : std::exchange(pending_, {})) {
    pending.done(absl::UnavailableError(absl::StrCat(options_.name, ": another ps serves it now")));
  }
}

}  // namespace lockstep::chief
