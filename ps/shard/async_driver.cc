#include <algorithm>
#include <bit>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer_proto/learning_rate.h"
#include "ps/shard/step_driver.h"

namespace lockstep::ps {
namespace {

class AsyncDriver final : public StepDriver {
 public:
  AsyncDriver(const Owners& owners, std::optional<GlobalStep> end);

  void EndEpoch() override;
  // Lets the step close with the next gradient, unless the shard has stopped or pauses.
  void BeginStep() override;
  void OnTaken(const TakenVariable& taken) override;
  void AnswerKept(const std::shared_ptr<const Snapshot>& snapshot,
                  DeferredCallbacks* deferred) override;
  bool IsBusy() const override { return true; }
  bool has_stopped() const override { return has_stopped_; }
  std::vector<uint64_t> staleness() const override { return staleness_; }

 private:
  // The step shard waits for the step. What is to be kept of a step that is over, and of any at
  // another shard, is what there is as soon as no variable is being applied: until then nothing
  // further is taken.
  absl::Status ParkGrant(const GrantArguments& arguments, Callback<ClosedStep>* done,
                         DeferredCallbacks* deferred) override;
  std::optional<Milestone> MilestoneOfOpenStep() const override;

  const LearningRateSchedule learning_rate_;
  const std::optional<GlobalStep> end_;
  std::vector<uint64_t> staleness_;  // gradients of staleness 0, 1, 2-3, 4-7, ... when applied
  bool is_paused_ = false;           // until the chief has what it wants to be kept
  bool has_stopped_ = false;
  bool is_over_ = false;
};

AsyncDriver::AsyncDriver(const Owners& owners, std::optional<GlobalStep> end)
    : StepDriver(owners),
      learning_rate_(ToSchedule(owners.variables->config.optimizer(0).learning_rate())),
      end_(end) {}

void AsyncDriver::EndEpoch() {
  is_over_ = true;
  StepDriver::EndEpoch();
}

void AsyncDriver::BeginStep() {
  const GlobalStep step = owners_.step->shard_step();
  has_stopped_ |= end_.has_value() && step >= *end_;
  // Where nothing takes gradients there is nothing that a step could wait for.
  if (has_stopped_ || is_paused_ || is_over_ || owners_.step->IsEmpty()) return;
  GrantTerms terms{.required = 1,
                   .learning_rate = LearningRateAt(learning_rate_, step),
                   .commit = owners_.tokens != nullptr,
                   .last = step.next() == end_};
  for (const ParkedGrant& grant : grants_) {
    if (grant.step != step) continue;
    terms.keep_values |= grant.keeps.keep_values;
    terms.keep_slots |= grant.keeps.keep_slots;
  }
  const auto granted = owners_.step->Grant(step, terms);
  LOCKSTEP_CHECK(granted.ok());
}

void AsyncDriver::OnTaken(const TakenVariable& taken) {
  for (const HeldGradient& gradient : taken.taken.gradients) {
    const int64_t staleness =
        SaturatingSubtract(taken.taken.step.value(), gradient.local_step.value());
    // A local_step from the future, which only a peer in error has, is not stale.
    const size_t bucket = staleness <= 0 ? 0 : std::bit_width(static_cast<uint64_t>(staleness));
    if (bucket >= staleness_.size()) staleness_.resize(bucket + 1);
    ++staleness_[bucket];
  }
}

absl::Status AsyncDriver::ParkGrant(const GrantArguments& arguments, Callback<ClosedStep>* done,
                                    DeferredCallbacks* deferred) {
  const bool waits = owners_.tokens != nullptr && arguments.step >= owners_.step->shard_step();
  if (!waits && !arguments.keep_values && !arguments.keep_slots && !arguments.last) {
    deferred->Answer<ClosedStep>(std::move(*done), ClosedNow(arguments.step));
    return absl::OkStatus();
  }
  CancelGrant(arguments.step, deferred);
  if (grants_.size() >= limits::kMaxParkedGrants) {
    return absl::ResourceExhaustedError(absl::StrCat("grant of step ", arguments.step.value(), ": ",
                                                     grants_.size(),
                                                     " grants wait for their steps, and no more "
                                                     "may"));
  }
  const GrantTerms keeps{.keep_values = arguments.keep_values, .keep_slots = arguments.keep_slots};
  grants_.push_back({arguments.step, std::move(*done), keeps, !waits, arguments.last});
  if (waits) {
    BeginStep();
  } else {
    is_paused_ = true;
    owners_.step->Revoke();
  }
  return absl::OkStatus();
}

std::optional<Milestone> AsyncDriver::MilestoneOfOpenStep() const {
  if (!is_paused_ || !owners_.step->IsQuiet()) return std::nullopt;
  GrantTerms terms;
  for (const ParkedGrant& grant : grants_) {
    terms.keep_values |= grant.now && grant.keeps.keep_values;
    terms.keep_slots |= grant.now && grant.keeps.keep_slots;
  }
  return Milestone{terms, false};
}

void AsyncDriver::AnswerKept(const std::shared_ptr<const Snapshot>& snapshot,
                             DeferredCallbacks* deferred) {
  std::erase_if(grants_, [&](ParkedGrant& grant) {
    if (!grant.now) return false;
    if (grant.keeps.keep_values || grant.keeps.keep_slots) {
      owners_.snapshots->Keep(grant.step.next(), snapshot);
    }
    has_stopped_ |= grant.last;
    deferred->Answer<ClosedStep>(std::move(grant.done), ClosedNow(grant.step));
    return true;
  });
  is_paused_ = false;
  BeginStep();
}

}  // namespace

std::unique_ptr<StepDriver> StepDriver::Create(const Owners& owners,
                                               std::optional<GlobalStep> end) {
  if (owners.variables->config.is_asynchronous()) return std::make_unique<AsyncDriver>(owners, end);
  return absl::WrapUnique(new StepDriver(owners));
}

}  // namespace lockstep::ps
