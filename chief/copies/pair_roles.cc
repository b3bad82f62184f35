#include "chief/copies/pair_roles.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/sync/retry.h"
#include "common/base/lost_variables.h"
#include "common/log/log.h"

namespace lockstep::chief {

PairRoles::PairRoles(const Places& places, Executor* executor, OnChange on_change)
    : places_(places), executor_(executor), on_change_(std::move(on_change)) {}

std::optional<PlaceIndex> PairRoles::undecided() const {
  if (!undecided_.has_value()) return std::nullopt;
  return undecided_->to;
}

void PairRoles::Adopt(const PairView& view) {
  state_ = view.state;
  undecided_.reset();
  serving_ = view.serving;
  is_confirmed_ = false;
  has_new_copy_ = false;
  epoch_ = std::max<uint64_t>(epoch_, view.reply.epoch());
  committed_ = view.reply.global_step();
}

void PairRoles::BeginEpoch(uint64_t epoch) {
  epoch_ = std::max(epoch_, epoch);
  state_ = PairState::kPair;
  serving_ = kHome;
  is_confirmed_ = false;
  undecided_.reset();
  has_new_copy_ = false;
  committed_ = 0;
  // What they would say is of the epoch before.
  Interrupt(TryAgain("another epoch begins"));
}

void PairRoles::Withdraw() {
  is_confirmed_ = false;
  undecided_.reset();
}

void PairRoles::NoteCommitted(int64_t global_step) {
  committed_ = std::max(committed_, global_step);
}

void PairRoles::TellServing(const SetViewRequest& view, Callback<SetViewReply> done) {
  view_ = view;
  if (state_ == PairState::kLost) return done(why_lost_);
  if (is_changing_ || undecided_.has_value() || told_.has_value()) {
    return done(absl::UnavailableError(
        absl::StrCat(name(), ": another view of the shard is under way. Remedy: try again")));
  }
  SetViewRequest request = view;
  request.set_number(++last_order_);
  if (state_ == PairState::kPair || has_new_copy_) {
    request.set_copy_address(other_place()->address());
    request.set_makes_copy(has_new_copy_);
  }
  told_ = Told{last_order_, std::move(done)};
  serving_place()->ps()->Call(
      kSetView, request,
      On<SetViewReply>(executor_, [this, order = last_order_](absl::StatusOr<SetViewReply> reply) {
        if (!told_.has_value() || told_->order != order) return;
        std::exchange(told_, std::nullopt)->done(std::move(reply));
      }));
}

void PairRoles::TellCopy(const SetViewRequest& view, Callback<SetViewReply> done) {
  SetViewRequest request = view;
  request.set_number(++last_order_);
  request.set_role(COPY);
  request.clear_members();
  other_place()->ps()->Call(kSetView, request, On<SetViewReply>(executor_, std::move(done)));
}

void PairRoles::ForgetCopy() {
  state_ = PairState::kAlone;
  is_confirmed_ = false;
}

void PairRoles::MakeCopy(Callback<SetViewReply> done) {
  SetViewRequest view = view_;
  view.set_makes_copy(true);
  TellCopy(view, std::move(done));
}

void PairRoles::AddCopy(Callback<SetViewReply> done) {
  has_new_copy_ = true;
  TellServing(SetViewRequest(view_), std::move(done));
}

void PairRoles::BecomePair() {
  state_ = PairState::kPair;
  is_confirmed_ = true;
  has_new_copy_ = false;
}

void PairRoles::Promote(const std::string& why, StatusCallback done) {
  const PlaceIndex to = OtherPlace(serving_);
  SetViewRequest request = view_;
  request.set_role(PRIMARY);
  request.set_global_step(committed_);
  const std::string line =
      to == kHost ? absl::StrCat(name(), " is lost: ", why,
                                 ". Its copy serves the workers now, at ", places_[kHost]->name())
                  : absl::StrCat("the copy of ", name(), " at ", places_[kHost]->name(),
                                 ", which served the workers, is lost: ", why, ". ", name(),
                                 " serves them again");
  Order({to, std::move(request), line}, std::move(done));
}

void PairRoles::GoOnAlone(const std::string& line, StatusCallback done) {
  Order({serving_, view_, line}, std::move(done));
}

void PairRoles::RepeatChange(StatusCallback done) { Order(Change(*undecided_), std::move(done)); }

void PairRoles::MarkLost(absl::Status why) {
  log::Warning(absl::IsAborted(why)
                   ? absl::StrCat("the shard of ", name(), " obeys another chief: ", why.message())
                   : absl::StrCat(name(), " is lost, and so is its copy"));
  state_ = PairState::kLost;
  undecided_.reset();
  why_lost_ = std::move(why);
  is_confirmed_ = false;
  Interrupt(why_lost_);
}

void PairRoles::Order(const Change& change, StatusCallback done) {
  is_changing_ = true;
  has_new_copy_ = false;
  if (IsGuarded()) undecided_ = change;
  SetViewRequest request = change.request;
  request.set_number(++last_order_);
  // An order before this one that arrives late is refused once this one is taken: nobody is to
  // hear that.
  Interrupt(TryAgain("another ps of the shard takes its place"), ServesOn(change.to));
  places_[change.to]->ps()->Call(
      kSetView, request,
      On<SetViewReply>(executor_, [this, change, done = std::move(done)](
                                      const absl::StatusOr<SetViewReply>& reply) mutable {
        is_changing_ = false;
        const absl::Status changed = OnChanged(change, reply);
        if (changed.ok() || !IsTransient(changed)) undecided_.reset();
        done(changed);
      }));
}

absl::Status PairRoles::OnChanged(const Change& change, const absl::StatusOr<SetViewReply>& reply) {
  if (!reply.ok()) return reply.status();
  if (!reply->has_variables()) return LostVariablesError(name());
  log::Warning(change.line);
  const std::optional<PlaceIndex> stays = ServesOn(change.to);
  state_ = PairState::kAlone;
  serving_ = change.to;
  is_confirmed_ = true;
  Interrupt(TryAgain("another ps serves it now"), stays);
  return absl::OkStatus();
}

void PairRoles::Interrupt(const absl::Status& why, std::optional<PlaceIndex> stays) {
  if (auto told = std::exchange(told_, std::nullopt); told.has_value()) told->done(why);
  on_change_(why, stays);
}

std::optional<PlaceIndex> PairRoles::ServesOn(PlaceIndex to) const {
  return to == serving_ ? std::optional(to) : std::nullopt;
}

absl::Status PairRoles::TryAgain(absl::string_view why) const {
  return absl::UnavailableError(absl::StrCat(name(), ": ", why));
}

}  // namespace lockstep::chief
