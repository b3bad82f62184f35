// Replicated training: every tower of every worker keeps the variables and applies the optimizer.
// Gradients are reduced over all of them. The parameter servers keep tokens, the loss, and versions
// that are evaluated or saved, which tower 0 of the lowest worker stores there.
//
// Step g: token g; gradients on own variables; reduction; push of the loss with local step g, which
// says "I have the sum"; the step closes when all have it; token g + 1; every tower applies the sum
// with the learning rate of g. So no replica applies what another could lack for good, and the
// gradients of an open step are there to be reduced again with a lost worker's successor, which
// reads the variables of the step from one that has them.
//
// After the last step a worker keeps its variables until it is destroyed: if the one that has to
// store the last version is lost, the chief's next view of the group names another one.
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
#include "common/base/callback.h"
#include "common/optimizer/clipping.h"
#include "common/optimizer/schedule.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "worker/strategy/parameter_server/gradient_buffers.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/replicated/member_state_reader.h"
#include "worker/strategy/replicated/reducer_source.h"
#include "worker/strategy/replicated/replica_server.h"
#include "worker/strategy/replicated/replicas.h"
#include "worker/strategy/replicated/state_reader.h"
#include "worker/strategy/replicated/step_reduction.h"
#include "worker/strategy/replicated/version_writer.h"
#include "worker/strategy/update_strategy.h"
#include "worker/strategy/wait_description.h"

namespace lockstep::worker {

struct ReplicatedOptions {
  ShardGroupOptions shards;
  ReplicasOptions replicas;
  OptimizerDef optimizer;
  int64_t max_steps = std::numeric_limits<int64_t>::max();  // of the job
};

class ReplicatedStrategy final : public UpdateStrategy {
 public:
  // Where the loss is pushed to, alone of all variables: what the layout of a ShardGroup must be.
  static absl::StatusOr<VariableLayout> LossLayout(const Placement& placement);

  // `layout` is of all variables, `loss` LossLayout's. Both and what is pointed to outlive the
  // strategy. The reducers of `groups` reduce the trained variables, in the layout's
  // order. Errors as
  // VariableCache::Create and OptimizerRules::Create.
  static absl::StatusOr<std::unique_ptr<ReplicatedStrategy>> Create(
      const ReplicatedOptions& options, const VariableLayout& layout, const VariableLayout& loss,
      const ShardGroupResources& resources, std::unique_ptr<ReducerSource> groups);
  ~ReplicatedStrategy() override;

  // The first step reads its version from the ps, or from another worker. Later ones have it here.
  void BeginStep(const StepInput& input, Callback<StepValues> done) override;
  void AddGradients(std::span<const int>) override {}
  void EndStep(const std::optional<StepInput>& predicted, Callback<StepOutcome> done) override;
  std::optional<GlobalStep> PredictNext() const override { return step_.next(); }
  std::string DescribeWait() const override { return wait_.Describe(); }
  void Cancel() override;

 private:
  ReplicatedStrategy(const ReplicatedOptions& options, const VariableLayout& layout,
                     const VariableLayout& loss, const ShardGroupResources& resources,
                     OptimizerRules rules, std::unique_ptr<ReducerSource> groups);

  void AwaitGroup();
  void OnGroup(absl::StatusOr<ReducerOfGroup> group);
  void OnState(absl::StatusOr<ReplicaState> state);
  void TellValues(const absl::Status& status);
  // The parts of a step after its gradients, in their order.
  void AwaitStored();
  void PushLoss();
  void OnPushed(absl::StatusOr<std::span<const PushSummary>> summaries);
  void AskForToken(std::optional<DequeueTokenReply> token);
  void OnToken(absl::StatusOr<DequeueTokenReply> token);
  absl::Status CheckToken(const DequeueTokenReply& token) const;
  void OnReleased(const DequeueTokenReply& token);
  // What the last token permits: clipped, applied, and stored where that is asked for.
  void Apply(const DequeueTokenReply& token);
  // The version at hand, if it is kept and this worker is to store it.
  void StoreIfKept(bool is_first);
  void Store(bool with_slots);
  // A lost worker may have had the version at hand to store.
  void PrepareGroup(const ReducerOfGroup& group, StatusCallback done);
  // After the last step: stores its version in each group of which this is the first member.
  void AwaitLaterGroups();
  bool IsOver() const { return step_.value() >= options_.max_steps; }
  void TellOutcome(absl::StatusOr<StepOutcome> outcome);

  const ReplicatedOptions options_;
  const VariableLayout& layout_;
  const Clock* const clock_;
  OptimizerRules rules_;
  const LearningRateSchedule learning_rate_;
  const ClippingRule clipping_;
  WaitDescription wait_;
  GradientBuffers loss_;
  const TensorMaker make_tensor_;
  std::unique_ptr<Replicas> replicas_;  // null before the first step
  ReplicaServer server_;                // of these
  // Of the step under way.
  GlobalStep step_;
  std::span<const std::span<const int64_t>> rows_;  // StepInput::rows, until TellValues
  StepOutcome outcome_;
  std::optional<DequeueTokenReply> token_;  // of the last step, whose sum is still to be applied
  // That the version at hand is kept, and the newest that this worker has begun to store.
  bool keeps_values_ = false;
  bool keeps_slots_ = false;
  GlobalStep stored_ = GlobalStep(-1);
  Callback<StepValues> begun_;
  Callback<StepOutcome> ended_;
  PushSeq push_seq_;
  DequeueSeq dequeue_seq_;
  std::vector<GlobalStep> stamps_;  // by shard
  // Last: their calls use all above. Answers to the readers and the writer go on with the
  // reduction, so these three, whose destructors wait for their calls, are destroyed before it.
  std::unique_ptr<ReducerSource> groups_;
  StepReduction reduction_;
  StateReader reader_;
  VersionWriter writer_;
  MemberStateReader member_reader_;
  std::unique_ptr<ShardGroup> shards_;
};

}  // namespace lockstep::worker
