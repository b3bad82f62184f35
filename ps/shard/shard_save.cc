#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "ps/shard/shard_impl.h"
#include "ps/shard/take_snapshot.h"
#include "ps/shard/tensor_names.h"

namespace lockstep::ps {
namespace {

constexpr ShardIndex kScalarShard(0);

std::vector<NamedTensor> TensorsOf(const EpochState& state, const Snapshot& snapshot,
                                   ShardIndex shard) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < state.catalog.size(); ++i) {
    const std::string& name = state.catalog[i].name;
    const UpdateRule& rule = *state.variables[i]->rule;
    tensors.push_back({name, snapshot.values[i]->view()});
    for (size_t slot = 0; slot < snapshot.slots[i].size(); ++slot) {
      tensors.push_back(
          {SlotTensorName(name, rule.slots()[slot].name), snapshot.slots[i][slot].view()});
    }
  }
  // Every shard has its own copy, all the same.
  if (shard == kScalarShard) {
    for (size_t i = 0; i < snapshot.scalars.size(); ++i) {
      tensors.push_back({ScalarTensorName(state.rule->scalars()[i].name),
                         TensorView{DType::kFloat32, Shape(), &snapshot.scalars[i]}});
    }
  }
  return tensors;
}

}  // namespace

absl::StatusOr<SavedShard> Shard::Impl::Save(const Command& command, GlobalStep version,
                                             const std::string& folder) {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<NamedTensor> tensors;
  ShardIndex shard;
  uint32_t num_shards = 0;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitCommand(command));
    snapshot = state_->snapshots.Find(version);
    if (snapshot == nullptr || !snapshot->has_slots) {
      LOCKSTEP_RETURN_IF_ERROR(CheckNewest(version));
      snapshot = CopyNewest();
      if (Hosted() == nullptr) return absl::AbortedError("the epoch is over");
    }
    shard = view_.shard();
    num_shards = state_->config.placement().shards();
    tensors = TensorsOf(*state_, *snapshot, shard);
  }
  absl::StatusOr<ShardFile> file = WriteShard(folder, shard.value(), num_shards, tensors);
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != nullptr) state_->save_failed = !file.ok();
  }
  if (!file.ok()) return file.status();
  SavedShard saved{std::move(file->file), file->bytes, {}};
  for (TensorRecord& record : file->tensors) {
    saved.tensors.push_back(
        {std::move(record.name), record.dtype, std::move(record.shape), record.crc32c});
  }
  return saved;
}

absl::Status Shard::Impl::CheckNewest(GlobalStep version) const {
  const EpochState& state = *state_;
  const bool is_newest =
      !state.asynchronous.has_value() && !state.step.terms().has_value() && !state.is_completing &&
      !state.is_copied && state.step.IsUntouched() && state.step.shard_step() == version &&
      std::ranges::none_of(state.variables,
                           [](const auto& hosted) { return hosted->early.update.has_value(); });
  // Where no variable takes gradients, every version is the same.
  const bool is_constant = state.step.IsEmpty() && view_.shard() != kScalarShard;
  if (is_newest || is_constant) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "version ", version.value(), " is not kept with its slots, and the shard is at step ",
      state.step.shard_step().value(),
      state.step.IsUntouched() ? "" : ", of which it has taken gradients"));
}

// Copying takes long: nothing is granted meanwhile, and the state stays.
std::shared_ptr<const Snapshot> Shard::Impl::CopyNewest() {
  EpochState& state = *state_;
  state.is_copied = true;
  ++in_flight_;
  mutex_.Unlock();
  const std::shared_ptr<Snapshot> copy =
      TakeSnapshot(state, {.keep_values = true, .keep_slots = true});
  mutex_.Lock();
  copy->scalars = state.scalars;
  state.is_copied = false;
  DeferredCallbacks deferred;
  EndFlight(&deferred);
  mutex_.Unlock();
  deferred.Run();
  mutex_.Lock();
  return copy;
}

absl::Status Shard::Impl::ReleaseSnapshot(const Command& command, GlobalStep version,
                                          const std::optional<EvaluatedVersion>& evaluation) {
  DeferredCallbacks deferred;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitCommand(command));
    LetGo(state_->snapshots.Release(version), &deferred);
    if (evaluation.has_value()) state_->evaluations.Keep(*evaluation);
  }
  deferred.Run();
  return absl::OkStatus();
}

}  // namespace lockstep::ps
