// Synchronous training: parameter servers apply the gradients of all replicas, and a token, whose
// number is the next step, stands between two steps.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/strategy/parameter_server/gradient_buffers.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/update_strategy.h"
#include "worker/strategy/wait_description.h"

namespace lockstep::worker {

struct ParameterServerOptions {
  ShardGroupOptions shards;
  // Each replica gets a token of its own (PER_REPLICA), so that the next step is a later one for
  // certain. Its values are requested as soon as this step's have been used, and arrive while the
  // gradient still leaves. Where the gradient is one message, values and token come with its reply.
  bool token_per_replica = false;
  // The steps that a token may name.
  GlobalStep first_step;
  int64_t max_steps = std::numeric_limits<int64_t>::max();
};

class ParameterServerStrategy final : public UpdateStrategy {
 public:
  // What is passed by reference or pointer outlives the strategy; `memory` may be null. Errors as
  // VariableCache::Create.
  static absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Create(
      ParameterServerOptions options, const VariableLayout& layout, std::span<PsData* const> shards,
      std::span<const int64_t> most_rows, GradientMemory* memory);

  void BeginStep(const StepInput& input, Callback<StepValues> done) override;
  void AddGradients(std::span<const int> variables) override;
  void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) override;
  std::optional<GlobalStep> PredictNext() const override;
  std::string DescribeWait() const override { return wait_.Describe(); }
  void Cancel() override { shards_.Cancel(); }

 private:
  ParameterServerStrategy(ParameterServerOptions options, const VariableLayout& layout,
                          std::span<PsData* const> shards, std::span<const int64_t> most_rows,
                          GradientMemory* memory);

  absl::StatusOr<StepValues> Begin(const StepInput& input);
  absl::Status FinishGradient(const std::optional<StepInput>& predicted, StepOutcome* outcome);
  absl::StatusOr<StepOutcome> End(const std::optional<StepInput>& predicted);
  // INTERNAL: for no step of the job. No data could be read for it.
  absl::Status CheckToken(const DequeueTokenReply& token) const;

  const ParameterServerOptions options_;
  WaitDescription wait_;
  ShardGroup shards_;
  std::unique_ptr<VariableCache> cache_;
  GradientBuffers gradients_;
  std::vector<GlobalStep> stamps_;  // all of them the step under way
  bool is_open_ = false;
  bool has_gradient_ = false;  // of the step under way
  GlobalStep step_;            // under way
  PushSeq push_seq_;
  DequeueSeq dequeue_seq_;
};

}  // namespace lockstep::worker
