#include "common/rpc/raw_methods.h"

#include <grpcpp/impl/rpc_service_method.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::rpc {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

RawMethods::RawMethods(const std::string& service) {
  const ServiceDescriptor* const known =
      DescriptorPool::generated_pool()->FindServiceByName(service);
  LOCKSTEP_CHECK(known != nullptr);
  for (int i = 0; i < known->method_count(); ++i) {
    const MethodDescriptor* const method = known->method(i);
    if (method->client_streaming() || method->server_streaming()) continue;
    paths_.push_back(absl::StrCat("/", service, "/", method->name()));
    requests_.push_back(method->input_type());
  }
  // gRPC keeps pointers to the paths: no path is added from here on.
  for (size_t i = 0; i < paths_.size(); ++i) {
    AddMethod(new grpc::internal::RpcServiceMethod(paths_[i].c_str(),
                                                   grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRaw(static_cast<int>(i));
  }
}

RawMethod RawMethods::Taking(const Descriptor* request) {
  const auto found = std::find(requests_.begin(), requests_.end(), request);
  LOCKSTEP_CHECK(found != requests_.end());
  const int index = static_cast<int>(found - requests_.begin());
  return {.path = paths_[index],
          .await = [this, index](grpc::ServerContext* context, grpc::ByteBuffer* body,
                                 grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>* responder,
                                 grpc::CompletionQueue* calls,
                                 grpc::ServerCompletionQueue* arrivals, void* tag) {
            RequestAsyncUnary(index, context, body, responder, calls, arrivals, tag);
          }};
}

}  // namespace lockstep::rpc
