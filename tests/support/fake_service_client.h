// A client whose calls are handled by the test, method by method.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "common/base/callback.h"
#include "common/client/service_client.h"

namespace lockstep::test {

template <typename Service>
class FakeServiceClient : public ServiceClient<Service> {
 public:
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    handlers_.at(method.path)(request, reply, std::move(done));
  }

 protected:
  template <typename Request, typename Reply>
  void Handle(const Method<Service, Request, Reply>& method,
              std::type_identity_t<std::function<void(const Request&, Callback<Reply>)>> handler) {
    handlers_[method.path] = [handler = std::move(handler)](
                                 const google::protobuf::MessageLite& request,
                                 google::protobuf::MessageLite* reply, StatusCallback done) {
      handler(static_cast<const Request&>(request),
              [reply, done = std::move(done)](absl::StatusOr<Reply> answer) mutable {
                if (!answer.ok()) return done(answer.status());
                *static_cast<Reply*>(reply) = *std::move(answer);
                done(absl::OkStatus());
              });
    };
  }

 private:
  using Handler = std::function<void(const google::protobuf::MessageLite&,
                                     google::protobuf::MessageLite*, StatusCallback)>;

  std::map<std::string, Handler> handlers_;  // by path
};

}  // namespace lockstep::test
