#include "worker/strategy/parameter_server/shard_group.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep::worker {
namespace {

bool ReadsInPlace(const ShardGroupOptions& options) {
  return options.values_in_place && !options.session.asynchronous;
}

SessionOptions SessionOptionsOf(const ShardGroupOptions& options) {
  SessionOptions session = options.session;
  // Copied values come in several replies, so that the first are copied while the last are still
  // made. Values that are read in place come in one.
  if (options.token_per_replica) {
    session.most_fused_bytes =
        ReadsInPlace(options) ? std::numeric_limits<uint64_t>::max() : session.shared_chunk_bytes;
  }
  return session;
}

}  // namespace

void AddVerdicts(std::span<const PushSummary> summaries, StepOutcome* outcome) {
  for (const PushSummary& summary : summaries) {
    outcome->accepted += summary.accepted;
    outcome->stale += summary.stale;
  }
}

absl::StatusOr<std::unique_ptr<ShardGroup>> ShardGroup::Create(
    const ShardGroupOptions& options, const VariableLayout& layout,
    const ShardGroupResources& resources) {
  std::unique_ptr<ShardGroup> group(new ShardGroup(options, layout, resources));
  std::vector<ShardSession*> sessions;
  for (const auto& session : group->sessions_) sessions.push_back(session.get());
  LOCKSTEP_ASSIGN_OR_RETURN(
      group->cache_, VariableCache::Create(
                         layout, sessions,
                         ReadsInPlace(options) ? VariableCache::kInPlace : VariableCache::kCopied,
                         resources.make_tensor, options.most_rows));
  return group;
}

ShardGroup::ShardGroup(const ShardGroupOptions& options, const VariableLayout& layout,
                       const ShardGroupResources& resources)
    : options_(options),
      layout_(layout),
      opened_(resources.shards.size()),
      forgotten_(resources.shards.size()),
      verdicts_(resources.shards.size()) {
  for (TensorTransport* shard : resources.shards) {
    sessions_.push_back(std::make_unique<ShardSession>(SessionOptionsOf(options), shard,
                                                       resources.timer, resources.clock));
    if (!options.shards_may_move) continue;
    sessions_.back()->NotifyOfLoss([this](const absl::Status& loss) { Fail(loss); });
  }
}

ShardGroup::~ShardGroup() { failing_.Close(); }

void ShardGroup::Open(Callback<bool> done) {
  if (!IsHalfWidth(options_.session.wire_dtype)) return done(true);
  opened_.Arm([done = std::move(done)](absl::StatusOr<std::span<const int>> opened) mutable {
    if (!opened.ok()) return done(opened.status());
    done(true);
  });
  for (size_t shard = 0; shard < sessions_.size(); ++shard) {
    sessions_[shard]->Open([this, shard](const absl::StatusOr<TransportInfo>& info) {
      opened_.SetAnswer(shard,
                        info.ok() ? absl::StatusOr<int>(info->references.ok()) : info.status());
    });
  }
}

void ShardGroup::Begin(PushSeq push_seq, GlobalStep step, std::span<const GlobalStep> local_steps) {
  const size_t loss = layout_.turns().LossOf(step);
  for (size_t shard = 0; shard < sessions_.size(); ++shard) {
    sessions_[shard]->BeginGradient(push_seq, local_steps[shard],
                                    layout_.pushed_parts(loss, static_cast<uint32_t>(shard)));
  }
}

void ShardGroup::Add(std::span<const int> variables, std::span<const MutableTensorView> gradients) {
  for (const int index : variables) {
    const WholeVariable& variable = layout_.variables()[index];
    const std::vector<VariablePart>& parts = variable.parts;
    const TensorView gradient = gradients[index];
    if (variable.sparse) {
      AddRows(variable, cache_->part_rows(index), gradient);
    } else if (parts.size() == 1) {
      AddPart(variable, parts[0], gradient);
    } else {
      // In the reverse order of the placement, as variables are.
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        AddPart(variable, *part, part->In(gradient));
      }
    }
  }
  for (const auto& session : sessions_) session->Flush();
}

void ShardGroup::AddPart(const WholeVariable& variable, const VariablePart& part,
                         const TensorView& values) {
  sessions_[part.shard]->Add({.id = part.id,
                              .shape = values.shape,
                              .values = values,
                              .is_statistic = !variable.trainable});
}

void ShardGroup::AddRows(const WholeVariable& variable, const PartRows& rows,
                         const TensorView& gradient) {
  const std::vector<VariablePart>& parts = variable.parts;
  for (size_t k = parts.size(); k-- > 0;) {
    const PartRows::Range& range = rows.of_part(k);
    const auto count = static_cast<int64_t>(range.indices.size());
    sessions_[parts[k].shard]->Add(
        {.id = parts[k].id,
         .shape = parts[k].shape,
         .values = RowRange(gradient, static_cast<int64_t>(range.begin), count),
         .is_sparse = true,
         .indices = absl::MakeConstSpan(range.indices.data(), range.indices.size())});
  }
}

void ShardGroup::End(DequeueSeq dequeue_seq, Callback<std::span<const PushSummary>> done) {
  judged_ = std::move(done);
  verdicts_.Arm([this](absl::StatusOr<std::span<const PushSummary>> verdicts) {
    if (absl::Status failed = failure(); !failed.ok()) verdicts = std::move(failed);
    std::exchange(judged_, nullptr)(std::move(verdicts));
  });
  for (size_t shard = 0; shard < sessions_.size(); ++shard) {
    sessions_[shard]->EndStep(shard == kStepShard ? dequeue_seq : DequeueSeq(),
                              [this, shard](absl::StatusOr<PushSummary> summary) {
                                // Another shard may wait for the end of the step.
                                if (!summary.ok()) Fail(summary.status());
                                verdicts_.SetAnswer(shard, std::move(summary));
                              });
  }
}

bool ShardGroup::HoldsGradient() const {
  return std::ranges::any_of(sessions_,
                             [](const auto& session) { return session->HoldsGradient(); });
}

bool ShardGroup::OwesGradient() const {
  return std::ranges::any_of(sessions_,
                             [](const auto& session) { return session->OwesGradient(); });
}

void ShardGroup::AwaitToken(DequeueSeq dequeue_seq, GlobalStep token_step,
                            std::optional<DequeueTokenReply> came_along,
                            Callback<DequeueTokenReply> done) {
  Callback<DequeueTokenReply> next = std::move(done);
  if (options_.shards_may_move) {
    next = [this, done = std::move(next)](absl::StatusOr<DequeueTokenReply> token) mutable {
      if (!token.ok()) return done(failure().ok() ? token.status() : failure());
      ForgetGradient(*std::move(token), std::move(done));
    };
  }
  if (came_along.has_value()) return next(*std::move(came_along));
  sessions_[kStepShard]->DequeueToken(dequeue_seq, token_step, std::move(next));
}

void ShardGroup::ForgetGradient(DequeueTokenReply token, Callback<DequeueTokenReply> done) {
  forgotten_.Arm([this, token = std::move(token),
                  done = std::move(done)](const absl::StatusOr<std::span<const int>>&) mutable {
    // All calls were cancelled, those of the next step too.
    if (absl::Status failed = failure(); !failed.ok()) return done(std::move(failed));
    done(std::move(token));
  });
  for (size_t shard = 0; shard < sessions_.size(); ++shard) {
    sessions_[shard]->ForgetGradient([this, shard] { forgotten_.SetAnswer(shard, 0); });
  }
}

void ShardGroup::Fail(const absl::Status& failure) {
  const Gate::Pass inside = failing_.Enter();
  if (!inside) return;
  {
    absl::MutexLock lock(&mutex_);
    failure_.Update(failure);
  }
  Cancel();
}

absl::Status ShardGroup::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

void ShardGroup::Cancel() {
  for (const auto& session : sessions_) session->Cancel();
}

}  // namespace lockstep::worker
