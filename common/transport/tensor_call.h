// One call that a server received, with the tensors of its request and of its reply.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/transport/arena_message.h"
#include "common/transport/outgoing_tensor.h"
#include "common/transport/received_tensors.h"

namespace lockstep {

// Its handler and the code that answers it share ownership. Where the transport watches for
// cancelled calls, a call that nothing else holds is destroyed when its caller has gone.
template <typename Request, typename Reply>
class TensorCall {
 public:
  virtual ~TensorCall() = default;

  // For the handler alone: it may be gone when that has returned, since a call may wait for long.
  virtual const Request& request() const = 0;
  // Once, by the handler. NOT_FOUND: they are in memory that the sender has not shared, or no
  // longer; it is to send bytes. INVALID_ARGUMENT: references to what is not there.
  virtual absl::StatusOr<ReceivedTensors> TakeTensors() = 0;
  // Whether the tensors of the reply may go by reference: the caller asks for that, and sees the
  // memory that this process publishes values in.
  virtual bool AcceptsReferences() const = 0;
  // Where the transport watches for it: the caller went away before it was answered. Called at most
  // once, on a thread of the transport. From the handler only.
  virtual void OnCancelled(absl::AnyInvocable<void()> cancelled) = 0;
  // Once, at any time, on any thread. `owner` keeps the tensors that go as bytes until they have
  // been sent; the others belong to nobody.
  virtual void Respond(absl::StatusOr<std::shared_ptr<Reply>> reply,
                       const std::vector<OutgoingTensor>& tensors = {},
                       std::shared_ptr<const void> owner = nullptr) = 0;
  // A small one without tensors.
  void RespondWith(const Reply& reply) { Respond(ToArena(reply)); }

  // What the handler knows of the reply already, which the code that answers takes: in place of
  // what that would need of the request.
  void Keep(std::shared_ptr<Reply> begun) { begun_ = std::move(begun); }
  std::shared_ptr<Reply> TakeBegun() { return std::move(begun_); }

 private:
  std::shared_ptr<Reply> begun_;
};

}  // namespace lockstep
