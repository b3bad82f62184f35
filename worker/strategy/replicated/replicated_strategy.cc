#include "worker/strategy/replicated/replicated_strategy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/optimizer_proto/clipping_of.h"
#include "common/optimizer_proto/learning_rate.h"
#include "worker/strategy/replicated/initial_sync.h"

namespace lockstep::worker {
namespace {

const std::vector<int64_t> kNoRows = {0};  // of the one variable that is pushed

// The ps have only versions that no worker of the group has gone beyond.
absl::Status NobodyHasThem(GlobalStep step) {
  return WithExitCode(
      absl::UnavailableError(absl::StrCat("those that had the variables of step ", step.value(),
                                          " were lost before this worker had read them. Remedy: "
                                          "start it again")),
      ExitCode::kPeersLost);
}

void LogInitialSync(const ReplicaState& state, const VariableLayout& layout, int towers) {
  const std::string text = InitialSyncText(state, towers);
  if (!text.empty()) log::Info(text);
  for (const std::string& warning : InitialSyncWarnings(layout, towers)) log::Warning(warning);
}

bool IsLoss(const VariableSpec& spec) { return !spec.frozen() && !spec.replicated(); }

// As MeanReducer makes it: the sum in the order of the towers, times 1 / their number.
float MeanLoss(std::span<const TowerMemory> towers) {
  float sum = towers[0].gradients.back().as<float>()[0];
  for (const TowerMemory& tower : towers.subspan(1)) sum += tower.gradients.back().as<float>()[0];
  return sum * (1.0f / static_cast<float>(towers.size()));
}

}  // namespace

absl::StatusOr<VariableLayout> ReplicatedStrategy::LossLayout(const Placement& placement) {
  Placement loss;
  loss.set_shards(placement.shards());
  for (const VariableSpec& spec : placement.variables()) {
    if (IsLoss(spec)) *loss.add_variables() = spec;
  }
  if (loss.variables_size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement: expected the loss alone to be pushed (strategy replicated), got ",
                     loss.variables_size(), " variables"));
  }
  return VariableLayout::Create(loss);
}

absl::StatusOr<std::unique_ptr<ReplicatedStrategy>> ReplicatedStrategy::Create(
    const ReplicatedOptions& options, const VariableLayout& layout, const VariableLayout& loss,
    const ShardGroupResources& resources, std::unique_ptr<ReducerSource> groups) {
  LOCKSTEP_ASSIGN_OR_RETURN(OptimizerRules rules, OptimizerRules::Create(options.optimizer));
  LOCKSTEP_ASSIGN_OR_RETURN(auto shards, ShardGroup::Create(options.shards, loss, resources));
  std::unique_ptr<ReplicatedStrategy> strategy(new ReplicatedStrategy(
      options, layout, loss, resources, std::move(rules), std::move(groups)));
  strategy->shards_ = std::move(shards);
  return strategy;
}

ReplicatedStrategy::ReplicatedStrategy(const ReplicatedOptions& options,
                                       const VariableLayout& layout, const VariableLayout& loss,
                                       const ShardGroupResources& resources, OptimizerRules rules,
                                       std::unique_ptr<ReducerSource> groups)
    : options_(options),
      layout_(layout),
      clock_(resources.clock),
      rules_(std::move(rules)),
      learning_rate_(ToSchedule(options.optimizer.learning_rate())),
      clipping_(ClippingOf(options.optimizer.clipping())),
      loss_(loss, kNoRows, nullptr),
      make_tensor_(resources.make_tensor),
      stamps_(resources.shards.size()),
      groups_(std::move(groups)),
      reduction_(groups_.get(),
                 [this](const ReducerOfGroup& group, StatusCallback done) {
                   PrepareGroup(group, std::move(done));
                 }),
      reader_(options.shards.session, layout, rules_, resources),
      writer_(options.shards.session, resources),
      member_reader_(layout, rules_, resources.timer, resources.clock, resources.make_tensor) {}

ReplicatedStrategy::~ReplicatedStrategy() { Cancel(); }

void ReplicatedStrategy::BeginStep(const StepInput& input, Callback<StepValues> done) {
  step_ = input.step;
  // Who comes after the last step has no gradient to make.
  if (IsOver()) return done(StepValues{.version = step_, .is_superseded = true});
  rows_ = input.rows;
  begun_ = std::move(done);
  if (replicas_ != nullptr) {
    if (token_.has_value()) Apply(*std::exchange(token_, std::nullopt));
    return TellValues(absl::OkStatus());
  }
  AwaitGroup();
}

void ReplicatedStrategy::AwaitGroup() {
  wait_.Set("all workers of the group", step_);
  reduction_.AwaitGroup(
      [this](absl::StatusOr<ReducerOfGroup> group) { OnGroup(std::move(group)); });
}

void ReplicatedStrategy::OnGroup(absl::StatusOr<ReducerOfGroup> group) {
  if (!group.ok()) return TellValues(group.status());
  wait_.Set("the variables", group->step);
  if (group->holders.empty()) {
    if (group->counts_as_holder) return TellValues(NobodyHasThem(group->step));
    return reader_.Read(group->step,
                        [this](absl::StatusOr<ReplicaState> state) { OnState(std::move(state)); });
  }
  member_reader_.Read(group->step, group->states, std::move(group->holders),
                      [this, view = group->view](absl::StatusOr<ReplicaState> state) {
                        if (absl::IsAborted(state.status())) return AwaitGroup();
                        if (absl::IsCancelled(state.status())) {
                          // The group has ended here, or training: the source tells which.
                          groups_->NoteFailure(view);
                          return AwaitGroup();
                        }
                        OnState(std::move(state));
                      });
}

void ReplicatedStrategy::OnState(absl::StatusOr<ReplicaState> state) {
  if (!state.ok()) return TellValues(state.status());
  LogInitialSync(*state, layout_, options_.replicas.towers);
  auto replicas =
      Replicas::Create(options_.replicas, layout_, rules_, *std::move(state), make_tensor_);
  if (!replicas.ok()) return TellValues(replicas.status());
  replicas_ = *std::move(replicas);
  server_.Serve(replicas_.get());
  groups_->SetOwnState(&server_);
  TellValues(absl::OkStatus());
}

void ReplicatedStrategy::TellValues(const absl::Status& status) {
  wait_.Clear();
  Callback<StepValues> done = std::exchange(begun_, nullptr);
  if (!status.ok()) return done(status);
  outcome_ = StepOutcome();
  const GlobalStep version = replicas_->version();
  if (version != step_) return done(StepValues{.version = version, .is_superseded = true});
  replicas_->ReadRows(rows_);
  done(StepValues{.version = version, .by_tower = replicas_->memory()});
}

void ReplicatedStrategy::EndStep(const std::optional<StepInput>&, Callback<StepOutcome> done) {
  ended_ = std::move(done);
  if (IsOver()) {
    outcome_ = StepOutcome{.next = step_, .local_step = step_, .done = true};
    if (replicas_ != nullptr) AwaitLaterGroups();
    return TellOutcome(outcome_);
  }
  if (const GlobalStep version = replicas_->version(); version != step_) {
    outcome_.next = outcome_.local_step = version;
    return TellOutcome(outcome_);
  }
  wait_.Set("the gradients of the other workers", step_);
  const std::span<const std::vector<TensorView>> gradients = replicas_->gradients();
  reduction_.Reduce(step_, absl::MakeConstSpan(gradients.data(), gradients.size()),
                    [this](const absl::Status& reduced) {
                      if (!reduced.ok()) return TellOutcome(reduced);
                      AwaitStored();
                    });
}

// A step closes only when its version has been stored, where it is kept: until then nobody applies,
// and another worker could store it.
void ReplicatedStrategy::AwaitStored() {
  wait_.Set("the ps to take the version", step_);
  writer_.WhenIdle([this](const absl::Status& stored) {
    if (!stored.ok()) return TellOutcome(stored);
    PushLoss();
  });
}

void ReplicatedStrategy::PushLoss() {
  wait_.Set("the other workers", step_);
  loss_.views()[0].as<float>()[0] = MeanLoss(replicas_->memory());
  push_seq_ = push_seq_.next();
  dequeue_seq_ = dequeue_seq_.next();
  stamps_.assign(stamps_.size(), step_);
  shards_->Begin(push_seq_, step_, stamps_);
  constexpr int kLoss = 0;
  shards_->Add({&kLoss, 1}, loss_.views());
  shards_->End(dequeue_seq_, [this](absl::StatusOr<std::span<const PushSummary>> summaries) {
    OnPushed(std::move(summaries));
  });
}

void ReplicatedStrategy::OnPushed(absl::StatusOr<std::span<const PushSummary>> summaries) {
  if (!summaries.ok()) return TellOutcome(summaries.status());
  outcome_.judged_at = clock_->Monotonic();
  AddVerdicts(*summaries, &outcome_);
  AskForToken((*summaries)[kStepShard].token);
}

void ReplicatedStrategy::AskForToken(std::optional<DequeueTokenReply> token) {
  shards_->AwaitToken(
      dequeue_seq_, step_, std::move(token),
      [this](absl::StatusOr<DequeueTokenReply> reply) { OnToken(std::move(reply)); });
}

void ReplicatedStrategy::OnToken(absl::StatusOr<DequeueTokenReply> token) {
  if (!token.ok()) return TellOutcome(token.status());
  if (absl::Status status = CheckToken(*token); !status.ok()) return TellOutcome(status);
  reduction_.Release([this, token = *std::move(token)](const absl::Status& released) {
    if (!released.ok()) return TellOutcome(released);
    OnReleased(token);
  });
}

void ReplicatedStrategy::OnReleased(const DequeueTokenReply& token) {
  if (absl::Status wrong = replicas_->Check(reduction_.sum()); !wrong.ok()) {
    return TellOutcome(wrong);
  }
  outcome_.next = outcome_.local_step = step_.next();
  outcome_.done = token.done();
  if (!outcome_.done) {
    // Applied by the thread of the next BeginStep: this one must not be kept from other calls.
    token_ = token;
    return TellOutcome(outcome_);
  }
  Apply(token);
  AwaitLaterGroups();
  writer_.WhenIdle([this](const absl::Status& stored) {
    TellOutcome(stored.ok() ? absl::StatusOr<StepOutcome>(outcome_) : stored);
  });
}

absl::Status ReplicatedStrategy::CheckToken(const DequeueTokenReply& token) const {
  if (token.step() == step_.next().value()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(options_.shards.shard_names[kStepShard],
                                          ": token of step ", token.step(), ", expected ",
                                          step_.next().value(), " (strategy replicated)"));
}

void ReplicatedStrategy::Apply(const DequeueTokenReply& token) {
  server_.Change([this] {
    replicas_->Apply(LearningRateAt(learning_rate_, replicas_->version()), reduction_.sum(),
                     clipping_);
  });
  keeps_values_ = token.store_values();
  keeps_slots_ = token.store_slots();
  StoreIfKept(reduction_.is_first());
}

void ReplicatedStrategy::StoreIfKept(bool is_first) {
  if (!is_first || !keeps_values_ || stored_ == replicas_->version()) return;
  stored_ = replicas_->version();
  Store(keeps_slots_);
}

void ReplicatedStrategy::AwaitLaterGroups() {
  reduction_.AwaitGroup([this](const absl::StatusOr<ReducerOfGroup>& group) {
    if (!group.ok()) return;  // cancelled
    if (group->step <= replicas_->version()) StoreIfKept(group->is_first_holder);
    AwaitLaterGroups();
  });
}

void ReplicatedStrategy::PrepareGroup(const ReducerOfGroup& group, StatusCallback done) {
  if (group.step <= replicas_->version()) StoreIfKept(group.is_first_holder);
  writer_.WhenIdle(std::move(done));
}

void ReplicatedStrategy::Store(bool with_slots) {
  std::vector<TensorToStore> tensors;
  const std::vector<WholeVariable>& variables = layout_.variables();
  for (size_t i = 0; i + 1 < variables.size(); ++i) {
    if (variables[i].frozen) continue;
    const Variable& variable = replicas_->variable(i);
    const auto add = [&](const std::string& slot, const TensorView& whole,
                         const std::shared_ptr<const void>& owner) {
      for (const VariablePart& part : variables[i].parts) {
        tensors.push_back({part.id, part.shard, slot, part.In(whole), owner});
      }
    };
    add("", variable.newest()->view(), variable.newest());
    if (!variables[i].trainable) continue;
    const absl::Span<const SlotSpec> slots = rules_.of(variables[i].name).slots();
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      // The moving average is the last one, and is evaluated.
      const bool is_average = rules_.is_averaged(variables[i].name) && slot + 1 == slots.size();
      if (with_slots || is_average) add(slots[slot].name, variable.slots()[slot], nullptr);
    }
  }
  writer_.Write(replicas_->version(), std::move(tensors));
}

void ReplicatedStrategy::TellOutcome(absl::StatusOr<StepOutcome> outcome) {
  wait_.Clear();
  std::exchange(ended_, nullptr)(std::move(outcome));
}

void ReplicatedStrategy::Cancel() {
  reader_.Cancel();
  member_reader_.Cancel();
  writer_.Cancel();
  groups_->Cancel();
  if (shards_ != nullptr) shards_->Cancel();
}

}  // namespace lockstep::worker
