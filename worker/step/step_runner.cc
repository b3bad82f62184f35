#include "worker/step/step_runner.h"

#include <utility>

#include "common/base/await.h"
#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

StepRunner::StepRunner(const StepRunnerOptions& options, const VariableLayout& layout,
                       UpdateStrategy* strategy, std::vector<TrainingTowers*> towers,
                       Pipeline* data, BatchRows* rows, Progress* progress)
    : options_(options),
      layout_(layout),
      strategy_(strategy),
      towers_(std::move(towers)),
      data_(data),
      rows_(rows),
      progress_(progress),
      random_seed_(options.random_seed) {
  LOCKSTEP_CHECK(towers_.size() == layout_.turns().num_losses());
}

absl::Status StepRunner::Run() {
  absl::Status end = RunSteps();
  if (end.ok()) {
    progress_->Finish();
  } else {
    progress_->WaitFor("");
    strategy_->Cancel();
  }
  return end;
}

absl::Status StepRunner::RunSteps() {
  GlobalStep step = options_.first_step;
  const absl::Duration start = options_.clock->Monotonic();
  if (options_.share.has_value()) LOCKSTEP_RETURN_IF_ERROR(UseShare(*options_.share));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const StepOutcome outcome, RunStep(step));
    progress_->Trained(absl::ToDoubleSeconds(options_.clock->Monotonic() - start));
    if (outcome.done) return absl::OkStatus();
    step = outcome.next;
    if (outcome.share.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(UseShare(*outcome.share));
    } else if (share_.has_value()) {
      return absl::InternalError(absl::StrCat("the token of step ", step.value(),
                                              " does not say what this worker takes of it"));
    }
    progress_->StartStep(outcome.local_step);
  }
}

absl::Status StepRunner::UseShare(const ReplicaShare& share) {
  const bool stays =
      share_.has_value() && share.total == share_->total && share.position == share_->position;
  share_ = share;
  has_taken_part_ |= share.takes_part();
  if (stays || !share.takes_part()) return absl::OkStatus();
  batches_ = nullptr;
  random_seed_ = MixSeeds(options_.job_seed, share.position);
  return data_->UseShare(share);
}

absl::StatusOr<StepOutcome> StepRunner::SkipStep(GlobalStep step) {
  // One that is about to join may be in a view that it has not heard of: its gradient is awaited.
  if (has_taken_part_ && options_.departs != nullptr && *options_.departs) {
    return absl::CancelledError(
        absl::StrCat("from step ", step.value(), " on the others share the global batch"));
  }
  progress_->WaitFor(strategy_);
  LOCKSTEP_RETURN_IF_ERROR(Await<StepValues>([&](Callback<StepValues> done) {
                             strategy_->BeginStep({.step = step, .is_skipped = true},
                                                  std::move(done));
                           }).status());
  return EndStep(std::nullopt);
}

absl::StatusOr<StepOutcome> StepRunner::RunStep(GlobalStep step) {
  if (step.value() >= options_.max_steps) return SkipStep(step);
  if (share_.has_value() && !share_->takes_part()) return SkipStep(step);
  if (options_.timeline != nullptr) options_.timeline->Started(step);
  LOCKSTEP_RETURN_IF_ERROR(Read(step));
  progress_->WaitFor(strategy_);
  LOCKSTEP_ASSIGN_OR_RETURN(const StepValues values,
                            Await<StepValues>([&](Callback<StepValues> done) {
                              strategy_->BeginStep({step, rows_->rows()}, std::move(done));
                            }));
  if (options_.timeline != nullptr) options_.timeline->HaveVariables();
  if (values.is_superseded) return EndStep(std::nullopt);
  progress_->StartStep(values.version);
  progress_->WaitFor("");
  LOCKSTEP_RETURN_IF_ERROR(Train(step, values));
  LOCKSTEP_ASSIGN_OR_RETURN(const StepOutcome outcome, EndStep(PredictNext()));
  if (options_.timeline != nullptr) options_.timeline->Pushed(outcome.judged_at);
  progress_->Pushed(outcome.accepted, outcome.stale);
  return outcome;
}

absl::StatusOr<StepOutcome> StepRunner::EndStep(const std::optional<StepInput>& predicted) {
  progress_->WaitFor(strategy_);
  return Await<StepOutcome>(
      [&](Callback<StepOutcome> done) { strategy_->EndStep(predicted, std::move(done)); });
}

absl::Status StepRunner::Read(GlobalStep step) {
  if (batches_ != nullptr && batches_of_ == step) return absl::OkStatus();
  batches_ = nullptr;
  progress_->WaitFor("its own data");
  const absl::Duration start = options_.clock->Monotonic();
  LOCKSTEP_ASSIGN_OR_RETURN(batches_, data_->BatchesFor(step));
  progress_->WaitedForData(absl::ToDoubleSeconds(options_.clock->Monotonic() - start));
  batches_of_ = step;
  rows_->Collect(*batches_);
  return absl::OkStatus();
}

std::optional<StepInput> StepRunner::PredictNext() {
  const std::optional<GlobalStep> next = strategy_->PredictNext();
  if (!next.has_value()) return std::nullopt;
  // Its token may bring another share, and with it other rows.
  if (share_.has_value()) return StepInput{.step = *next};
  if (!data_->IsReady(*next) || !Read(*next).ok()) return StepInput{.step = *next};
  return StepInput{.step = *next, .rows = rows_->rows()};
}

absl::Status StepRunner::Train(GlobalStep step, const StepValues& values) {
  if (options_.example_log != nullptr) {
    options_.example_log->Record(step, options_.first_tower, *batches_);
  }
  const absl::Duration start = options_.clock->Monotonic();
  const uint64_t key = MixSeeds(random_seed_, static_cast<uint64_t>(step.value()));
  TrainingTowers* const towers = towers_[layout_.turns().LossOf(step)];
  const TowerMemory shared{values.values, values.gradients};
  const std::span<const TowerMemory> memory =
      values.by_tower.empty() ? std::span(&shared, 1) : values.by_tower;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float loss, towers->TrainStep(*batches_, memory, key,
                                          [this](std::span<const int> of) { OnGradients(of); }));
  uint64_t examples = 0;
  for (const Batch& batch : *batches_) examples += batch.size();
  progress_->Computed(examples, absl::ToDoubleSeconds(options_.clock->Monotonic() - start), loss);
  return absl::OkStatus();
}

void StepRunner::OnGradients(std::span<const int> variables) {
  for (const int variable : variables) {
    if (options_.timeline != nullptr && layout_.variables()[variable].trainable) {
      options_.timeline->HaveGradient();
    }
  }
  strategy_->AddGradients(variables);
}

}  // namespace lockstep::worker
