#include "ps/service/values_payload.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/limits.h"
#include "common/wire/byte_buffer.h"

namespace lockstep::ps {

absl::Status CheckFits(const PullResult& values) {
  // The rest is for the header.
  constexpr uint64_t kMost = rpc::kMaxMessageBytes - (1 << 20);
  if (values.in_memory) return absl::OkStatus();
  uint64_t bytes = 0;
  for (const PulledPiece& piece : values.pieces) bytes += piece.bytes.size();
  if (bytes <= kMost) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("pull of ", bytes, " bytes: a message takes ", kMost,
                                            ". Ask for them piece by piece"));
}

grpc::ByteBuffer EncodeWithValues(const google::protobuf::MessageLite& header, PullResult values) {
  if (values.in_memory) return wire::Encode(header);
  const auto held = std::make_shared<const PullResult>(std::move(values));
  std::vector<wire::Bytes> payload;
  payload.reserve(held->pieces.size());
  for (const PulledPiece& piece : held->pieces) payload.push_back(piece.bytes);
  return wire::Encode(header, payload, held);
}

}  // namespace lockstep::ps
