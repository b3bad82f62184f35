// ServedCall is the base of a server's calls: it identifies the caller and sends refusals.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/gate.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/refusal_sender.h"
#include "common/rpc/service.h"

namespace lockstep::rpc {

// The base of `Call`, whose SendError(grpc::Status) answers with an error.
template <typename Call, typename Context = grpc::ServerContext>
class ServedCall : public std::enable_shared_from_this<Call> {
 protected:
  // The objects to which `queue` points outlive the call.
  explicit ServedCall(const ServingQueue& queue) : queue_(queue) {}

  // The call has arrived. False: the server stops.
  [[nodiscard]] bool Enter() {
    pass_ = queue_.gate->Enter();
    return static_cast<bool>(pass_);
  }
  // Errors of CallerCheck::Check.
  absl::Status CheckCaller(absl::string_view path) {
    return rpc::CheckCaller(queue_.callers, path, context_, &caller_);
  }
  // Answers with SendError, now or later on another thread; not at all if the caller has gone.
  // Keeps the call until then.
  void Refuse(const absl::Status& status) {
    queue_.refusals->Send(
        {.call = this,
         .code = status.code(),
         .caller = caller_,
         .context = context_,
         .message_bytes = message_bytes_},
        [call = this->shared_from_this(), status] { call->SendError(ToGrpc(status)); });
  }
  // To be called when gRPC has ended the call: a caller that has gone needs no refusal.
  void DropRefusalIfCancelled() {
    if (context_.IsCancelled()) queue_.refusals->Drop(this);
  }

  const ServingQueue queue_;
  Gate::Pass pass_;
  Context context_;
  std::optional<security::Caller> caller_;
  uint64_t message_bytes_ = 0;
};

}  // namespace lockstep::rpc
