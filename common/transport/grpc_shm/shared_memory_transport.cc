#include "common/transport/grpc_shm/shared_memory_transport.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc_shm/mapped_values.h"

namespace lockstep {
namespace {

constexpr TensorMethod<AttachMemoryRequest, AttachMemoryReply> kAttachMemory{
    "/lockstep.ParameterServer/AttachMemory", rpc::kControlDeadline};

// The pull of a request, if it has one.
PullRequest* PullOf(google::protobuf::Message* header) {
  if (auto* const pull = dynamic_cast<PullRequest*>(header)) return pull;
  auto* const push = dynamic_cast<PushRequest*>(header);
  return push != nullptr && push->next().has_pull() ? push->mutable_next()->mutable_pull()
                                                    : nullptr;
}

// The values of a reply, if it has any.
const PullReply* ValuesOf(const google::protobuf::Message& reply) {
  if (const auto* const pull = dynamic_cast<const PullReply*>(&reply)) return pull;
  const auto* const push = dynamic_cast<const PushReply*>(&reply);
  return push != nullptr && push->next().has_values() ? &push->next().values() : nullptr;
}

}  // namespace

void SharedMemoryTransport::Open(const WorkerIdentity& worker, Callback<TransportInfo> done) {
  std::optional<AttachMemoryRequest> request = connection_.Begin(worker);
  if (request.has_value()) {
    transport_.Call(kAttachMemory, *std::move(request), {}, false,
                    [this](absl::StatusOr<TensorReply<AttachMemoryReply>> reply) {
                      if (!reply.ok()) return connection_.Complete(reply.status());
                      connection_.Complete(*reply->header);
                    });
  }
  connection_.Await(std::move(done));
}

void SharedMemoryTransport::Start(const CallOptions& options, google::protobuf::Message* header,
                                  const std::vector<OutgoingTensor>& tensors,
                                  google::protobuf::Message* reply,
                                  Callback<ReceivedTensors> done) {
  const bool by_reference = !tensors.empty() && tensors.front().by_reference;
  std::vector<OutgoingTensor> indices;
  if (by_reference) {
    absl::StatusOr<std::vector<OutgoingTensor>> referred = Refer(tensors, header);
    if (!referred.ok()) return done(referred.status());
    indices = *std::move(referred);
  }
  Asked asked = options.accepts_references ? Ask(header) : Asked();
  transport_.Start(options, header, by_reference ? indices : tensors, reply,
                   [this, by_reference, asked = std::move(asked), reply,
                    done = std::move(done)](absl::StatusOr<ReceivedTensors> received) mutable {
                     if (by_reference && absl::IsNotFound(received.status()))
                       connection_.MarkLost();
                     if (received.ok()) received = Resolve(asked, *reply, *std::move(received));
                     done(std::move(received));
                   });
}

absl::StatusOr<std::vector<OutgoingTensor>> SharedMemoryTransport::Refer(
    const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* header) const {
  auto* const push = dynamic_cast<PushRequest*>(header);
  LOCKSTEP_CHECK(push != nullptr && push->pieces_size() == static_cast<int>(tensors.size()));
  std::vector<OutgoingTensor> indices;
  for (size_t i = 0; i < tensors.size(); ++i) {
    LOCKSTEP_CHECK(tensors[i].by_reference);
    const std::optional<uint64_t> place = connection_.PlaceOf(tensors[i].values);
    if (!place.has_value()) {
      return absl::NotFoundError(absl::StrCat(transport_.options().name, " has not this memory"));
    }
    push->mutable_pieces(static_cast<int>(i))->set_place(*place);
    if (!tensors[i].row_indices.empty()) {
      indices.push_back({.values = {}, .row_indices = tensors[i].row_indices});
    }
  }
  push->set_in_memory(true);
  return indices;
}

SharedMemoryTransport::Asked SharedMemoryTransport::Ask(google::protobuf::Message* header) const {
  PullRequest* const pull = PullOf(header);
  if (pull == nullptr) return {};
  SharedMemoryConnection::Memory memory = connection_.values();
  pull->set_in_memory(memory != nullptr);
  return {pull, std::move(memory)};
}

absl::StatusOr<ReceivedTensors> SharedMemoryTransport::Resolve(
    const Asked& asked, const google::protobuf::Message& reply, ReceivedTensors bytes) const {
  const PullReply* const values = ValuesOf(reply);
  if (values == nullptr || !values->in_memory()) return bytes;
  absl::StatusOr<ReceivedTensors> mapped =
      asked.memory == nullptr
          ? absl::InvalidArgumentError("places in a memory that was not exchanged")
          : MappedValues(*asked.request, *values, asked.memory);
  if (!mapped.ok()) return BadReply(transport_.options(), mapped.status());
  return mapped;
}

}  // namespace lockstep
