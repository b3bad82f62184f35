#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "ps/shard/shard_impl.h"
#include "ps/shard/tensor_names.h"

namespace lockstep::ps {
namespace {

constexpr ShardIndex kScalarShard(0);

std::vector<NamedTensor> TensorsOf(const HostedState& state, const Snapshot& snapshot,
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
      return absl::FailedPreconditionError(absl::StrCat(
          "version ", version.value(), " is not kept with its slots: the grant of step ",
          SaturatingSubtract(version.value(), 1), " must ask for that"));
    }
    shard = admission_.shard();
    num_shards = state_->num_shards;
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

absl::Status Shard::Impl::ReleaseSnapshot(const Command& command, GlobalStep version) {
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_RETURN_IF_ERROR(AdmitCommand(command));
    LetGo(state_->snapshots.Release(version), &outbox);
  }
  outbox.Run();
  return absl::OkStatus();
}

}  // namespace lockstep::ps
