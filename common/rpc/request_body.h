// The body of a request, parsed unless it is larger than a request of its method can be.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep::rpc {

// INVALID_ARGUMENT: the body of this call of `path` is larger, or no Request. A large body is not
// parsed: protobuf keeps fields that it does not know, in 30 times the memory of their bytes.
template <typename Request>
absl::Status ParseRequest(absl::string_view path, size_t max_bytes, grpc::ByteBuffer* body,
                          Request* request) {
  if (body->Length() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the request has ", body->Length(),
                                                   " bytes; expected at most ", max_bytes));
  }
  if (!grpc::SerializationTraits<Request>::Deserialize(body, request).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the request cannot be parsed"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::rpc
