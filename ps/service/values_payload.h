// Values in a reply.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

// OUT_OF_RANGE: too much for a message, and not looked at in memory.
absl::Status CheckFits(const PullResult& values);

// `header`, followed by the bytes of the values unless they are looked at in memory. The slices of
// the buffer hold the values, which hold their tensors.
grpc::ByteBuffer EncodeWithValues(const google::protobuf::MessageLite& header, PullResult values);

}  // namespace lockstep::ps
