// Calls with ordinary messages on gRPC's own threads: everything but tensors.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/client/call_set.h"
#include "common/client/peer.h"
#include "common/client/ps_client.h"
#include "common/rpc/grpc_status.h"

namespace lockstep {

// Thread-safe. Destruction cancels what is in flight and waits for its callbacks.
class ControlCalls {
 public:
  explicit ControlCalls(const ClientOptions& options) : options_(options) {}

  // `method` is a member of `Async`, the callback interface of a generated stub.
  template <typename Async, typename Request, typename Reply>
  void Start(Async* stub,
             void (Async::*method)(grpc::ClientContext*, const Request*, Reply*,
                                   std::function<void(grpc::Status)>),
             absl::string_view name, const Request& request, absl::Duration deadline,
             Done<Reply> done) {
    struct InFlight {
      std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
      Request request;
      Reply reply;
      Done<Reply> done;
      // Orders what is done here before the callback, where TSan can see it: gRPC's own order is in
      // a library that is not instrumented.
      std::atomic<bool> started = false;
    };
    auto call = std::make_shared<InFlight>();
    if (!calls_.Enter(call->context.get())) return done(CallsCancelled(options_));
    call->request = request;
    call->done = std::move(done);
    call->context->set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    call->started.store(true, std::memory_order_release);
    (stub->*method)(call->context.get(), &call->request, &call->reply,
                    [this, call, name, deadline](const grpc::Status& status) {
                      LOCKSTEP_CHECK(call->started.load(std::memory_order_acquire));
                      if (status.ok()) {
                        call->done(std::move(call->reply));
                      } else {
                        call->done(NamePeer(options_, name, deadline, rpc::FromGrpc(status)));
                      }
                      call->done = nullptr;  // what it holds goes before the call counts as ended
                      calls_.Leave(std::move(call->context));
                    });
  }

 private:
  const ClientOptions options_;
  CallSet calls_;
};

}  // namespace lockstep
