// The unary methods of a service with bodies of bytes, for what generated code does with parsed
// ones: who calls is checked before the body is parsed.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep::rpc {

struct RawMethod {
  std::string path;  // "/lockstep.Chief/Heartbeat"
  // Asks gRPC for the next call, as the generated Request<Method> does.
  std::function<void(grpc::ServerContext*, grpc::ByteBuffer*,
                     grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*, grpc::CompletionQueue*,
                     grpc::ServerCompletionQueue*, void*)>
      await;
};

// Thread-safe. Outlives the server that it is registered with.
class RawMethods final : public grpc::Service {
 public:
  // `service`: the full name of one that is linked in, "lockstep.Chief". Its streams are left out.
  explicit RawMethods(const std::string& service);

  // The only method that takes a Request. It is valid as long as this.
  template <typename Request>
  RawMethod Of() {
    return Taking(Request::descriptor());
  }

 private:
  RawMethod Taking(const google::protobuf::Descriptor* request);

  std::vector<std::string> paths_;
  std::vector<const google::protobuf::Descriptor*> requests_;
};

}  // namespace lockstep::rpc
