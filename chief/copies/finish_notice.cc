#include "chief/copies/finish_notice.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

FinishNotice::FinishNotice(PairRoles* roles, Executor* executor, const Clock* clock)
    : roles_(roles), executor_(executor), clock_(clock) {}

void FinishNotice::Begin(const FinishRequest& request) {
  if (request_.has_value()) return;
  request_ = request;
  told_ = {};
  Tick();
}

std::optional<PlaceIndex> FinishNotice::Untold() const {
  const PlaceIndex other = OtherPlace(roles_->serving());
  const bool is_told = told_[other].has_answered || roles_->place(other)->ps() == nullptr;
  return !request_.has_value() || is_told ? std::nullopt : std::make_optional(other);
}

void FinishNotice::Tick() {
  const std::optional<PlaceIndex> place = Untold();
  if (!place.has_value()) return;
  const Retry& retry = told_[*place].retry;
  if (retry.is_idle() || retry.IsDue(clock_->Monotonic())) Send(*place);
}

void FinishNotice::Send(PlaceIndex place) {
  told_[place].retry.Sent();
  roles_->place(place)->ps()->Call(
      kFinish, *request_,
      On<FinishReply>(executor_, [this, place](const absl::StatusOr<FinishReply>& reply) {
        OnAnswer(place, reply.status());
      }));
}

// One that refuses has heard it.
void FinishNotice::OnAnswer(PlaceIndex place, const absl::Status& status) {
  Told& told = told_[place];
  told.has_answered = status.ok() || !IsTransient(status);
  told.problem = status;
  told.has_answered ? told.retry.Succeeded() : told.retry.Failed(status, clock_->Monotonic());
}

std::string FinishNotice::DescribeWaiting() const {
  const std::optional<PlaceIndex> place = Untold();
  if (!place.has_value()) return "";
  const absl::Status& problem = told_[*place].problem;
  if (!problem.ok()) return std::string(problem.message());
  return absl::StrCat(roles_->place(*place)->name(), " has not answered yet");
}

}  // namespace lockstep::chief
