#include "worker/strategy/replicated/step_reduction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/log/log.h"

namespace lockstep::worker {
namespace {

// Another group may end well. Who cancels this worker's training tells so through the source, too.
bool AnotherGroupMayHelp(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsCancelled(status);
}

// Its successor reads the next version from those that have the sum.
absl::Status LacksSum(GlobalStep step) {
  return WithExitCode(
      absl::UnavailableError(absl::StrCat("step ", step.value(), " was closed with the sum of a ",
                                          "group that this worker had lost touch with. Remedy: "
                                          "start it again")),
      ExitCode::kPeersLost);
}

// A copy without the reducer: the receiver must not destroy the reducer as its last owner.
ReducerOfGroup WithoutReducer(ReducerOfGroup group) {
  group.reducer = nullptr;
  return group;
}

}  // namespace

StepReduction::StepReduction(ReducerSource* source, Prepare prepare)
    : source_(source), prepare_(std::move(prepare)) {}

StepReduction::~StepReduction() {
  absl::MutexLock lock(&mutex_);
  failure_.Update(absl::CancelledError("training was cancelled"));
  if (newer_.has_value()) retired_.Add(std::move(newer_->reducer));
  for (auto* reducer : {&group_.reducer, &running_, &sum_}) retired_.Add(std::move(*reducer));
}

void StepReduction::Listen() {
  source_->Next([this](absl::StatusOr<ReducerOfGroup> group) { OnGroup(std::move(group)); });
}

void StepReduction::OnGroup(absl::StatusOr<ReducerOfGroup> group) {
  const bool goes_on = group.ok();
  {
    absl::MutexLock lock(&mutex_);
    if (!goes_on) {
      failure_.Update(group.status());
    } else {
      if (newer_.has_value()) retired_.Add(std::move(newer_->reducer));
      newer_ = *std::move(group);
    }
  }
  Advance();
  if (goes_on) Listen();
}

void StepReduction::AwaitGroup(Callback<ReducerOfGroup> done) {
  bool listens = false;
  {
    absl::MutexLock lock(&mutex_);
    await_group_ = std::move(done);
    listens = std::exchange(is_listening_, true);
  }
  Advance();
  if (!listens) Listen();
}

void StepReduction::Reduce(GlobalStep step, absl::Span<const std::vector<TensorView>> gradients,
                           StatusCallback done) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!is_open_);
    if (sum_ != nullptr && sum_ != group_.reducer) retired_.Add(std::move(sum_));
    sum_ = nullptr;
    is_open_ = true;
    step_ = step;
    gradients_ = gradients;
    is_due_ = true;
    reduced_ = std::move(done);
  }
  Advance();
}

void StepReduction::Release(StatusCallback done) {
  {
    absl::MutexLock lock(&mutex_);
    released_ = std::move(done);
  }
  Advance();
}

const GroupReducer& StepReduction::sum() const {
  absl::MutexLock lock(&mutex_);
  return *sum_;
}

bool StepReduction::is_first() const {
  absl::MutexLock lock(&mutex_);
  return group_.is_first;
}

void StepReduction::Advance() {
  while (true) {
    Action action;
    {
      absl::MutexLock lock(&mutex_);
      action = NextAction();
    }
    if (action.kind == Action::kNothing) return;
    Run(std::move(action));
  }
}

// While the step is open: that of a later step begins with the next Reduce.
bool StepReduction::TakeNewerGroup() {
  if (!newer_.has_value() || released_ || newer_->step > step_) return false;
  if (sum_ != group_.reducer) retired_.Add(std::move(group_.reducer));
  group_ = *std::exchange(newer_, std::nullopt);
  has_failed_ = is_failure_noted_ = false;
  is_due_ = true;
  return true;
}

StepReduction::Action StepReduction::NextAction() {
  if (running_ != nullptr) return {};
  if (!failure_.ok()) {
    if (await_group_) {
      return {.kind = Action::kTellGroup,
              .status = failure_,
              .tell_group = std::exchange(await_group_, nullptr)};
    }
    StatusCallback* const tell = reduced_ ? &reduced_ : &released_;
    if (!*tell) return {};
    return {.kind = Action::kTell, .status = failure_, .tell = std::exchange(*tell, nullptr)};
  }
  if (await_group_ && newer_.has_value()) {
    if (group_.reducer != sum_) retired_.Add(std::move(group_.reducer));
    group_ = *std::exchange(newer_, std::nullopt);
    has_failed_ = is_failure_noted_ = false;
    return {.kind = Action::kTellGroup,
            .tell_group = std::exchange(await_group_, nullptr),
            .group = WithoutReducer(group_)};
  }
  if (!is_open_) return {};
  const bool is_new = TakeNewerGroup();
  if (is_due_ && !has_failed_) {
    is_due_ = false;
    running_ = group_.reducer;
    if (!is_new) return {.kind = Action::kReduce};
    return {.kind = Action::kReduce, .group = WithoutReducer(group_)};
  }
  if (sum_ != nullptr && reduced_) {
    return {.kind = Action::kTell, .tell = std::exchange(reduced_, nullptr)};
  }
  const bool lacks_sum = has_failed_ && (sum_ == nullptr || group_.sums_differ);
  if (released_) {
    is_open_ = false;
    Action action{.kind = Action::kTell, .tell = std::exchange(released_, nullptr)};
    if (lacks_sum) action.status = LacksSum(step_);
    return action;
  }
  if (lacks_sum && !std::exchange(is_failure_noted_, true)) {
    return {.kind = Action::kNoteFailure, .failed_view = group_.view};
  }
  return {};
}

void StepReduction::Run(Action action) {
  switch (action.kind) {
    case Action::kNothing:
      return;
    case Action::kTellGroup:
      if (!action.status.ok()) return action.tell_group(action.status);
      return action.tell_group(*std::move(action.group));
    case Action::kTell:
      return action.tell(action.status);
    case Action::kNoteFailure:
      return source_->NoteFailure(action.failed_view);
    case Action::kReduce:
      if (!action.group.has_value()) return OnPrepared(absl::OkStatus());
      return prepare_(*action.group, [this](const absl::Status& status) { OnPrepared(status); });
  }
}

void StepReduction::OnPrepared(const absl::Status& status) {
  if (!status.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      running_ = nullptr;
      failure_.Update(status);
    }
    return Advance();
  }
  GroupReducer* reducer = nullptr;
  int64_t step = 0;
  absl::Span<const std::vector<TensorView>> gradients;
  {
    absl::MutexLock lock(&mutex_);
    reducer = running_.get();
    step = step_.value();
    gradients = gradients_;
  }
  reducer->Reduce(step, gradients, [this](const absl::Status& reduced) { OnReduced(reduced); });
}

void StepReduction::OnReduced(const absl::Status& status) {
  const bool may_help = AnotherGroupMayHelp(status);
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      if (sum_ != nullptr && sum_ != running_) retired_.Add(std::move(sum_));
      sum_ = running_;
    } else if (may_help) {
      has_failed_ = true;
    } else {
      failure_.Update(status);
    }
    // Its group still has it.
    running_ = nullptr;
  }
  if (may_help) {
    log::Warning(absl::StrCat("a reduction of gradients has ended, a new group is waited for: ",
                              status.message()));
  }
  Advance();
}

}  // namespace lockstep::worker
