#include "worker/strategy/parameter_server/shard_group.h"

#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/indexed_slices.h"
#include "worker/strategy/parameter_server/persistent_call.h"

namespace lockstep::worker {
namespace {

PusherOptions PusherOptionsOf(const ShardGroupOptions& options) {
  PusherOptions pusher;
  pusher.identity = options.identity;
  pusher.asynchronous = options.asynchronous;
  pusher.wire_type = options.wire_dtype;
  pusher.patience = options.patience;
  return pusher;
}

bool ReadsInPlace(const ShardGroupOptions& options) {
  return options.values_in_place && !options.asynchronous;
}

// Copied values come in several replies, so that the first are copied while the last are still
// made. Values that are read in place come in one.
uint64_t LargestHeldGradient(const ShardGroupOptions& options) {
  return ReadsInPlace(options) ? std::numeric_limits<uint64_t>::max()
                               : PullerOptions().in_memory_chunk_bytes;
}

}  // namespace

ShardGroup::ShardGroup(ShardGroupOptions options, const VariableLayout& layout,
                       std::span<PsData* const> shards)
    : options_(std::move(options)), layout_(layout), verdicts_(shards.size()) {
  for (PsData* shard : shards) {
    joined_.push_back(std::make_unique<JoinedCalls>(shard, LargestHeldGradient(options_)));
    pointers_.push_back(joined_.back().get());
    pushers_.push_back(
        std::make_unique<GradientPusher>(pointers_.back(), PusherOptionsOf(options_)));
  }
}

ShardGroup::~ShardGroup() = default;

absl::StatusOr<std::unique_ptr<VariableCache>> ShardGroup::MakeCache(
    VariableCache::Contents contents) {
  return VariableCache::Create(
      layout_, pointers_, options_.identity, contents,
      ReadsInPlace(options_) ? VariableCache::kInPlace : VariableCache::kCopied,
      options_.wire_dtype, options_.patience);
}

absl::Status ShardGroup::Open() {
  if (!IsHalfWidth(options_.wire_dtype)) return absl::OkStatus();
  for (PsData* shard : pointers_) {
    const absl::StatusOr<bool> shares = CallPersistently<bool>(
        [&](Done<bool> done) { shard->ShareMemory(options_.identity, std::move(done)); },
        options_.patience, options_.clock, &cancelled_);
    LOCKSTEP_RETURN_IF_ERROR(shares.status());
  }
  return absl::OkStatus();
}

void ShardGroup::Begin(PushSeq push_seq, std::span<const GlobalStep> stamps, bool holds) {
  verdicts_.Expect(pushers_.size());
  for (size_t shard = 0; shard < pushers_.size(); ++shard) {
    const int pushed_parts = layout_.pushed_parts(static_cast<uint32_t>(shard));
    if (holds) joined_[shard]->Hold(pushed_parts);
    pushers_[shard]->Start(push_seq, stamps[shard], pushed_parts,
                           [this, shard](absl::StatusOr<PushSummary> summary) {
                             verdicts_.Tell(shard, std::move(summary));
                           });
  }
}

void ShardGroup::Add(std::span<const int> variables, std::span<const MutableTensorView> gradients,
                     const VariableCache& cache) {
  for (const int index : variables) {
    const WholeVariable& variable = layout_.variables()[index];
    const std::vector<VariablePart>& parts = variable.parts;
    const TensorView gradient = gradients[index];
    if (variable.sparse) {
      AddRows(variable, cache.part_rows(index), gradient);
    } else if (parts.size() == 1) {
      AddPart(variable, parts[0], gradient);
    } else {
      // In the reverse order of the placement, as variables are.
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        AddPart(variable, *part, RowRange(gradient, part->first_row, part->num_rows));
      }
    }
  }
  for (const std::unique_ptr<GradientPusher>& pusher : pushers_) pusher->Flush();
}

void ShardGroup::AddPart(const WholeVariable& variable, const VariablePart& part,
                         const TensorView& values) {
  GradientPusher& pusher = *pushers_[part.shard];
  if (variable.trainable) {
    pusher.Add(part.id, values);
  } else {
    pusher.AddStatistic(part.id, values);
  }
}

void ShardGroup::AddRows(const WholeVariable& variable, const PartRows& rows,
                         const TensorView& gradient) {
  const std::vector<VariablePart>& parts = variable.parts;
  for (size_t k = parts.size(); k-- > 0;) {
    const PartRows::Range& range = rows.of_part(k);
    const auto count = static_cast<int64_t>(range.indices.size());
    pushers_[parts[k].shard]->AddRows(
        parts[k].id, parts[k].shape,
        {absl::MakeConstSpan(range.indices.data(), range.indices.size()),
         RowRange(gradient, static_cast<int64_t>(range.begin), count)});
  }
}

bool ShardGroup::Release(DequeueSeq dequeue_seq) {
  bool waits_for_step = false;
  for (size_t shard = 0; shard < joined_.size(); ++shard) {
    waits_for_step |= joined_[shard]->Release(shard == kStepShard ? dequeue_seq : DequeueSeq());
  }
  return waits_for_step;
}

absl::StatusOr<DequeueTokenReply> ShardGroup::DequeueToken(DequeueSeq dequeue_seq) {
  JoinedCalls& step_shard = *joined_[kStepShard];
  if (std::optional<DequeueTokenReply> token = step_shard.TakeToken()) return *std::move(token);
  DequeueTokenRequest request;
  *request.mutable_worker() = options_.identity;
  request.set_dequeue_seq(dequeue_seq.value());
  return CallPersistently<DequeueTokenReply>(
      [&](Done<DequeueTokenReply> done) { step_shard.DequeueToken(request, std::move(done)); },
      options_.patience, options_.clock, &cancelled_);
}

void ShardGroup::Cancel() {
  absl::call_once(cancel_once_, [this] { cancelled_.Notify(); });
  for (const std::unique_ptr<JoinedCalls>& shard : joined_) shard->Cancel();
}

}  // namespace lockstep::worker
