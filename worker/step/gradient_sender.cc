#include "worker/step/gradient_sender.h"

#include <utility>

namespace lockstep::worker {

GradientSender::GradientSender(const VariableLayout& layout, std::span<PsData* const> shards,
                               const PusherOptions& options)
    : layout_(layout), verdicts_(shards.size()) {
  for (PsData* shard : shards) {
    pushers_.push_back(std::make_unique<GradientPusher>(shard, options));
  }
}

GradientSender::~GradientSender() = default;

void GradientSender::Start(PushSeq push_seq, std::span<const GlobalStep> stamps) {
  verdicts_.Expect(pushers_.size());
  for (size_t shard = 0; shard < pushers_.size(); ++shard) {
    pushers_[shard]->Start(push_seq, stamps[shard],
                           layout_.pushed_parts(static_cast<uint32_t>(shard)),
                           [this, shard](absl::StatusOr<PushSummary> summary) {
                             verdicts_.Tell(shard, std::move(summary));
                           });
  }
}

// Parts leave in the order that is opposite to the placement's, as variables do.
void GradientSender::Send(size_t variable, const TensorView& gradient) {
  const WholeVariable& whole = layout_.variables()[variable];
  const std::vector<VariablePart>& parts = whole.parts;
  if (parts.size() == 1) return SendPart(whole, parts[0], gradient);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    SendPart(whole, *part, RowRange(gradient, part->first_row, part->num_rows));
  }
}

void GradientSender::SendPart(const WholeVariable& variable, const VariablePart& part,
                              const TensorView& values) {
  GradientPusher& pusher = *pushers_[part.shard];
  if (variable.trainable) {
    pusher.Add(part.id, values);
  } else {
    pusher.AddStatistic(part.id, values);
  }
}

void GradientSender::SendRows(size_t variable, const PartRows& rows, const TensorView& gradient) {
  const std::vector<VariablePart>& parts = layout_.variables()[variable].parts;
  for (size_t k = parts.size(); k-- > 0;) {
    const PartRows::Range& range = rows.of_part(k);
    const auto count = static_cast<int64_t>(range.indices.size());
    pushers_[parts[k].shard]->AddRows(
        parts[k].id, parts[k].shape,
        {absl::MakeConstSpan(range.indices.data(), range.indices.size()),
         RowRange(gradient, static_cast<int64_t>(range.begin), count)});
  }
}

void GradientSender::Flush() {
  for (const std::unique_ptr<GradientPusher>& pusher : pushers_) pusher->Flush();
}

absl::StatusOr<std::span<const PushSummary>> GradientSender::Finish() { return verdicts_.Wait(); }

}  // namespace lockstep::worker
