#include "worker/strategy/replicated/version_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/transport/ps_methods.h"

namespace lockstep::worker {

VersionWriter::VersionWriter(const SessionOptions& options, const ShardGroupResources& resources)
    : options_(options), resources_(resources), gate_(std::make_shared<Gate>()) {}

VersionWriter::~VersionWriter() {
  Cancel();
  gate_->Close();
}

void VersionWriter::Write(GlobalStep version, std::vector<TensorToStore> tensors) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(num_open_ == 0);
    if (!failure_.ok()) return;
    version_ = version;
    shards_.clear();
    shards_.resize(resources_.shards.size());
    for (TensorToStore& tensor : tensors) {
      OfShard& shard = shards_[tensor.shard];
      shard.is_open = true;
      shard.tensors.push_back(std::move(tensor));
    }
    for (OfShard& shard : shards_) {
      shard.retry = RetryPolicy(CallKind::kPlain, {.patience = options_.patience});
      num_open_ += shard.is_open ? 1 : 0;
    }
  }
  for (size_t shard = 0; shard < resources_.shards.size(); ++shard) Send(shard);
}

void VersionWriter::WhenIdle(StatusCallback done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (num_open_ > 0) {
      idle_.push_back(std::move(done));
      return;
    }
    status = failure_;
  }
  done(status);
}

VersionWriter::Message VersionWriter::MakeMessage(size_t shard) {
  const OfShard& of = shards_[shard];
  Message message{.tensor = of.tensor, .offset = of.offset};
  *message.header.mutable_worker() = options_.identity;
  message.header.set_version(version_.value());
  uint64_t room = options_.fetch_chunk_bytes;
  while (message.tensor < of.tensors.size() && room > 0) {
    const TensorToStore& tensor = of.tensors[message.tensor];
    const std::span<const std::byte> bytes = tensor.values.bytes();
    const uint64_t size = std::min<uint64_t>(room, bytes.size() - message.offset);
    StoredPiece* piece = message.header.add_pieces();
    piece->set_variable(tensor.variable.value());
    piece->set_slot(tensor.slot);
    piece->set_offset(message.offset);
    piece->set_size(size);
    message.tensors.push_back({.values = bytes.subspan(message.offset, size)});
    room -= size;
    message.offset += size;
    if (message.offset < bytes.size()) break;
    ++message.tensor;
    message.offset = 0;
  }
  return message;
}

void VersionWriter::Send(size_t shard) {
  auto pass = std::make_shared<Gate::Pass>(gate_->Enter());
  if (!*pass) return;
  Message message;
  {
    absl::MutexLock lock(&mutex_);
    if (!shards_[shard].is_open) return;
    message = MakeMessage(shard);
  }
  const size_t tensor = message.tensor;
  const uint64_t offset = message.offset;
  resources_.shards[shard]->Call(
      kStoreVersion, std::move(message.header), message.tensors, /*accepts_references=*/false,
      [this, pass, shard, tensor,
       offset](const absl::StatusOr<TensorReply<StoreVersionReply>>& reply) {
        OnAnswer(shard, tensor, offset, reply.status());
      });
}

void VersionWriter::OnAnswer(size_t shard, size_t tensor, uint64_t offset,
                             const absl::Status& status) {
  const absl::Duration now = resources_.clock->Monotonic();
  std::optional<absl::Duration> pause;
  absl::Status failure;
  bool is_over = false;
  {
    absl::MutexLock lock(&mutex_);
    OfShard& of = shards_[shard];
    if (!of.is_open) return;
    if (status.ok()) {
      of.retry.OnSuccess();
      of.tensor = tensor;
      of.offset = offset;
      is_over = tensor == of.tensors.size();
    } else {
      pause = of.retry.OnFailure(status, now);
      if (!pause.has_value()) failure = of.retry.GivenUp(status);
    }
  }
  if (is_over || !failure.ok()) return Close(shard, failure);
  if (!pause.has_value()) return Send(shard);
  resources_.timer->After(*pause, [this, gate = gate_, shard] {
    if (const Gate::Pass inside = gate->Enter()) Send(shard);
  });
}

void VersionWriter::Close(size_t shard, const absl::Status& status) {
  std::vector<StatusCallback> idle;
  absl::Status failure;
  {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(shards_[shard].is_open, false)) return;
    shards_[shard].tensors.clear();
    failure_.Update(status);
    if (--num_open_ > 0) return;
    idle = std::exchange(idle_, {});
    failure = failure_;
  }
  for (StatusCallback& done : idle) done(failure);
}

void VersionWriter::Cancel() {
  size_t num_shards = 0;
  {
    absl::MutexLock lock(&mutex_);
    failure_.Update(absl::CancelledError("the version's storing was cancelled"));
    num_shards = shards_.size();
  }
  for (size_t shard = 0; shard < num_shards; ++shard) {
    Close(shard, absl::CancelledError("the version's storing was cancelled"));
  }
}

}  // namespace lockstep::worker
