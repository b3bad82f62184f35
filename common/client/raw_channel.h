// Unary calls whose bodies are byte buffers, for tensors. One completion queue and one thread that
// polls it and runs the callbacks, so that received bytes are copied out while they are in its
// core's cache.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/call_set.h"
#include "common/client/ps_client.h"

namespace lockstep {

// Thread-safe. Destruction cancels what is in flight and waits for its callbacks.
class RawChannel {
 public:
  using Callback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  explicit RawChannel(const ClientOptions& options);
  ~RawChannel();

  // Sends `header` with `payload`, which must stay until `done`: that is when the call has ended
  // and the transport has let go of the payload, which after a cancelled call can be later.
  void Call(const std::string& method, const google::protobuf::MessageLite& header,
            std::span<const std::span<const std::byte>> payload, absl::Duration deadline,
            Callback done);

  // Ends what is in flight, and every later call at once, with CANCELLED.
  void Cancel() { calls_.CancelAll(); }

 private:
  struct InFlight;

  void Poll();
  void Finish(std::unique_ptr<InFlight> call);

  const ClientOptions options_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  CallSet calls_;
  std::thread poller_;
};

}  // namespace lockstep
