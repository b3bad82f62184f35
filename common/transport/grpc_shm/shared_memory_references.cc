#include "common/transport/grpc_shm/shared_memory_references.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/segmented_reader.h"
#include "common/tensor/seq_lock.h"

namespace lockstep {
namespace {

using Bytes = ReceivedTensors::Bytes;
using Segments = ReceivedTensors::Segments;

// The row indices of a message, and between them the values that it names.
struct Gathered {
  std::shared_ptr<const Segments> payload;
  Segments segments;
};

absl::StatusOr<ReceivedTensors> ReadPlaces(const PushRequest& request,
                                           SharedMemoryRegistry::Memory memory,
                                           std::shared_ptr<const Segments> payload) {
  const Bytes bytes = memory->bytes();
  SegmentedReader indices(*payload);
  const auto gathered = std::make_shared<Gathered>();
  gathered->segments.reserve(request.pieces_size());
  std::vector<ReceivedTensors::Reference> references;
  references.reserve(request.pieces_size());
  for (const PushPiece& piece : request.pieces()) {
    const auto wrong = [&piece](const auto&... what) {
      return absl::InvalidArgumentError(
          absl::StrCat("push of variable ", piece.variable(), ": ", what...));
    };
    const std::optional<uint64_t> index_bytes = PackedBytes(piece.rows(), 0);
    if (!index_bytes.has_value() || *index_bytes > piece.size() ||
        (*index_bytes > 0 && piece.offset() != 0)) {
      return wrong("expected a whole sparse gradient in memory, got ", piece.size(),
                   " bytes from offset ", piece.offset(), " of one of ", piece.rows(), " rows");
    }
    if (!indices.Share(*index_bytes, &gathered->segments)) {
      return wrong("expected a payload with the indices of its ", piece.rows(), " rows");
    }
    const uint64_t size = piece.size() - *index_bytes;
    if (piece.place() > bytes.size() || size > bytes.size() - piece.place()) {
      return wrong("expected a place in the worker's ", bytes.size(), " bytes, got ", size,
                   " bytes at ", piece.place());
    }
    references.push_back({bytes.subspan(piece.place(), size), size});
    gathered->segments.push_back(references.back().values);
  }
  if (indices.remaining() > 0) {
    return absl::InvalidArgumentError("a push in memory with a payload beyond its row indices");
  }
  gathered->payload = std::move(payload);
  return ReceivedTensors(std::shared_ptr<const Segments>(gathered, &gathered->segments),
                         std::move(references), std::move(memory));
}

// The values in a reply.
PullReply* ValuesOf(google::protobuf::Message* reply) {
  if (auto* const pull = dynamic_cast<PullReply*>(reply)) return pull;
  auto* const push = dynamic_cast<PushReply*>(reply);
  LOCKSTEP_CHECK(push != nullptr);
  return push->mutable_next()->mutable_values();
}

}  // namespace

absl::StatusOr<ReceivedTensors> SharedMemoryReferences::Resolve(
    const google::protobuf::Message& request, std::shared_ptr<const Segments> payload) const {
  const auto* const push = dynamic_cast<const PushRequest*>(&request);
  if (push == nullptr || !push->in_memory() || push->ask()) {
    return ReceivedTensors(std::move(payload));
  }
  if (registry_ == nullptr) return absl::NotFoundError("this ps exchanges no memory");
  LOCKSTEP_ASSIGN_OR_RETURN(SharedMemoryRegistry::Memory memory,
                            registry_->GradientsOf(push->worker()));
  return ReadPlaces(*push, std::move(memory), std::move(payload));
}

std::shared_ptr<const void> SharedMemoryReferences::LentTo(
    const google::protobuf::Message& request) const {
  if (registry_ == nullptr) return nullptr;
  if (const auto* const pull = dynamic_cast<const PullRequest*>(&request)) {
    return pull->in_memory() ? registry_->ValuesSeenBy(pull->worker()) : nullptr;
  }
  const auto* const push = dynamic_cast<const PushRequest*>(&request);
  const bool asks = push != nullptr && push->next().pull().in_memory();
  return asks ? registry_->ValuesSeenBy(push->worker()) : nullptr;
}

absl::Status SharedMemoryReferences::Refer(const std::vector<OutgoingTensor>& tensors,
                                           const std::shared_ptr<const void>& lent,
                                           google::protobuf::Message* reply) const {
  const Bytes memory = static_cast<const shm::Segment*>(lent.get())->bytes();
  // Wraps for an address before the memory.
  const auto place_of = [&memory](const void* address) {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(memory.data());
  };
  PullReply* const values = ValuesOf(reply);
  LOCKSTEP_CHECK(values->pieces_size() == static_cast<int>(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t place = place_of(tensors[i].values.data());
    if (place > memory.size()) {
      return absl::UnavailableError("the ps has made other variables meanwhile. Pull again");
    }
    PullPiece* const piece = values->mutable_pieces(static_cast<int>(i));
    piece->set_place(place);
    piece->set_stamp(place_of(tensors[i].seq_lock));
  }
  values->set_in_memory(true);
  return absl::OkStatus();
}

}  // namespace lockstep
