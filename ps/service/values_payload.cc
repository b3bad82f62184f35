#include "ps/service/values_payload.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/wire/byte_buffer.h"

namespace lockstep::ps {

grpc::ByteBuffer EncodeWithValues(const google::protobuf::MessageLite& header, PullResult values) {
  if (values.in_memory) return wire::Encode(header);
  const auto held = std::make_shared<const PullResult>(std::move(values));
  std::vector<wire::Bytes> payload;
  payload.reserve(held->pieces.size());
  for (const PulledPiece& piece : held->pieces) payload.push_back(piece.bytes);
  return wire::Encode(header, payload, held);
}

}  // namespace lockstep::ps
