#include "ps/copy/mean_messages.h"

#include <algorithm>

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
  const auto begin_message = [&] {
    PushRequest& header = messages.emplace_back().header;
    *header.mutable_worker() = primary;
    header.set_push_seq(push_seq.value());
    header.set_local_step(means.step.value());
    header.set_mean_learning_rate(means.learning_rate);
  };
  begin_message();
  uint64_t bytes = 0;  // of the last message
  for (const MeanGradient& mean : means.gradients) {
    const OutgoingTensor tensor = TensorOf(mean);
    const uint64_t size = tensor.row_indices.size() * kIndexBytes + tensor.values.size();
    for (uint64_t offset = 0; offset == 0 || offset < size; offset += chunk) {
      const uint64_t part = std::min(chunk, size - offset);
      if (bytes + part > chunk) {
        begin_message();
        bytes = 0;
      }
      bytes += part;
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
