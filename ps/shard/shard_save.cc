#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/grants_ahead.h"
#include "common/base/not_kept.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/owner.h"
#include "ps/shard/epoch_state.h"
#include "ps/shard/shard.h"
#include "ps/shard/step_applier.h"
#include "ps/shard/tensor_names.h"

namespace lockstep::ps {
namespace {

constexpr ShardIndex kScalarShard(0);

// `kept` outlives it.
NamedTensor Named(std::string name, const KeptTensor& kept) {
  if (kept.tensor != nullptr) return {std::move(name), kept.tensor->view()};
  const TensorSnapshot* const snapshot = kept.snapshot.get();
  return {
      std::move(name), TensorView{snapshot->dtype(), snapshot->shape(), nullptr},
      [snapshot](uint64_t offset, std::span<std::byte> to) { snapshot->CopyBytes(offset, to); }};
}

std::vector<NamedTensor> TensorsOf(const EpochVariables& variables, const Snapshot& snapshot,
                                   ShardIndex shard) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < variables.catalog.size(); ++i) {
    const std::string& name = variables.catalog[i].name;
    const UpdateRule& rule = *variables.entries[i]->rule;
    tensors.push_back(Named(name, snapshot.values[i]));
    for (size_t slot = 0; slot < snapshot.slots[i].size(); ++slot) {
      tensors.push_back(
          Named(SlotTensorName(name, rule.slots()[slot].name), snapshot.slots[i][slot]));
    }
  }
  // Every shard has its own copy, all the same.
  if (shard == kScalarShard) {
    for (size_t of = 0; of < snapshot.scalars.size(); ++of) {
      const absl::Span<const ScalarSpec> specs = variables.optimizers[of].plain().scalars();
      for (size_t i = 0; i < specs.size(); ++i) {
        tensors.push_back({ScalarTensorName(variables.config.OptimizerName(of), specs[i].name),
                           TensorView{DType::kFloat32, Shape(), &snapshot.scalars[of][i]}});
      }
    }
  }
  return tensors;
}

// Whether no step from `version` on that the shard has closed expected a gradient. The optimizers'
// scalars, which the first shard saves, advance in such steps, too.
bool IsUnchangedSince(GlobalStep version, const EpochState& state, ShardIndex shard)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu) {
  const GlobalStep now = state.step.shard_step();
  if (shard == kScalarShard || version > now) return false;
  if (SaturatingSubtract(now.value(), version.value()) > kGrantsAhead) return false;
  return !state.step.turns().ExpectsAny(version, now);
}

// OK while every variable has this version: nothing is granted, and nothing of the step at hand
// has been taken. NotKeptError otherwise.
absl::Status CheckNewest(const EpochState& state, GlobalStep version, ShardIndex shard)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu) {
  const bool is_newest =
      !state.driver->IsBusy() && state.step.IsUntouched() &&
      (state.step.shard_step() == version || IsUnchangedSince(version, state, shard)) &&
      std::ranges::none_of(state.variables.entries,
                           [](const auto& entry) { return entry->early.has_value(); });
  if (state.variables.config.is_replicated()) {
    return NotKeptError(version.value(), "the workers have its values (strategy replicated)");
  }
  // Where no variable takes gradients, every version is the same.
  const bool is_constant = state.step.IsEmpty() && shard != kScalarShard;
  if (is_newest || is_constant) return absl::OkStatus();
  return NotKeptError(
      version.value(),
      absl::StrCat("the shard is at step ", state.step.shard_step().value(),
                   state.step.IsUntouched() ? "" : ", of which it has taken gradients"));
}

}  // namespace

absl::StatusOr<ShardFile> Shard::Save(const Command& command, GlobalStep version,
                                      const std::string& folder) {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<NamedTensor> tensors;
  ShardIndex shard;
  Epoch epoch;
  uint32_t num_shards = 0;
  {
    EpochGate::Pass pass;
    {
      absl::MutexLock lock(&mutex_);
      LOCKSTEP_RETURN_IF_ERROR(CheckHosting(view_.CheckServingCommand(command)));
      pass = gate_.Enter();
      shard = view_.shard();
      epoch = view_.epoch();
      EpochState& state = *pass.state();
      state.mu.AssertHeld();
      snapshot = state.snapshots.Find(version);
      if (!state.to_store.IsComplete(version)) {
        return absl::UnavailableError(absl::StrCat(
            "version ", version.value(), ": its worker has not stored all of it: try again"));
      }
      const bool is_kept = snapshot != nullptr && snapshot->has_slots;
      state.saves.NoteRequested(folder, version);
      if (!is_kept) {
        LOCKSTEP_RETURN_IF_ERROR(CheckNewest(state, version, shard));
        const auto newest =
            TakeSnapshot(state.variables, {.keep_values = true, .keep_slots = true});
        newest->scalars = state.scalars;
        snapshot = newest;
      }
    }
    const EpochState& state = *pass.state();
    num_shards = state.variables.config.placement().shards();
    tensors = TensorsOf(state.variables, *snapshot, shard);
  }
  const auto check = [&] {
    return CheckShardWriter(folder, command.job(), epoch.value(), command.term());
  };
  return WriteShard(folder, shard.value(), num_shards, tensors, check);
}

void Shard::LookForCheckpoint() {
  std::optional<GlobalStep> unsaved;
  std::string folder;
  Epoch epoch;
  {
    absl::MutexLock lock(&mutex_);
    const EpochState* const state = gate_.state();
    if (state == nullptr) return;
    state->mu.AssertHeld();
    unsaved = state->Unsaved();
    folder = state->saves.folder();
    epoch = view_.epoch();
  }
  if (!unsaved.has_value() || folder.empty()) return;
  if (!HasCheckpointSince(folder, epoch.value(), unsaved->value())) return;
  absl::MutexLock lock(&mutex_);
  EpochState* const state = gate_.state();
  if (state == nullptr || view_.epoch() != epoch) return;
  state->mu.AssertHeld();
  state->saves.NoteCheckpoint(*unsaved);
}

absl::Status Shard::ReleaseSnapshot(const Command& command, GlobalStep version,
                                    const std::optional<EvaluatedVersion>& evaluation) {
  std::shared_ptr<const void> released;
  std::optional<StepApplier> applier;
  {
    DeferringLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(CheckHosting(view_.CheckCommand(command)));
    EpochState& state = *gate_.state();
    state.mu.AssertHeld();
    released = state.snapshots.Release(version);
    if (evaluation.has_value()) state.evaluations.Keep(*evaluation);
    if (!state.to_store.IsComplete(version)) {
      state.to_store.End(version, lock.deferred());
      // The step that it begins need not wait for it any more.
      applier.emplace(gate_.Enter());
      applier->TakeReady(lock.deferred());
    }
  }
  if (applier.has_value()) applier->Run();
  LetGo(options_.run_in_background, std::move(released));
  return absl::OkStatus();
}

}  // namespace lockstep::ps
