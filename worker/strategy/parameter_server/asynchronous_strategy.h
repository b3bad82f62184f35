// Asynchronous training: each gradient is computed from the newest values and applied on its own.
// No tokens: a replica counts its own steps, whose data it reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "worker/strategy/parameter_server/gradient_buffers.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/update_strategy.h"
#include "worker/strategy/wait_description.h"

namespace lockstep::worker {

class AsynchronousStrategy final : public UpdateStrategy {
 public:
  // `options.session.asynchronous` is set. The layout and what is pointed to outlive the strategy;
  // `memory` may be null. Errors as VariableCache::Create.
  static absl::StatusOr<std::unique_ptr<AsynchronousStrategy>> Create(
      ShardGroupOptions options, const VariableLayout& layout, const ShardGroupResources& resources,
      std::span<const int64_t> most_rows, GradientMemory* memory);

  void BeginStep(const StepInput& input, Callback<StepValues> done) override;
  void AddGradients(std::span<const int> variables) override;
  void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) override;
  std::optional<GlobalStep> PredictNext() const override { return std::nullopt; }
  std::string DescribeWait() const override { return wait_.Describe(); }
  void Cancel() override { shards_->Cancel(); }

 private:
  AsynchronousStrategy(const VariableLayout& layout, const ShardGroupResources& resources,
                       std::span<const int64_t> most_rows, GradientMemory* memory);

  void FetchValues();
  void TellValues(const absl::Status& fetched);
  void TellOutcome(absl::StatusOr<std::span<const PushSummary>> summaries);

  const Clock* const clock_;
  WaitDescription wait_;
  GradientBuffers gradients_;
  bool is_open_ = false;
  // Of the step under way; its number is of the replica's own count.
  StepInput input_;
  std::vector<GlobalStep> stamps_;  // by shard
  Callback<StepValues> begun_;
  Callback<StepOutcome> ended_;
  PushSeq push_seq_;
  std::unique_ptr<ShardGroup> shards_;  // last: its calls use all above
};

}  // namespace lockstep::worker
