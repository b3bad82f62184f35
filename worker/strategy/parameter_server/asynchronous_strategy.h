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
#include "worker/strategy/parameter_server/gradient_buffers.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/update_strategy.h"
#include "worker/strategy/wait_description.h"

namespace lockstep::worker {

class AsynchronousStrategy final : public UpdateStrategy {
 public:
  // `options.asynchronous` is set. What is passed by reference or pointer outlives the strategy;
  // `memory` may be null. Errors as VariableCache::Create.
  static absl::StatusOr<std::unique_ptr<AsynchronousStrategy>> Create(
      ShardGroupOptions options, const VariableLayout& layout, std::span<PsData* const> shards,
      std::span<const int64_t> most_rows, GradientMemory* memory);

  void BeginStep(const StepInput& input, Callback<StepValues> done) override;
  void AddGradients(std::span<const int> variables) override;
  void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) override;
  std::optional<GlobalStep> PredictNext() const override { return std::nullopt; }
  std::string DescribeWait() const override { return wait_.Describe(); }
  void Cancel() override { shards_.Cancel(); }

 private:
  AsynchronousStrategy(ShardGroupOptions options, const VariableLayout& layout,
                       std::span<PsData* const> shards, std::span<const int64_t> most_rows,
                       GradientMemory* memory);

  absl::StatusOr<StepValues> Begin(const StepInput& input);
  absl::StatusOr<StepOutcome> End();

  WaitDescription wait_;
  ShardGroup shards_;
  std::unique_ptr<VariableCache> cache_;
  GradientBuffers gradients_;
  std::vector<GlobalStep> stamps_;  // by shard, of the step under way
  bool is_open_ = false;
  GlobalStep step_;  // under way; of the replica's own count
  PushSeq push_seq_;
};

}  // namespace lockstep::worker
