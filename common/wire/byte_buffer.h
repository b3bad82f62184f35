// Messages in gRPC's byte buffers. Tensor bytes are never copied here: a sender's slices point into
// its tensors, a receiver's spans into the slices that gRPC read from the socket.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/wire/message_splitter.h"

namespace lockstep::wire {

// A slice over `bytes`, which `owner` keeps alive and unchanged. The slice holds the owner until
// gRPC no longer looks at it: that can be after the call has ended, when it was cancelled.
grpc::Slice Share(Bytes bytes, std::shared_ptr<const void> owner);

// A message without payload.
grpc::ByteBuffer Encode(const google::protobuf::MessageLite& message);
// The payload field of `header` must be empty. Short spans are copied into one slice, since a slice
// costs more than their bytes; all others are shared.
grpc::ByteBuffer Encode(const google::protobuf::MessageLite& header, std::span<const Bytes> payload,
                        const std::shared_ptr<const void>& owner);

// Looks at a serialized message, without its payload, before it is parsed. An error ends the
// decoding.
using CheckBeforeParsing = absl::FunctionRef<absl::Status(absl::string_view message)>;
inline absl::Status ParseAnything(absl::string_view) { return absl::OkStatus(); }

// INVALID_ARGUMENT when the buffer does not hold such a message; otherwise the error of `check`.
absl::Status Decode(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message,
                    CheckBeforeParsing check = ParseAnything);

// The first field of that number and of type bytes or message; nullopt: there is none, or the
// message is malformed before it. Skips other fields without parsing them.
std::optional<absl::string_view> FindField(absl::string_view message, int field);

// How many fields are at the end of `path`: numbers of fields, each but the last one that of a
// message, from the outermost on. Fields of one number count together, as they are merged when they
// are parsed. nullopt: a message on the way is malformed. Parses none.
std::optional<size_t> CountFields(absl::string_view message, std::span<const int> path);

// The payload of a received message, with the memory it lies in.
class ReceivedPayload {
 public:
  const std::vector<Bytes>& spans() const { return spans_; }
  uint64_t bytes() const { return bytes_; }

 private:
  friend absl::StatusOr<ReceivedPayload> DecodeWithPayload(const grpc::ByteBuffer&,
                                                           google::protobuf::MessageLite*,
                                                           CheckBeforeParsing);
  // Short slices hold their bytes themselves: the vector may move, its elements may not.
  std::vector<grpc::Slice> slices_;
  std::vector<Bytes> spans_;
  uint64_t bytes_ = 0;
};

// Parses all but the payload into `header`. Errors as above.
absl::StatusOr<ReceivedPayload> DecodeWithPayload(const grpc::ByteBuffer& buffer,
                                                  google::protobuf::MessageLite* header,
                                                  CheckBeforeParsing check = ParseAnything);

}  // namespace lockstep::wire
