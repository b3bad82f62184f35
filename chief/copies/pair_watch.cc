#include "chief/copies/pair_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/sync/retry.h"
#include "common/base/lost_variables.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kWatchPeriod = absl::Milliseconds(250);

absl::Status StartedAgain() {
  return absl::UnavailableError("it was started again, without the variables");
}

}  // namespace

PairWatch::PairWatch(absl::Duration patience, PairRoles* roles, Executor* executor,
                     const Clock* clock)
    : patience_(patience), roles_(roles), executor_(executor), clock_(clock) {}

void PairWatch::Begin() {
  const absl::Duration now = clock_->Monotonic();
  ++generation_;
  for (Watched& watched : watched_) {
    watched = Watched();
    watched.health.Answered(now);
  }
}

void PairWatch::Tick() {
  const absl::Duration now = clock_->Monotonic();
  if (!roles_->IsGuarded() || roles_->is_changing()) return;
  const Watched& primary = watched_[roles_->serving()];
  const Watched& copy = watched_[OtherPlace(roles_->serving())];
  if (primary.health.HasLostVariables() && copy.health.HasLostVariables()) {
    return roles_->MarkLost(LostVariablesError(roles_->name()));
  }
  if (const auto told = roles_->undecided(); told.has_value()) return SettleChange(*told);
  const auto primary_lost = primary.WhyLost(now, patience_);
  const auto copy_lost = copy.WhyLost(now, patience_);
  // With both away there is nobody to go on.
  if (primary_lost.has_value() && !copy_lost.has_value()) return Promote(*primary_lost);
  if (copy_lost.has_value() && !primary_lost.has_value()) return GoOnAlone(*copy_lost);
  AskBothPlaces();
}

void PairWatch::AskBothPlaces() {
  const absl::Duration now = clock_->Monotonic();
  if (now < next_look_) return;
  next_look_ = now + kWatchPeriod;
  Ask(kHome);
  Ask(kHost);
}

// It may have made steps that the other one lacks, so that one never goes on.
void PairWatch::SettleChange(PlaceIndex told) {
  if (watched_[told].health.HasLostVariables()) {
    return roles_->MarkLost(LostVariablesError(roles_->name()));
  }
  AskBothPlaces();
  roles_->RepeatChange(AfterOrder());
}

void PairWatch::Promote(const std::string& why) { roles_->Promote(why, AfterOrder()); }

void PairWatch::GoOnAlone(const std::string& why) {
  roles_->GoOnAlone(absl::StrCat("the copy of the shard of ", roles_->name(), " at ",
                                 roles_->other_place()->name(), " is lost: ", why,
                                 ". The shard goes on without a copy"),
                    AfterOrder());
}

StatusCallback PairWatch::AfterOrder() {
  return [this](const absl::Status& status) {
    if (status.ok() || IsTransient(status)) return;
    // A newer chief commands, or this ps is lost, too: callers find out.
    roles_->MarkLost(absl::IsAborted(status) ? status : LostVariablesError(roles_->name()));
  };
}

absl::Status PairWatch::NoteFailure(PlaceIndex place, absl::Status failure) {
  if (!roles_->IsGuarded()) return failure;
  if (LacksVariables(failure)) {
    watched_[place].health.Lost(StartedAgain());
    failure = absl::UnavailableError(failure.message());
  }
  if (absl::IsUnavailable(failure)) next_look_ = absl::ZeroDuration();
  return failure;
}

absl::Status PairWatch::NoteView(PlaceIndex place, const SetViewReply& view) {
  if (!roles_->IsGuarded()) return absl::OkStatus();
  if (!view.has_variables()) return NoteFailure(place, LostVariablesError(roles_->name()));
  JudgeByPrimary(place, view);
  return absl::OkStatus();
}

void PairWatch::JudgeByPrimary(PlaceIndex place, const SetViewReply& view) {
  if (place != roles_->serving()) return;
  // The copy has all that the primary has shown.
  if (view.is_deposed()) {
    return watched_[place].health.Lost(absl::UnavailableError("its copy has refused its update"));
  }
  // The copy has refused its state, or cannot be reached, and lacks steps that others have seen.
  if (view.has_copy()) return;
  watched_[OtherPlace(place)].health.Lost(
      absl::UnavailableError(absl::StrCat(roles_->name(), " has given it up")));
}

void PairWatch::Ask(PlaceIndex place) {
  const absl::Duration now = clock_->Monotonic();
  if (!watched_[place].questions.MayAsk(now, patience_)) return;
  const uint64_t question = watched_[place].questions.Ask(now);
  roles_->place(place)->ps()->Call(
      kGetView, GetViewRequest(),
      On<SetViewReply>(executor_, [this, place, question, generation = generation_](
                                      const absl::StatusOr<SetViewReply>& view) {
        if (generation == generation_) OnView(place, question, view);
      }));
}

void PairWatch::OnView(PlaceIndex place, uint64_t question,
                       const absl::StatusOr<SetViewReply>& view) {
  Watched& watched = watched_[place];
  if (!watched.questions.TakeAnswer(question)) return;
  const absl::Duration now = clock_->Monotonic();
  if (!view.ok()) {
    watched.health.Failed(view.status(), now);
    next_look_ = absl::ZeroDuration();
    roles_->place(place)->FindRestart([this, &watched, generation = generation_] {
      if (generation == generation_) watched.health.Lost(StartedAgain());
    });
    return;
  }
  watched.health.Answered(now);
  if (!roles_->IsGuarded()) return;
  if (view->term() > roles_->term()) {
    return roles_->MarkLost(absl::AbortedError(
        absl::StrCat(roles_->place(place)->name(), " is in term ", view->term(),
                     ", this chief's is ", roles_->term(), ": another chief commands")));
  }
  // One that was told to serve may have obeyed.
  const bool may_serve = place == roles_->serving() || roles_->undecided() == place;
  const bool may_copy = place != roles_->serving();
  const bool is_in_role = !view->awaits_state() && (view->role() == COPY ? may_copy : may_serve);
  if (!view->has_variables() || view->epoch() != roles_->epoch() || !is_in_role) {
    return watched.health.Lost(StartedAgain());
  }
  JudgeByPrimary(place, *view);
  // The chief reaches both, and the one does not reach the other.
  const absl::Duration silent = absl::Milliseconds(view->copy_silent_ms());
  if (place == roles_->serving() && silent >= patience_) {
    watched_[OtherPlace(place)].health.Lost(absl::UnavailableError(absl::StrCat(
        "it has not answered ", roles_->name(), " for ", absl::FormatDuration(silent))));
  }
}

}  // namespace lockstep::chief
