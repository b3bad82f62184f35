#include "common/transport/grpc/grpc_transport.h"

#include <utility>

#include "common/base/check.h"
#include "common/tensor/half_copy.h"
#include "common/transport/grpc/checksums.h"
#include "common/wire/byte_buffer.h"

namespace lockstep {
namespace {

uint64_t RoundedBytes(const std::vector<OutgoingTensor>& tensors) {
  uint64_t bytes = 0;
  for (const OutgoingTensor& tensor : tensors) {
    if (!tensor.rounded_to.has_value()) continue;
    bytes += RoundedElements(tensor).size() * SizeOf(*tensor.rounded_to);
  }
  return bytes;
}

absl::StatusOr<ReceivedTensors> Decode(const grpc::ByteBuffer& buffer,
                                       google::protobuf::Message* reply) {
  absl::StatusOr<wire::ReceivedPayload> decoded = wire::DecodeWithPayload(buffer, reply);
  if (!decoded.ok()) return decoded.status();
  if (decoded->bytes() == 0) return ReceivedTensors();
  const auto payload = std::make_shared<const wire::ReceivedPayload>(*std::move(decoded));
  return ReceivedTensors(
      std::shared_ptr<const ReceivedTensors::Segments>(payload, &payload->spans()));
}

}  // namespace

void GrpcTransport::Open(const WorkerIdentity&, Callback<TransportInfo> done) {
  done(TransportInfo{absl::UnavailableError("tensors are sent as bytes")});
}

void GrpcTransport::Start(const CallOptions& options, google::protobuf::Message* header,
                          const std::vector<OutgoingTensor>& tensors,
                          google::protobuf::Message* reply, Callback<ReceivedTensors> done) {
  Rounded memory = TakeMemory(RoundedBytes(tensors));
  const std::vector<std::span<const std::byte>> payload = SpansOf(tensors, memory.get());
  channel_.Call(options.path, *header, payload, options.deadline,
                [this, reply, memory = std::move(memory),
                 done = std::move(done)](absl::StatusOr<RawReply> raw) mutable {
                  GiveBack(std::move(memory));
                  if (!raw.ok()) return done(raw.status());
                  if (this->options().checksums) {
                    const absl::Status status =
                        CheckReply(NameOf(this->options()), raw->message, raw->checksum, reply);
                    if (!status.ok()) return done(status);
                  }
                  absl::StatusOr<ReceivedTensors> received = Decode(raw->message, reply);
                  if (!received.ok()) return done(BadReply(this->options(), received.status()));
                  done(std::move(received));
                });
}

GrpcTransport::Rounded GrpcTransport::TakeMemory(uint64_t bytes) {
  if (bytes == 0) return nullptr;
  Rounded memory;
  {
    absl::MutexLock lock(&mutex_);
    if (!spare_.empty()) {
      memory = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (memory != nullptr && memory->num_bytes() >= bytes) return memory;
  return std::make_unique<Tensor>(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
}

void GrpcTransport::GiveBack(Rounded memory) {
  if (memory == nullptr) return;
  absl::MutexLock lock(&mutex_);
  spare_.push_back(std::move(memory));
}

std::vector<std::span<const std::byte>> GrpcTransport::SpansOf(
    const std::vector<OutgoingTensor>& tensors, Tensor* memory) {
  std::vector<std::span<const std::byte>> spans;
  spans.reserve(tensors.size());
  std::span<std::byte> free;
  if (memory != nullptr) free = memory->view().bytes();
  for (const OutgoingTensor& tensor : tensors) {
    LOCKSTEP_CHECK(!tensor.by_reference);
    if (!tensor.rounded_to.has_value()) {
      AppendBytes(tensor, &spans);
      continue;
    }
    const std::span<const float> elements = RoundedElements(tensor);
    const size_t bytes = elements.size() * SizeOf(*tensor.rounded_to);
    Narrow(elements, *tensor.rounded_to, free.data());
    spans.push_back(free.first(bytes));
    free = free.subspan(bytes);
  }
  return spans;
}

}  // namespace lockstep
