// Calls with one answer to one service of one task. The gRPC implementation is in this folder;
// tests and the simulator have their own.
//
// Thread-safe. Callbacks come on a thread of the client. Calls carry their own deadlines; a parked
// call that reaches its deadline ends with DEADLINE_EXCEEDED and may be issued again. UNAVAILABLE:
// not reachable now; try again. Destruction cancels what is in flight and waits for the callbacks.
#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/callback.h"

namespace lockstep {

struct MethodInfo {
  const char* path;
  absl::Duration deadline;
};

// A method of `Service`, which is a tag: each service has a table of these.
template <typename Service, typename Request, typename Reply>
struct Method : MethodInfo {};

template <typename Service>
class ServiceClient {
 public:
  virtual ~ServiceClient() = default;

  template <typename Request, typename Reply>
  void Call(const Method<Service, Request, Reply>& method,
            const std::type_identity_t<Request>& request,
            std::type_identity_t<Callback<Reply>> done) {
    auto reply = std::make_shared<Reply>();
    Start(method, request, reply.get(),
          [reply, done = std::move(done)](absl::Status status) mutable {
            if (!status.ok()) return done(std::move(status));
            done(std::move(*reply));
          });
  }

  // Call without types: fills `reply`, which stays until `done`, before it calls that with OK.
  virtual void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
                     google::protobuf::MessageLite* reply, StatusCallback done) = 0;
};

}  // namespace lockstep
