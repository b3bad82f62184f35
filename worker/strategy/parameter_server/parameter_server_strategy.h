// Synchronous training: parameter servers apply the gradients of all replicas, and a token, whose
// number is the next step, stands between two steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "worker/strategy/parameter_server/gradient_buffers.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/update_strategy.h"
#include "worker/strategy/wait_description.h"

namespace lockstep::worker {

struct ParameterServerOptions {
  ShardGroupOptions shards;
  // The steps that a token may name.
  GlobalStep first_step;
  int64_t max_steps = std::numeric_limits<int64_t>::max();
};

// Where each replica has a token of its own, the next step is a later one for certain. Its values
// are requested as soon as this step's have been used, and arrive while the gradient still leaves.
// Where the gradient is one message, values and token come with its reply.
class ParameterServerStrategy final : public UpdateStrategy {
 public:
  // The layout and what is pointed to outlive the strategy; `memory` may be null. Errors as
  // VariableCache::Create.
  static absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Create(
      ParameterServerOptions options, const VariableLayout& layout,
      const ShardGroupResources& resources, std::span<const int64_t> most_rows,
      GradientMemory* memory);

  void BeginStep(const StepInput& input, Callback<StepValues> done) override;
  void AddGradients(std::span<const int> variables) override;
  void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) override;
  std::optional<GlobalStep> PredictNext() const override;
  std::string DescribeWait() const override { return wait_.Describe(); }
  void Cancel() override;
  bool CancelAfterGradient() override;

 private:
  ParameterServerStrategy(ParameterServerOptions options, const VariableLayout& layout,
                          const ShardGroupResources& resources, std::span<const int64_t> most_rows,
                          GradientMemory* memory);

  void FetchValues();
  void TellValues(absl::StatusOr<GlobalStep> version);
  void OnJudged(absl::StatusOr<std::span<const PushSummary>> summaries);
  // After all shards have judged the gradient, as in TensorFlow.
  void AskForToken(std::optional<DequeueTokenReply> token);
  void OnToken(absl::StatusOr<DequeueTokenReply> token);
  // INTERNAL: for no step of the job. No data could be read for it.
  absl::Status CheckToken(const DequeueTokenReply& token) const;
  void TellOutcome(absl::StatusOr<StepOutcome> outcome);

  const ParameterServerOptions options_;
  const Clock* const clock_;
  WaitDescription wait_;
  GradientBuffers gradients_;
  bool is_open_ = false;
  // Of the step under way.
  StepInput input_;
  bool has_gradient_ = false;
  std::vector<GlobalStep> stamps_;  // by shard, all of them the step
  StepOutcome outcome_;
  Callback<StepValues> begun_;
  Callback<StepOutcome> ended_;
  PushSeq push_seq_;
  std::atomic<uint64_t> owed_ = 0;        // the number of the gradient at hand; 0: there is none
  std::atomic<uint64_t> complete_ = 0;    // of the last one that was added as a whole
  std::atomic<bool> is_leaving_ = false;  // no further gradient begins
  DequeueSeq dequeue_seq_;
  std::unique_ptr<ShardGroup> shards_;  // last: its calls use all above
};

}  // namespace lockstep::worker
