// The checksums of a call with tensors, at both of its ends. A client whose job has
// transport.checksums adds one to each request; a server checks each that it finds, and adds one to
// the reply. Errors are logged and counted here, and the client's retry policy repeats the call.
// Thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// `must_have`: of a server whose job has checksums. DATA_LOSS naming the sender, what the message
// is about, and both checksums; `header`, of the request's type, is only used for that.
absl::Status CheckRequest(const grpc::ServerContext& context, const grpc::ByteBuffer& request,
                          bool must_have, google::protobuf::Message* header);
// Where the request has a checksum.
void AddToReply(const grpc::ByteBuffer& reply, grpc::ServerContext* context);

void AddToRequest(const grpc::ByteBuffer& request, grpc::ClientContext* context);
// After the call, which has succeeded. Empty: the reply has none.
std::string ChecksumOfReply(const grpc::ClientContext& context);
// As CheckRequest. `peer` names the server. Only a reply with a payload must have a checksum.
absl::Status CheckReply(absl::string_view peer, const grpc::ByteBuffer& reply,
                        absl::string_view checksum, google::protobuf::Message* header);

}  // namespace lockstep
