// Finds the payload of a tensor message without parsing or copying it. PushRequest and PullReply
// carry their tensor bytes in field 15, of type `bytes`; all other fields are small and go through
// the generated parser. Pure: bytes in, bytes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::wire {

inline constexpr uint32_t kPayloadField = 15;

using Bytes = std::span<const std::byte>;

struct SplitMessage {
  std::string header;          // every other field, in the order of the wire
  std::vector<Bytes> payload;  // into the pieces given; never an empty span
  uint64_t payload_bytes = 0;
};

// `pieces` is one serialized message, cut anywhere. Fields may come in any order; of several
// payloads the last one counts, as in any protobuf parser. INVALID_ARGUMENT when it is truncated or
// no protobuf. Whether `header` is the expected message is for the generated parser to say.
absl::StatusOr<SplitMessage> Split(std::span<const Bytes> pieces);

// What stands before a payload of `bytes` bytes at the end of a message: tag and length.
std::string PayloadPrefix(uint64_t bytes);

}  // namespace lockstep::wire
