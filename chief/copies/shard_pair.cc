#include "chief/copies/shard_pair.h"

#include <algorithm>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/lost_variables.h"

namespace lockstep::chief {
namespace {

template <typename Request>
const Request& As(const google::protobuf::MessageLite& request) {
  return static_cast<const Request&>(request);
}

template <typename Reply>
Reply* As(google::protobuf::MessageLite* reply) {
  return static_cast<Reply*>(reply);
}

bool HasVariables(const absl::StatusOr<SetViewReply>& answer) {
  return answer.ok() && answer->has_variables();
}

void AskPlaces(const PairRoles& roles, absl::AnyInvocable<void(const PlaceAnswers&)> done) {
  struct Asked {
    PlaceAnswers answers;
    size_t missing = kNumPlaces;
    absl::AnyInvocable<void(const PlaceAnswers&)> done;
  };
  const auto asked = std::make_shared<Asked>();
  asked->done = std::move(done);
  for (const PlaceIndex place : {kHome, kHost}) {
    roles.place(place)->GetView([asked, place](absl::StatusOr<SetViewReply> answer) {
      asked->answers[place] = std::move(answer);
      if (--asked->missing == 0) asked->done(asked->answers);
    });
  }
}

bool Is(const MethodInfo& method, const MethodInfo& other) {
  return absl::string_view(method.path) == other.path;
}

}  // namespace

ShardPair::ShardPair(std::unique_ptr<Place> home, std::unique_ptr<Place> host,
                     absl::Duration patience, Executor* executor, const Clock* clock)
    : home_(std::move(home)),
      host_(std::move(host)),
      executor_(executor),
      roles_({home_.get(), host_.get()}, executor,
             [this](const absl::Status& why, std::optional<PlaceIndex> stays) {
               FailPending(why, stays);
             }),
      watch_(patience, &roles_, executor, clock),
      attacher_(patience, &roles_, executor, clock, [this] { watch_.Begin(); }),
      finish_notice_(&roles_, executor, clock) {}

void ShardPair::Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
                      google::protobuf::MessageLite* reply, StatusCallback done) {
  if (Is(method, kGetView)) return GetView(As<SetViewReply>(reply), std::move(done));
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
  if (Is(method, kRenewLease)) RenewOther(As<RenewLeaseRequest>(request));
  if (Is(method, kFinish)) {
    attacher_.Stop();
    finish_notice_.Begin(As<FinishRequest>(request));
  }
  Forward(method, request, reply, std::move(done));
}

void ShardPair::Tick() {
  // When the job is over both end.
  if (finish_notice_.has_begun()) return finish_notice_.Tick();
  watch_.Tick();
  attacher_.Tick();
}

// A standby may ask either place who commands. A new copy hears of this chief before it has its
// state, and a lease that ends there would have the standby take command from a chief that lives.
void ShardPair::RenewOther(const RenewLeaseRequest& request) {
  PsControl* const ps = roles_.other_place()->ps();
  if (ps != nullptr) ps->Call(kRenewLease, request, [](const absl::StatusOr<RenewLeaseReply>&) {});
}

void ShardPair::Forward(const MethodInfo& method, const google::protobuf::MessageLite& request,
                        google::protobuf::MessageLite* reply, StatusCallback done) {
  // The end of the job is told to both.
  const bool is_undecided = roles_.undecided().has_value() && !Is(method, kFinish);
  if (roles_.is_changing() || is_undecided) {
    return done(absl::UnavailableError(
        absl::StrCat(roles_.name(), ": the other ps of the shard takes its place")));
  }
  const bool is_lost = roles_.state() == PairState::kLost;
  const bool reaches_lost =
      (Is(method, kRenewLease) || Is(method, kFinish)) && HasLostVariables(roles_.why_lost());
  if (is_lost && !reaches_lost) return done(roles_.why_lost());
  const PlaceIndex to = is_lost ? kHome : roles_.serving();
  const uint64_t call = ++last_call_;
  pending_[call] = {reply, std::move(done), Is(method, kSave) ? std::optional(to) : std::nullopt};
  const std::shared_ptr<google::protobuf::MessageLite> own(reply->New());
  roles_.place(to)->ps()->Start(
      method, request, own.get(), [this, call, method, to, own](const absl::Status& status) {
        executor_->Post([this, call, method, to, own, status] {
          auto pending = pending_.extract(call);
          if (pending.empty()) return;
          const absl::Status noted =
              status.ok() ? NoteReply(to, method, *own) : watch_.NoteFailure(to, status);
          if (!noted.ok()) return pending.mapped().done(noted);
          pending.mapped().reply->CheckTypeAndMergeFrom(*own);
          pending.mapped().done(absl::OkStatus());
        });
      });
}

absl::Status ShardPair::NoteReply(PlaceIndex place, const MethodInfo& method,
                                  const google::protobuf::MessageLite& reply) {
  if (Is(method, kCommitStep)) {
    roles_.NoteCommitted(As<CommitStepReply>(reply).global_step());
  }
  return Is(method, kGetView) ? watch_.NoteView(place, As<SetViewReply>(reply)) : absl::OkStatus();
}

void ShardPair::FailPending(const absl::Status& why, std::optional<PlaceIndex> stays) {
  for (auto& [number, call] : std::exchange(pending_, {})) {
    if (stays.has_value() && call.saves_at == stays) {
      pending_.emplace(number, std::move(call));
    } else {
      call.done(why);
    }
  }
}

void ShardPair::GetView(SetViewReply* reply, StatusCallback done) {
  if (roles_.IsGuarded()) return Forward(kGetView, GetViewRequest(), reply, std::move(done));
  if (!roles_.IsAlone()) return ReadRoles(reply, std::move(done));
  Forward(kGetView, GetViewRequest(), reply,
          [this, reply, done = std::move(done)](const absl::Status& status) mutable {
            if (status.ok() && reply->has_variables()) return done(status);
            // It may have been started again, at another address.
            ReadRoles(reply, std::move(done));
          });
}

void ShardPair::ReadRoles(SetViewReply* reply, StatusCallback done) {
  AskPlaces(roles_, [this, reply, done = std::move(done)](const PlaceAnswers& answers) mutable {
    const absl::StatusOr<PairView> view = JudgePair(answers);
    const bool is_partly_lost =
        view.ok() && !view->reply.has_variables() && std::ranges::any_of(answers, HasVariables);
    if (!is_partly_lost) return done(TakeView(view, reply));
    // One may have become the copy after it was asked, and before the other one was.
    AskPlaces(roles_, [this, reply, done = std::move(done)](const PlaceAnswers& later) mutable {
      done(TakeView(JudgePair(later), reply));
    });
  });
}

bool ShardPair::IsAloneAsKnown(const PairView& view) const {
  return roles_.IsAlone() && view.reply.has_variables() && view.reply.epoch() == roles_.epoch() &&
         view.serving == roles_.serving();
}

absl::Status ShardPair::TakeView(const absl::StatusOr<PairView>& view, SetViewReply* reply) {
  if (!view.ok()) return view.status();
  // The shard had variables in this epoch, and neither place has all of them now: they are lost.
  if (!view->reply.has_variables() && attacher_.has_variables()) {
    roles_.MarkLost(LostVariablesError(roles_.name()));
  } else if (!IsAloneAsKnown(*view)) {
    roles_.Adopt(*view);
  }
  *reply = view->reply;
  return absl::OkStatus();
}

void ShardPair::ReadRolesAgain(const absl::Status& refusal, StatusCallback done) {
  const auto view = std::make_shared<SetViewReply>();
  ReadRoles(view.get(), [this, view, refusal, serving = roles_.serving(), state = roles_.state(),
                         done = std::move(done)](const absl::Status& looked) mutable {
    if (!looked.ok()) return done(looked);
    const bool is_as_before = serving == roles_.serving() && state == roles_.state();
    if (is_as_before || !view->has_variables()) return done(refusal);
    done(absl::UnavailableError(
        absl::StrCat(roles_.name(), ": another chief has changed who serves. Remedy: try again")));
  });
}

void ShardPair::LookForHost(const absl::Status& failure, StatusCallback done) {
  const auto view = std::make_shared<SetViewReply>();
  ReadRoles(view.get(),
            [this, view, failure, done = std::move(done)](const absl::Status& looked) mutable {
              if (!looked.ok()) return done(looked);
              done(view->has_variables() ? failure : LostVariablesError(roles_.name()));
            });
}

void ShardPair::SetView(const SetViewRequest& request, SetViewReply* reply, StatusCallback done) {
  if (request.epoch() > roles_.epoch()) return BeginEpoch(request, reply, std::move(done));
  // First the one that serves: of two chiefs one is faster there, and the other one stops.
  roles_.TellServing(request, [this, request, reply,
                               done = std::move(done)](absl::StatusOr<SetViewReply> told) mutable {
    const PlaceIndex to = roles_.serving();
    const bool is_known = roles_.IsGuarded() || roles_.IsAlone();
    if (!is_known && roles_.state() != PairState::kLost && LacksVariables(told.status())) {
      return ReadRolesAgain(told.status(), std::move(done));
    }
    if (!is_known && to == kHost && absl::IsUnavailable(told.status())) {
      return LookForHost(told.status(), std::move(done));
    }
    if (roles_.IsAlone() && absl::IsUnavailable(told.status())) FindLossAtHost();
    const absl::Status noted =
        told.ok() ? watch_.NoteView(to, *told) : watch_.NoteFailure(to, told.status());
    if (!noted.ok()) return done(noted);
    *reply = *std::move(told);
    // The chief before may have committed steps since this one has looked.
    roles_.NoteCommitted(reply->global_step());
    const bool is_pair = roles_.state() == PairState::kPair;
    // The chief before had it go on alone after it was asked for its view.
    if (is_pair && reply->has_variables() && !reply->has_copy() && !roles_.IsGuarded()) {
      roles_.ForgetCopy();
      return done(absl::UnavailableError(
          absl::StrCat(roles_.name(), ": the shard goes on without a copy. Remedy: try again")));
    }
    if (is_pair) return SetCopysView(request, reply, std::move(done));
    if (reply->has_variables()) roles_.Confirm();
    done(absl::OkStatus());
  });
}

// Another epoch is another state, at both. The ps with the copy may have been started again since.
void ShardPair::BeginEpoch(const SetViewRequest& request, SetViewReply* reply,
                           StatusCallback done) {
  roles_.Withdraw();
  attacher_.Stop();
  finish_notice_.Stop();
  host_->GetView([this, request, reply,
                  done = std::move(done)](const absl::StatusOr<SetViewReply>& host) mutable {
    if (!host.ok()) return done(host.status());
    if (roles_.is_changing()) {
      return done(absl::UnavailableError(
          absl::StrCat(roles_.name(), ": a change of the epoch before is under way")));
    }
    roles_.BeginEpoch(request.epoch());
    SetView(request, reply, std::move(done));
  });
}

// After the one that serves: what the copy says under this chief's term counts, since it may have
// been made anew, or promoted, after it was asked for its view.
void ShardPair::SetCopysView(const SetViewRequest& request, SetViewReply* reply,
                             StatusCallback done) {
  const PlaceIndex copy = OtherPlace(roles_.serving());
  roles_.TellCopy(request, [this, copy, reply, done = std::move(done)](
                               const absl::StatusOr<SetViewReply>& told) mutable {
    // An order that comes after the copy's promotion is refused.
    if (roles_.is_changing() || copy == roles_.serving()) {
      return done(absl::UnavailableError(
          absl::StrCat(roles_.name(), ": its copy takes its place. Remedy: try again")));
    }
    if (absl::IsAborted(told.status()) && !roles_.IsGuarded()) {
      return ReadRolesAgain(told.status(), std::move(done));
    }
    if (absl::IsUnavailable(told.status()) && !roles_.IsGuarded()) FindAgain(copy);
    if (!told.ok()) return done(watch_.NoteFailure(copy, told.status()));
    if (told->awaits_state()) {
      roles_.ForgetCopy();
      return done(absl::UnavailableError(
          absl::StrCat(roles_.name(),
                       ": its copy awaits state, so the shard goes on alone. Remedy: try again")));
    }
    if (reply->has_variables() && !told->has_variables() && !roles_.IsGuarded()) {
      return done(LostVariablesError(roles_.name()));
    }
    if (reply->has_copy() && reply->has_variables()) Guard();
    done(absl::OkStatus());
  });
}

void ShardPair::CreateVariables(const CreateVariablesRequest& request, CreateVariablesReply* reply,
                                StatusCallback done) {
  Forward(kCreateVariables, request, reply,
          [this, request, done = std::move(done)](const absl::Status& status) mutable {
            if (status.ok()) attacher_.SetVariables(request);
            if (!status.ok() || roles_.state() != PairState::kPair) return done(status);
            CreateCopy(request, std::move(done));
          });
}

void ShardPair::CreateCopy(const CreateVariablesRequest& request, StatusCallback done) {
  roles_.other_place()->ps()->Call(
      kCreateVariables, request,
      On<CreateVariablesReply>(executor_,
                               [this, done = std::move(done)](
                                   const absl::StatusOr<CreateVariablesReply>& created) mutable {
                                 if (created.ok()) Guard();
                                 if (absl::IsUnavailable(created.status())) FindAgain(kHost);
                                 done(created.status());
                               }));
}

void ShardPair::FindAgain(PlaceIndex place) {
  roles_.place(place)->GetView([](const absl::StatusOr<SetViewReply>&) {});
}

void ShardPair::FindLossAtHost() {
  if (roles_.serving() != kHost) return;
  host_->FindRestart([this, epoch = roles_.epoch()] {
    const bool is_over = epoch != roles_.epoch() || roles_.serving() != kHost;
    if (!is_over && roles_.IsAlone()) roles_.MarkLost(LostVariablesError(roles_.name()));
  });
}

void ShardPair::Guard() {
  if (roles_.IsGuarded() || roles_.state() != PairState::kPair) return;
  roles_.Confirm();
  watch_.Begin();
}

void ShardPair::WatchCommand(const WatchCommandRequest& request, WatchCommandReply* reply,
                             StatusCallback done) {
  const PlaceIndex asked = roles_.place(watched_)->ps() == nullptr ? kHome : watched_;
  const std::shared_ptr<WatchCommandReply> own = std::make_shared<WatchCommandReply>();
  roles_.place(asked)->ps()->Start(
      kWatchCommand, request, own.get(),
      [this, asked, own, reply, done = std::move(done)](const absl::Status& status) mutable {
        executor_->Post([this, asked, own, reply, status, done = std::move(done)]() mutable {
          const absl::Status known = OnCommand(asked, status, *own);
          if (known.ok()) *reply = std::move(*own);
          done(known);
        });
      });
}

// A ps that was started again has no chief; the other one may serve the shard, and know who
// commands.
absl::Status ShardPair::OnCommand(PlaceIndex asked, const absl::Status& status,
                                  const WatchCommandReply& reply) {
  const bool is_nobody = status.ok() && reply.command().state() == CommandStatus::NONE;
  if (!is_nobody && !absl::IsUnavailable(status)) {
    knows_nobody_ = false;
    return status;
  }
  const bool knew_nobody = std::exchange(knows_nobody_, is_nobody);
  watched_ = OtherPlace(watched_);
  // Its ps may have been started again, or has moved: then the copy server is elsewhere.
  const bool is_host_away = asked == kHost && !is_nobody;
  if (is_host_away || host_->ps() == nullptr) FindAgain(kHost);
  if (!is_nobody || knew_nobody) return status;
  return absl::UnavailableError(
      absl::StrCat(roles_.name(), " knows of no chief; its other ps has not answered"));
}

}  // namespace lockstep::chief
