// A unary call with bytes for bodies, by a client that does other things until it is answered.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"

namespace lockstep::test {

class PendingCall {
 public:
  // `authorization` empty: the call has none.
  PendingCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
              const std::string& body, const std::string& authorization = "")
      : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    const grpc::Slice slice(body);
    request_ = grpc::ByteBuffer(&slice, 1);
    stub_.UnaryCall(&context_, path, {}, &request_, &reply_, [this](const grpc::Status& status) {
      status_ = status;
      over_.Notify();
    });
  }
  ~PendingCall() { over_.WaitForNotification(); }

  bool is_over() const { return over_.HasBeenNotified(); }
  void Cancel() { context_.TryCancel(); }
  const grpc::Status& Wait() {
    over_.WaitForNotification();
    return status_;
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer reply_;
  grpc::Status status_;
  absl::Notification over_;
};

}  // namespace lockstep::test
