#include "chief/checkpoint/checkpointer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/divergence.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::chief {

absl::StatusOr<ShardFile> ToShardFile(const SaveReply& reply) {
  ShardFile file{
      .file = reply.file(), .bytes = reply.bytes(), .is_finite = !reply.has_non_finite()};
  for (const SaveReply::TensorRecord& record : reply.tensors()) {
    const auto dtype = FromProto(record.dtype());
    const auto shape =
        Shape::Create({record.dims().data(), static_cast<size_t>(record.dims_size())});
    if (!dtype.ok() || !shape.ok()) {
      const absl::Status& why = dtype.ok() ? shape.status() : dtype.status();
      return absl::InvalidArgumentError(
          absl::StrCat(reply.file(), ": tensor ", record.name(), ": ", why.message()));
    }
    file.tensors.push_back(
        {.name = record.name(), .dtype = *dtype, .shape = *shape, .crc32c = record.crc32c()});
  }
  return file;
}

Checkpointer::Checkpointer(CheckpointerOptions options, std::vector<PsControl*> shards,
                           Executor* executor)
    : options_(std::move(options)),
      check_([claim = options_.claim] { return claim->Check(); }),
      shards_(std::move(shards)),
      executor_(executor) {}

Checkpointer::~Checkpointer() {
  if (disk_.joinable()) disk_.join();
}

void Checkpointer::Save(GlobalStep version, Callback<std::string> done) {
  LOCKSTEP_CHECK(!busy_);
  busy_ = true;
  done_ = std::move(done);
  manifest_ = options_.manifest;
  manifest_.step = version.value();
  manifest_.shards.assign(shards_.size(), {});
  open_ = shards_.size();
  failure_ = absl::OkStatus();
  if (!options_.claim->owed_owner().has_value()) return AskShards();
  RunOnDisk([this] {
    executor_->Post([this, owned = options_.claim->Ensure()]() mutable {
      owned.ok() ? AskShards() : End(std::move(owned), {});
    });
  });
}

void Checkpointer::AskShards() {
  SaveRequest request;
  *request.mutable_command() = options_.command;
  request.set_version(manifest_.step);
  request.set_folder(CheckpointFolder(options_.root, manifest_.step));
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard]->Call(kSave, request,
                         On<SaveReply>(executor_, [=, this](absl::StatusOr<SaveReply> reply) {
                           OnShard(shard, std::move(reply));
                         }));
  }
}

void Checkpointer::OnShard(size_t shard, absl::StatusOr<SaveReply> reply) {
  if (reply.ok()) {
    absl::StatusOr<ShardFile> file = ToShardFile(*reply);
    if (file.ok()) {
      manifest_.shards[shard] = *std::move(file);
    } else {
      failure_.Update(file.status());
    }
  } else {
    failure_.Update(reply.status());
  }
  if (--open_ > 0) return;
  absl::IsAborted(failure_) ? End(failure_, {}) : EndOnDisk();
}

// Commits what the shards have written, or deletes it.
void Checkpointer::EndOnDisk() {
  RunOnDisk([this, manifest = manifest_, failure = failure_, has_diverged = has_diverged_] {
    std::vector<std::string> warnings;
    absl::StatusOr<std::string> folder =
        failure.ok() ? CommitOwned(manifest, &warnings) : absl::StatusOr<std::string>(failure);
    // What stays all the same goes with the next save that succeeds.
    if (!folder.ok()) RemoveUnfinishedSave(options_.root, manifest.step, check_).IgnoreError();
    const bool diverges = folder.ok() && !manifest.IsFinite();
    if (diverges && !has_diverged) warnings.push_back(DescribeDivergence(*folder, manifest));
    executor_->Post(
        [this, diverges, folder = std::move(folder), warnings = std::move(warnings)]() mutable {
          if (folder.ok()) has_diverged_ = diverges;
          End(std::move(folder), std::move(warnings));
        });
  });
}

void Checkpointer::RunOnDisk(std::function<void()> work) {
  if (disk_.joinable()) disk_.join();
  if (options_.waits_for_disk) return work();
  disk_ = std::thread(std::move(work));
}

absl::StatusOr<std::string> Checkpointer::CommitOwned(const Manifest& manifest,
                                                      std::vector<std::string>* warnings) const {
  LOCKSTEP_RETURN_IF_ERROR(options_.claim->Ensure());
  return CommitCheckpoint(options_.root, manifest, options_.keep_last, warnings, check_);
}

void Checkpointer::End(absl::StatusOr<std::string> folder, std::vector<std::string> warnings) {
  busy_ = false;
  for (std::string& warning : warnings) options_.warn(std::move(warning));
  std::exchange(done_, nullptr)(std::move(folder));
}

}  // namespace lockstep::chief
