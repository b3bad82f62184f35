#include "ps/copy/mean_messages.h"

#include <algorithm>
#include <span>

#include "common/tensor_proto/convert.h"

namespace lockstep::ps {
namespace {

constexpr uint64_t kIndexBytes = sizeof(int64_t);

OutgoingTensor TensorOf(const MeanGradient& mean) {
  if (mean.rows == nullptr) return {.values = mean.values.bytes()};
  return {.values = mean.rows->values.view().bytes(),
          .row_indices = {mean.rows->indices.data(), mean.rows->indices.size()}};
}

}  // namespace

std::vector<MeanMessage> CutIntoMessages(const StepMeans& means,
                                         const lockstep::WorkerIdentity& primary, PushSeq push_seq,
                                         uint64_t most_bytes) {
  // No chunk of a sparse mean cuts an index.
  const uint64_t chunk = std::max(kIndexBytes, most_bytes / kIndexBytes * kIndexBytes);
  std::vector<MeanMessage> messages;
  const auto begin_message = [&](std::span<const CountedPush> mean_of) {
    PushRequest& header = messages.emplace_back().header;
    *header.mutable_worker() = primary;
    header.set_push_seq(push_seq.value());
    header.set_local_step(means.step.value());
    header.set_mean_learning_rate(means.learning_rate);
    header.set_stale(means.stale);
    for (const CountedPush& push : mean_of) {
      lockstep::CountedPush* const to = header.add_mean_of();
      to->set_worker(push.worker.value());
      to->set_incarnation(push.incarnation.value());
      to->set_push_seq(push.push_seq.value());
    }
  };
  std::span<const CountedPush> mean_of;  // of the last message
  if (!means.gradients.empty()) mean_of = means.gradients.front().mean_of;
  begin_message(mean_of);
  for (const MeanGradient& mean : means.gradients) {
    const OutgoingTensor tensor = TensorOf(mean);
    const uint64_t size = tensor.row_indices.size() * kIndexBytes + tensor.values.size();
    for (uint64_t offset = 0; offset == 0 || offset < size; offset += chunk) {
      const uint64_t part = std::min(chunk, size - offset);
      const bool is_of_others = !std::ranges::equal(mean_of, mean.mean_of);
      if (messages.back().num_bytes + part > chunk || is_of_others) {
        mean_of = mean.mean_of;
        begin_message(mean_of);
      }
      messages.back().num_bytes += part;
      lockstep::PushPiece* const piece = messages.back().header.add_pieces();
      piece->set_variable(mean.variable.value());
      piece->set_dtype(
          ToProto(mean.rows == nullptr ? mean.values.dtype : mean.rows->values.dtype()));
      piece->mutable_dims()->Add(mean.shape.dims().begin(), mean.shape.dims().end());
      piece->set_offset(offset);
      piece->set_size(part);
      if (mean.rows != nullptr) piece->set_rows(static_cast<int64_t>(mean.rows->indices.size()));
      OutgoingTensor& sent = messages.back().tensors.emplace_back(tensor);
      sent.offset = offset;
      sent.size = part;
    }
  }
  return messages;
}

}  // namespace lockstep::ps
