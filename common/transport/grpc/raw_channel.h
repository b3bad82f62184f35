// Unary calls to one task. Bodies are byte buffers, so that tensors are not copied on their way
// out, and are copied in while they are in the cache of the core that read them: callbacks run on
// the event queue's thread.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/callback.h"
#include "common/rpc/event_queue.h"
#include "common/transport/grpc/call_set.h"
#include "common/transport/grpc/peer.h"
#include "common/wire/byte_buffer.h"

namespace lockstep {

// A successful answer.
struct RawReply {
  grpc::ByteBuffer message;
  std::string checksum = {};  // of a client with checksums, where the server gives one
};

// Thread-safe. Destruction cancels what is in flight and waits for its callbacks, so never in one.
class RawChannel {
 public:
  explicit RawChannel(const ClientOptions& options);
  ~RawChannel();

  const ClientOptions& options() const { return options_; }

  // Sends `header` with `payload`, which must stay until `done`: the call has ended then, and gRPC
  // has released the payload, which after a cancelled call can be later. Checking the reply's
  // checksum is the caller's part.
  void Call(absl::string_view method, const google::protobuf::MessageLite& header,
            std::span<const std::span<const std::byte>> payload, absl::Duration deadline,
            Callback<RawReply> done);

  // The same without a payload. Fills `reply`, which must stay until `done`. INTERNAL: the answer
  // is no such message.
  void Call(absl::string_view method, const google::protobuf::MessageLite& request,
            absl::Duration deadline, google::protobuf::MessageLite* reply, StatusCallback done) {
    Call(method, request, {}, deadline,
         [this, reply, done = std::move(done)](absl::StatusOr<RawReply> raw) mutable {
           if (!raw.ok()) return done(raw.status());
           const absl::Status status = wire::Decode(raw->message, reply);
           done(status.ok() ? status : BadReply(options_, status));
         });
  }

  // Ends what is in flight, and every later call at once, with CANCELLED. A call that its peer
  // cancels ends with UNAVAILABLE, unless the job is over (common/base/job_over.h).
  void Cancel() { calls_.CancelAll(); }

 private:
  class InFlight;

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  CallSet calls_;
  const std::unique_ptr<rpc::EventQueue> own_queue_;  // null where the options name one
  grpc::CompletionQueue* const queue_;
};

}  // namespace lockstep
