// TensorTransport sends a client's tensors to one peer and receives the peer's.
// common/transport/grpc carries bytes; common/transport/grpc_shm also shares memory with a peer of
// the same host.
#pragma once

#include <google/protobuf/message.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/transport/arena_message.h"
#include "common/transport/outgoing_tensor.h"
#include "common/transport/received_tensors.h"
#include "proto/ps.pb.h"

namespace lockstep {

// A method that the peer serves, with its messages. Neither message has a payload here: tensors
// travel beside it.
template <typename Request, typename Reply>
struct TensorMethod {
  absl::string_view path;  // "/lockstep.ParameterServer/Push"
  absl::Duration deadline;
};

template <typename Reply>
struct TensorReply {
  std::shared_ptr<Reply> header;  // never null
  ReceivedTensors tensors;
};

struct TransportInfo {
  // OK: tensors may travel by reference, and none is rounded to a lower precision. Otherwise why
  // all travel as bytes.
  absl::Status references;
};

// Thread-safe. A callback is called exactly once, on a thread of the transport's or before the call
// returns, never under a lock. UNAVAILABLE: the peer cannot be reached now, try again. A call that
// reaches its deadline ends with DEADLINE_EXCEEDED. Destruction cancels what is in flight and waits
// for the callbacks, so it must not happen in one.
class TensorTransport {
 public:
  virtual ~TensorTransport() = default;

  // Agrees with the peer on the memory to share, in the name of this worker. Completes before the
  // first tensor is sent. Answers at once when that is settled; after a call that ended with
  // NOT_FOUND asks again. UNAVAILABLE: the peer could not be asked, call again.
  virtual void Open(const WorkerIdentity& worker, Callback<TransportInfo> done) = 0;

  // Returns the peer's name and its address, for errors.
  virtual std::string peer() const = 0;
  // Returns whether OutgoingTensor::rounded_to may be used, and asked of the peer. False for a peer
  // that has ever read by reference: tensors keep one type, also while they travel as bytes.
  virtual bool MayRound() const = 0;
  // Returns whether the peer reads these bytes in place, as of now.
  virtual bool SendsByReference(std::span<const std::byte> values) const = 0;
  // Returns whether replies can have tensors by reference, as of now.
  virtual bool ReceivesByReference() const = 0;

  // Calls the peer. The caller keeps the tensors, unchanged, until `done`: the call has ended then,
  // and the transport no longer reads them. Tensors by reference stay for as long as proto/ps.proto
  // says. `accepts_references`: the reply's tensors may be references, if ReceivesByReference.
  // NOT_FOUND: the peer does not have the memory of a reference. Send bytes, and open again.
  // `header` may be changed, also for a call that is made again with it.
  template <typename Request, typename Reply>
  void Call(const TensorMethod<Request, Reply>& method,
            std::type_identity_t<std::shared_ptr<Request>> header,
            const std::vector<OutgoingTensor>& tensors, bool accepts_references,
            std::type_identity_t<Callback<TensorReply<Reply>>> done) {
    std::shared_ptr<Reply> reply = NewArenaMessage<Reply>();
    Request* const from = header.get();
    Reply* const to = reply.get();
    Start({method.path, method.deadline, accepts_references}, from, tensors, to,
          [header = std::move(header), reply = std::move(reply),
           done = std::move(done)](absl::StatusOr<ReceivedTensors> received) mutable {
            if (!received.ok()) return done(received.status());
            done(TensorReply<Reply>{std::move(reply), *std::move(received)});
          });
  }
  // The same with a small header.
  template <typename Request, typename Reply>
  void Call(const TensorMethod<Request, Reply>& method, const std::type_identity_t<Request>& header,
            const std::vector<OutgoingTensor>& tensors, bool accepts_references,
            std::type_identity_t<Callback<TensorReply<Reply>>> done) {
    Call(method, ToArena<Request>(header), tensors, accepts_references, std::move(done));
  }

  // Changes when calls move to another peer, which knows nothing that the previous one was told.
  virtual uint64_t generation() const { return 0; }
  // Calls `on_move` after each change of the generation, on the thread that moves the calls, while
  // `on_move` is alive. A caller without a call in flight learns of the change in no other way.
  virtual void NotifyOfMoves(std::weak_ptr<const std::function<void()>> /*on_move*/) {}

  // Ends what is in flight, and every later call at once, with CANCELLED.
  virtual void Cancel() = 0;

  // Options of Start, which implementations provide.
  struct CallOptions {
    absl::string_view path;
    absl::Duration deadline;
    bool accepts_references = false;
  };

  // `header` may be changed until the call returns. `reply` is filled in before `done`. The caller
  // keeps both until then.
  virtual void Start(const CallOptions& options, google::protobuf::Message* header,
                     const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
                     Callback<ReceivedTensors> done) = 0;
};

}  // namespace lockstep
