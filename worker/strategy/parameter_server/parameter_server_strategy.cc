#include "worker/strategy/parameter_server/parameter_server_strategy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> ParameterServerStrategy::Create(
    ParameterServerOptions options, const VariableLayout& layout, std::span<PsData* const> shards,
    std::span<const int64_t> most_rows, GradientMemory* memory) {
  std::unique_ptr<ParameterServerStrategy> strategy(
      new ParameterServerStrategy(std::move(options), layout, shards, most_rows, memory));
  LOCKSTEP_ASSIGN_OR_RETURN(strategy->cache_, strategy->shards_.MakeCache(VariableCache::kValues));
  return strategy;
}

ParameterServerStrategy::ParameterServerStrategy(ParameterServerOptions options,
                                                 const VariableLayout& layout,
                                                 std::span<PsData* const> shards,
                                                 std::span<const int64_t> most_rows,
                                                 GradientMemory* memory)
    : options_(std::move(options)),
      shards_(options_.shards, layout, shards),
      gradients_(layout, most_rows, memory),
      stamps_(shards.size()) {}

void ParameterServerStrategy::BeginStep(const StepInput& input, Callback<StepValues> done) {
  absl::StatusOr<StepValues> values = Begin(input);
  wait_.Clear();
  done(std::move(values));
}

absl::StatusOr<StepValues> ParameterServerStrategy::Begin(const StepInput& input) {
  if (!std::exchange(is_open_, true)) {
    wait_.Set("the shared memory of the ps");
    LOCKSTEP_RETURN_IF_ERROR(shards_.Open());
  }
  step_ = input.step;
  wait_.Set("the variables", step_);
  LOCKSTEP_ASSIGN_OR_RETURN(const GlobalStep version, cache_->Fetch(step_, input.rows));
  has_gradient_ = version == step_;
  if (!has_gradient_) return StepValues{.version = version, .is_superseded = true};
  gradients_.BindRowGradients(cache_->views());
  stamps_.assign(stamps_.size(), step_);
  push_seq_ = push_seq_.next();
  shards_.Begin(push_seq_, stamps_, /*holds=*/options_.token_per_replica);
  return StepValues{
      .version = version, .values = {cache_->views(), input.rows}, .gradients = gradients_.views()};
}

void ParameterServerStrategy::AddGradients(std::span<const int> variables) {
  shards_.Add(variables, gradients_.views(), *cache_);
}

std::optional<GlobalStep> ParameterServerStrategy::PredictNext() const {
  return options_.token_per_replica ? std::optional(step_.next()) : std::nullopt;
}

void ParameterServerStrategy::EndStep(const std::optional<StepInput>& predicted,
                                      Callback<StepOutcome> done) {
  absl::StatusOr<StepOutcome> outcome = End(predicted);
  wait_.Clear();
  done(std::move(outcome));
}

absl::StatusOr<StepOutcome> ParameterServerStrategy::End(
    const std::optional<StepInput>& predicted) {
  dequeue_seq_ = dequeue_seq_.next();
  StepOutcome outcome;
  if (has_gradient_) LOCKSTEP_RETURN_IF_ERROR(FinishGradient(predicted, &outcome));
  wait_.Set("the other workers", step_);
  // After all shards have judged the gradient, as in TensorFlow.
  LOCKSTEP_ASSIGN_OR_RETURN(const DequeueTokenReply token, shards_.DequeueToken(dequeue_seq_));
  outcome.done = token.done();
  if (outcome.done) return outcome;
  LOCKSTEP_RETURN_IF_ERROR(CheckToken(token));
  outcome.next = outcome.local_step = GlobalStep(token.step());
  return outcome;
}

absl::Status ParameterServerStrategy::FinishGradient(const std::optional<StepInput>& predicted,
                                                     StepOutcome* outcome) {
  bool waits_for_step = false;
  if (options_.token_per_replica) {
    if (predicted.has_value()) cache_->FetchAhead(predicted->step, predicted->rows);
    waits_for_step = shards_.Release(dequeue_seq_);
  }
  wait_.Set(waits_for_step ? "the other workers" : "the ps to take the gradient", step_);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::span<const PushSummary> summaries, shards_.Finish());
  outcome->judged_at = options_.shards.clock->Monotonic();
  for (const PushSummary& summary : summaries) {
    outcome->accepted += summary.accepted;
    outcome->stale += summary.stale;
  }
  return absl::OkStatus();
}

absl::Status ParameterServerStrategy::CheckToken(const DequeueTokenReply& token) const {
  const int64_t first = options_.first_step.value();
  if (token.step() >= first && token.step() <= options_.max_steps) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(options_.shards.shard_names[kStepShard],
                                          ": token of step ", token.step(), ", expected ", first,
                                          " to ", options_.max_steps));
}

}  // namespace lockstep::worker
