#include "worker/strategy/parameter_server/asynchronous_strategy.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<AsynchronousStrategy>> AsynchronousStrategy::Create(
    ShardGroupOptions options, const VariableLayout& layout, std::span<PsData* const> shards,
    std::span<const int64_t> most_rows, GradientMemory* memory) {
  std::unique_ptr<AsynchronousStrategy> strategy(
      new AsynchronousStrategy(std::move(options), layout, shards, most_rows, memory));
  LOCKSTEP_ASSIGN_OR_RETURN(strategy->cache_, strategy->shards_.MakeCache(VariableCache::kNewest));
  return strategy;
}

AsynchronousStrategy::AsynchronousStrategy(ShardGroupOptions options, const VariableLayout& layout,
                                           std::span<PsData* const> shards,
                                           std::span<const int64_t> most_rows,
                                           GradientMemory* memory)
    : shards_(std::move(options), layout, shards),
      gradients_(layout, most_rows, memory),
      stamps_(shards.size()) {}

void AsynchronousStrategy::BeginStep(const StepInput& input, Callback<StepValues> done) {
  absl::StatusOr<StepValues> values = Begin(input);
  wait_.Clear();
  done(std::move(values));
}

absl::StatusOr<StepValues> AsynchronousStrategy::Begin(const StepInput& input) {
  if (!std::exchange(is_open_, true)) {
    wait_.Set("the shared memory of the ps");
    LOCKSTEP_RETURN_IF_ERROR(shards_.Open());
  }
  step_ = input.step;
  wait_.Set("the newest values of the variables");
  LOCKSTEP_RETURN_IF_ERROR(cache_->FetchNewest(input.rows));
  for (size_t shard = 0; shard < stamps_.size(); ++shard) {
    stamps_[shard] = cache_->version_of(shard);
  }
  gradients_.BindRowGradients(cache_->views());
  push_seq_ = push_seq_.next();
  shards_.Begin(push_seq_, stamps_, /*holds=*/false);
  return StepValues{.version = stamps_[kStepShard],
                    .values = {cache_->views(), input.rows},
                    .gradients = gradients_.views()};
}

void AsynchronousStrategy::AddGradients(std::span<const int> variables) {
  shards_.Add(variables, gradients_.views(), *cache_);
}

void AsynchronousStrategy::EndStep(const std::optional<StepInput>& /*predicted*/,
                                   Callback<StepOutcome> done) {
  absl::StatusOr<StepOutcome> outcome = End();
  wait_.Clear();
  done(std::move(outcome));
}

absl::StatusOr<StepOutcome> AsynchronousStrategy::End() {
  wait_.Set("the ps to take the gradient", stamps_[kStepShard]);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::span<const PushSummary> summaries, shards_.Finish());
  StepOutcome outcome{.next = step_.next(),
                      .local_step = stamps_[kStepShard],
                      .done = summaries[kStepShard].done,
                      .judged_at = shards_.options().clock->Monotonic()};
  for (const PushSummary& summary : summaries) {
    outcome.accepted += summary.accepted;
    outcome.stale += summary.stale;
  }
  return outcome;
}

}  // namespace lockstep::worker
