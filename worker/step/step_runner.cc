#include "worker/step/step_runner.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/base/await.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kStallEvery = 4;  // steps

void Multiply(std::span<float> elements, int factor) {
  for (float& element : elements) element *= static_cast<float>(factor);
}

}  // namespace

StepRunner::StepRunner(const StepRunnerOptions& options, const VariableLayout& layout,
                       UpdateStrategy* strategy, TowerGroup* towers, Pipeline* data,
                       BatchRows* rows, Progress* progress)
    : options_(options),
      layout_(layout),
      strategy_(strategy),
      towers_(towers),
      data_(data),
      rows_(rows),
      progress_(progress),
      clipper_(options.clipping, layout, [this](int variable) { clipped_.push_back(variable); }) {}

absl::Status StepRunner::Run() {
  const absl::Status end = RunSteps();
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
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const StepOutcome outcome, RunStep(step));
    if (outcome.done) return absl::OkStatus();
    step = outcome.next;
    progress_->StartStep(outcome.local_step);
  }
}

absl::StatusOr<StepOutcome> StepRunner::RunStep(GlobalStep step) {
  if (options_.timeline != nullptr) options_.timeline->Started(step);
  LOCKSTEP_RETURN_IF_ERROR(Read(step));
  progress_->WaitFor(strategy_);
  LOCKSTEP_ASSIGN_OR_RETURN(const StepValues values,
                            AwaitResult<StepValues>([&](Callback<StepValues> done) {
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
  return AwaitResult<StepOutcome>(
      [&](Callback<StepOutcome> done) { strategy_->EndStep(predicted, std::move(done)); });
}

absl::Status StepRunner::Read(GlobalStep step) {
  if (batches_ != nullptr && batches_of_ == step) return absl::OkStatus();
  batches_ = nullptr;
  progress_->WaitFor("its own data");
  LOCKSTEP_ASSIGN_OR_RETURN(batches_, data_->BatchesFor(step));
  batches_of_ = step;
  rows_->Collect(*batches_);
  return absl::OkStatus();
}

std::optional<StepInput> StepRunner::PredictNext() {
  const std::optional<GlobalStep> next = strategy_->PredictNext();
  if (!next.has_value()) return std::nullopt;
  if (!data_->IsReady(*next) || !Read(*next).ok()) return StepInput{.step = *next};
  return StepInput{.step = *next, .rows = rows_->rows()};
}

absl::Status StepRunner::Train(GlobalStep step, const StepValues& values) {
  const absl::Duration start = options_.clock->Monotonic();
  ++num_trained_;
  SleepForTrials();
  const uint64_t key = MixSeeds(options_.random_seed, static_cast<uint64_t>(step.value()));
  LOCKSTEP_ASSIGN_OR_RETURN(const float loss,
                            towers_->Train(*batches_, values.values, values.gradients, key,
                                           [this, &values](std::span<const int> variables) {
                                             OnGradients(variables, values.gradients);
                                           }));
  uint64_t examples = 0;
  for (const Batch& batch : *batches_) examples += batch.size();
  progress_->Computed(examples, absl::ToDoubleSeconds(options_.clock->Monotonic() - start), loss);
  clipper_.Finish();
  AddClipped();
  return absl::OkStatus();
}

void StepRunner::SleepForTrials() {
  const bool stalls = num_trained_ % kStallEvery == 0;
  const absl::Duration sleep = options_.sleep + (stalls ? options_.stall : absl::ZeroDuration());
  if (sleep > absl::ZeroDuration()) absl::SleepFor(sleep);
}

void StepRunner::OnGradients(std::span<const int> variables,
                             std::span<const MutableTensorView> gradients) {
  for (const int variable : variables) {
    const bool trainable = layout_.variables()[variable].trainable;
    if (options_.timeline != nullptr && trainable) options_.timeline->HaveGradient();
    if (options_.sum_towers && trainable) {
      Multiply(gradients[variable].as<float>(), towers_->size());
    }
    clipper_.Ready(variable, gradients[variable]);
  }
  AddClipped();
}

void StepRunner::AddClipped() {
  if (!clipped_.empty()) strategy_->AddGradients(clipped_);
  clipped_.clear();
}

}  // namespace lockstep::worker
