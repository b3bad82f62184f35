// The answer to an asynchronous call, for tests to look at and to wait for.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/await.h"
#include "common/base/callback.h"
#include "common/client/service_client.h"

namespace lockstep {

template <typename T>
class Answer {
 public:
  // The callback to give to one call. What it points to outlives this.
  Callback<T> done() {
    return [state = state_](absl::StatusOr<T> result) {
      state->result = std::move(result);
      state->answered.Notify();  // a second answer is a bug, and ends the test
    };
  }
  bool answered() const { return state_->answered.HasBeenNotified(); }
  absl::StatusOr<T> Wait() {
    state_->answered.WaitForNotification();
    return std::move(state_->result);
  }

 private:
  struct State {
    absl::StatusOr<T> result = absl::UnknownError("not answered");
    absl::Notification answered;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Makes a call and waits for its answer.
template <typename Service, typename Request, typename Reply>
absl::StatusOr<Reply> CallAndWait(ServiceClient<Service>& client,
                                  const Method<Service, Request, Reply>& method,
                                  const std::type_identity_t<Request>& request) {
  return Await<Reply>([&](Callback<Reply> done) { client.Call(method, request, std::move(done)); });
}

}  // namespace lockstep
