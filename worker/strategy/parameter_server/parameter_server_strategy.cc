#include "worker/strategy/parameter_server/parameter_server_strategy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/replicas_proto/convert.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> ParameterServerStrategy::Create(
    ParameterServerOptions options, const VariableLayout& layout,
    const ShardGroupResources& resources, std::span<const int64_t> most_rows,
    GradientMemory* memory) {
  options.shards.most_rows.assign(most_rows.begin(), most_rows.end());
  LOCKSTEP_ASSIGN_OR_RETURN(auto shards, ShardGroup::Create(options.shards, layout, resources));
  std::unique_ptr<ParameterServerStrategy> strategy(
      new ParameterServerStrategy(std::move(options), layout, resources, most_rows, memory));
  strategy->shards_ = std::move(shards);
  return strategy;
}

ParameterServerStrategy::ParameterServerStrategy(ParameterServerOptions options,
                                                 const VariableLayout& layout,
                                                 const ShardGroupResources& resources,
                                                 std::span<const int64_t> most_rows,
                                                 GradientMemory* memory)
    : options_(std::move(options)),
      clock_(resources.clock),
      gradients_(layout, most_rows, memory, resources.make_tensor),
      stamps_(layout.num_shards()) {}

void ParameterServerStrategy::BeginStep(const StepInput& input, Callback<StepValues> done) {
  input_ = input;
  begun_ = std::move(done);
  if (input.is_skipped) {
    outcome_ = StepOutcome();
    has_gradient_ = false;
    return std::exchange(begun_, nullptr)(StepValues{.version = input.step, .is_superseded = true});
  }
  if (std::exchange(is_open_, true)) return FetchValues();
  wait_.Set("the shared memory of the ps");
  shards_->Open([this](const absl::StatusOr<bool>& opened) {
    if (!opened.ok()) return TellValues(opened.status());
    FetchValues();
  });
}

void ParameterServerStrategy::FetchValues() {
  wait_.Set("the variables", input_.step);
  shards_->cache().Fetch(input_.step, input_.rows, [this](absl::StatusOr<GlobalStep> version) {
    TellValues(std::move(version));
  });
}

void ParameterServerStrategy::TellValues(absl::StatusOr<GlobalStep> version) {
  wait_.Clear();
  Callback<StepValues> done = std::exchange(begun_, nullptr);
  if (!version.ok()) return done(version.status());
  outcome_ = StepOutcome();
  has_gradient_ = *version == input_.step;
  if (!has_gradient_) return done(StepValues{.version = *version, .is_superseded = true});
  // In this order: CancelAfterGradient sees this gradient, or this sees that none may begin.
  owed_.store(push_seq_.next().value());
  if (is_leaving_.load()) {
    Cancel();
    return done(absl::CancelledError("the worker leaves"));
  }
  const std::span<const TensorView> values = shards_->cache().views();
  gradients_.BindRowGradients(values);
  push_seq_ = push_seq_.next();
  stamps_.assign(stamps_.size(), input_.step);
  shards_->Begin(push_seq_, input_.step, stamps_);
  done(StepValues{
      .version = *version, .values = {values, input_.rows}, .gradients = gradients_.views()});
}

void ParameterServerStrategy::AddGradients(std::span<const int> variables) {
  shards_->Add(variables, gradients_.views());
}

std::optional<GlobalStep> ParameterServerStrategy::PredictNext() const {
  if (!options_.shards.token_per_replica) return std::nullopt;
  return input_.step.next();
}

void ParameterServerStrategy::EndStep(const std::optional<StepInput>& predicted,
                                      Callback<StepOutcome> done) {
  ended_ = std::move(done);
  dequeue_seq_ = dequeue_seq_.next();
  if (!has_gradient_) return AskForToken(std::nullopt);
  const bool may_fuse = options_.shards.token_per_replica;
  if (may_fuse && predicted.has_value()) {
    shards_->cache().FetchAhead(predicted->step, predicted->rows);
  }
  wait_.Set(shards_->HoldsGradient() ? "the other workers" : "the ps to take the gradient",
            input_.step);
  complete_.store(push_seq_.value());
  shards_->End(may_fuse ? dequeue_seq_ : DequeueSeq(),
               [this](absl::StatusOr<std::span<const PushSummary>> summaries) {
                 OnJudged(std::move(summaries));
               });
}

void ParameterServerStrategy::OnJudged(absl::StatusOr<std::span<const PushSummary>> summaries) {
  if (!summaries.ok()) return TellOutcome(summaries.status());
  owed_.store(0);
  outcome_.judged_at = clock_->Monotonic();
  AddVerdicts(*summaries, &outcome_);
  AskForToken((*summaries)[kStepShard].token);
}

void ParameterServerStrategy::AskForToken(std::optional<DequeueTokenReply> token) {
  wait_.Set("the other workers", input_.step);
  shards_->AwaitToken(
      dequeue_seq_, input_.step, std::move(token),
      [this](absl::StatusOr<DequeueTokenReply> reply) { OnToken(std::move(reply)); });
}

void ParameterServerStrategy::OnToken(absl::StatusOr<DequeueTokenReply> token) {
  if (!token.ok()) return TellOutcome(token.status());
  outcome_.done = token->done();
  if (!outcome_.done) {
    if (absl::Status status = CheckToken(*token); !status.ok()) return TellOutcome(status);
    outcome_.next = outcome_.local_step = GlobalStep(token->step());
    if (token->has_share()) outcome_.share = FromProto(token->share());
  }
  TellOutcome(outcome_);
}

void ParameterServerStrategy::Cancel() {
  owed_.store(0);
  shards_->Cancel();
}

bool ParameterServerStrategy::CancelAfterGradient() {
  is_leaving_.store(true);
  const uint64_t owed = owed_.load();
  // One shard may wait for the end of the step with its part while another one gets the rest.
  if (owed != 0 && (complete_.load() != owed || shards_->OwesGradient())) return false;
  Cancel();
  return true;
}

void ParameterServerStrategy::TellOutcome(absl::StatusOr<StepOutcome> outcome) {
  wait_.Clear();
  std::exchange(ended_, nullptr)(std::move(outcome));
}

absl::Status ParameterServerStrategy::CheckToken(const DequeueTokenReply& token) const {
  // A queue still has tokens of steps before the one at which this worker began.
  const int64_t first = options_.shards.token_per_replica ? options_.first_step.value() : 0;
  if (token.step() >= first && token.step() <= options_.max_steps) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(options_.shards.shard_names[kStepShard],
                                          ": token of step ", token.step(), ", expected ", first,
                                          " to ", options_.max_steps));
}

}  // namespace lockstep::worker
