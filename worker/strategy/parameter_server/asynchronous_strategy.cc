#include "worker/strategy/parameter_server/asynchronous_strategy.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<AsynchronousStrategy>> AsynchronousStrategy::Create(
    ShardGroupOptions options, const VariableLayout& layout, const ShardGroupResources& resources,
    std::span<const int64_t> most_rows, GradientMemory* memory) {
  options.most_rows.assign(most_rows.begin(), most_rows.end());
  LOCKSTEP_ASSIGN_OR_RETURN(auto shards, ShardGroup::Create(options, layout, resources));
  std::unique_ptr<AsynchronousStrategy> strategy(
      new AsynchronousStrategy(layout, resources, most_rows, memory));
  strategy->shards_ = std::move(shards);
  return strategy;
}

AsynchronousStrategy::AsynchronousStrategy(const VariableLayout& layout,
                                           const ShardGroupResources& resources,
                                           std::span<const int64_t> most_rows,
                                           GradientMemory* memory)
    : clock_(resources.clock),
      gradients_(layout, most_rows, memory, resources.make_tensor),
      stamps_(layout.num_shards()) {}

void AsynchronousStrategy::BeginStep(const StepInput& input, Callback<StepValues> done) {
  input_ = input;
  begun_ = std::move(done);
  if (std::exchange(is_open_, true)) return FetchValues();
  wait_.Set("the shared memory of the ps");
  shards_->Open([this](const absl::StatusOr<bool>& opened) {
    if (!opened.ok()) return TellValues(opened.status());
    FetchValues();
  });
}

void AsynchronousStrategy::FetchValues() {
  wait_.Set("the newest values of the variables");
  shards_->cache().FetchNewest(input_.rows, [this](const absl::StatusOr<GlobalStep>& fetched) {
    TellValues(fetched.status());
  });
}

void AsynchronousStrategy::TellValues(const absl::Status& fetched) {
  wait_.Clear();
  Callback<StepValues> done = std::exchange(begun_, nullptr);
  if (!fetched.ok()) return done(fetched);
  const VariableCache& cache = shards_->cache();
  for (size_t shard = 0; shard < stamps_.size(); ++shard) stamps_[shard] = cache.version_of(shard);
  gradients_.BindRowGradients(cache.views());
  push_seq_ = push_seq_.next();
  shards_->Begin(push_seq_, input_.step, stamps_);
  done(StepValues{.version = stamps_[kStepShard],
                  .values = {cache.views(), input_.rows},
                  .gradients = gradients_.views()});
}

void AsynchronousStrategy::AddGradients(std::span<const int> variables) {
  shards_->Add(variables, gradients_.views());
}

void AsynchronousStrategy::EndStep(const std::optional<StepInput>& /*predicted*/,
                                   Callback<StepOutcome> done) {
  ended_ = std::move(done);
  wait_.Set("the ps to take the gradient", stamps_[kStepShard]);
  shards_->End(DequeueSeq(), [this](absl::StatusOr<std::span<const PushSummary>> summaries) {
    TellOutcome(std::move(summaries));
  });
}

void AsynchronousStrategy::TellOutcome(absl::StatusOr<std::span<const PushSummary>> summaries) {
  wait_.Clear();
  Callback<StepOutcome> done = std::exchange(ended_, nullptr);
  if (!summaries.ok()) return done(summaries.status());
  StepOutcome outcome{.next = input_.step.next(),
                      .local_step = stamps_[kStepShard],
                      .done = (*summaries)[kStepShard].done,
                      .judged_at = clock_->Monotonic()};
  AddVerdicts(*summaries, &outcome);
  done(outcome);
}

}  // namespace lockstep::worker
