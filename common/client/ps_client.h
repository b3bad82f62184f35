// How a worker talks to one ps. The gRPC implementation is in this folder; tests and the simulator
// have their own. Threads, deadlines and errors as of ServiceClient.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/callback.h"
#include "common/client/gradient_memory.h"
#include "common/client/service_client.h"
#include "common/tensor/dtype.h"
#include "common/transport/grpc/peer.h"
#include "proto/ps.pb.h"

namespace lockstep {

// The answer to a pull: the header (payload empty) and the bytes, still in the pieces in which they
// came, or in the ps's own memory.
class PulledValues {
 public:
  virtual ~PulledValues() = default;
  virtual const PullReply& header() const = 0;
  // Copies the bytes into `targets`, one per piece of the header in its order; each must have the
  // piece's size (INVALID_ARGUMENT otherwise), or, in place, be null for one that is to stay there.
  // One pass, no other copy. ABORTED: the ps has begun to write there again: pull once more.
  virtual absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const = 0;
  // The same for pieces that came in half the width, as the `wire_type` of their request, into
  // float32 targets: widened as they are copied, which is exact.
  virtual absl::Status WidenTo(DType wire_type,
                               std::span<const std::span<float>> targets) const = 0;
  // Where the pieces lie in the ps's memory, in their order, of rows all from the first one of
  // their table; empty: they came in the message. They are the version's until the ps makes one
  // that is two above (of a table: the next one); what is read is safe to read for as long as this
  // object lives.
  virtual std::span<const std::span<const std::byte>> in_place() const { return {}; }
};

// The answer to a push that asked for what comes next.
struct PushPullReply {
  PushReply push;                        // with the token, if it came
  std::unique_ptr<PulledValues> values;  // null: they did not come
};

// What a worker does to a ps.
class PsData {
 public:
  virtual ~PsData() = default;
  // `header` has no payload; `payload` is the pieces' bytes and stays valid and unchanged until
  // `done` is called. With `in_memory` in the header it has one span for each piece, in shared
  // memory (SharesGradient), that stays for as long as proto/ps.proto says; of a sparse gradient
  // that is its values, and the span of its row indices, anywhere, comes before. No place need be
  // given. NOT_FOUND: the ps does not have that memory, send the bytes.
  virtual void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                    Callback<PushReply> done) = 0;
  // Push with `next` in the header: parked until what it asks for is there, as proto/ps.proto says.
  // Where it cannot be done in one call, the answer is that of a push alone.
  virtual void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                        Callback<PushPullReply> done) {
    PushRequest alone = header;
    alone.clear_next();
    Push(alone, std::move(payload),
         [done = std::move(done)](absl::StatusOr<PushReply> reply) mutable {
           if (!reply.ok()) return done(reply.status());
           done(PushPullReply{*std::move(reply), nullptr});
         });
  }
  // With `in_memory` the values may come in place, where the ps shares them (SharesValues).
  virtual void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) = 0;
  virtual void DequeueToken(const DequeueTokenRequest& request,
                            Callback<DequeueTokenReply> done) = 0;
  // Exchanges memory with the ps, if that has not been tried in this worker's name, and tells
  // whether it was: SharesMemory from then on. Without it the exchange happens beside the first
  // calls. UNAVAILABLE: could not be asked, call again.
  virtual void ShareMemory(const WorkerIdentity& /*worker*/, Callback<bool> done) { done(false); }
  // Ends what is in flight, and every later call at once, with CANCELLED: for a worker that stops.
  virtual void Cancel() = 0;

  // Whether memory was ever exchanged with this ps, so that tensors need not travel. It does not
  // become false when the memory is lost.
  virtual bool SharesMemory() const { return false; }
  // Whether these bytes lie in memory that the ps reads as it is, now: from the moment when memory
  // was exchanged, which happens beside the first calls.
  virtual bool SharesGradient(std::span<const std::byte>) const { return false; }
  // Whether the ps has let us see its values.
  virtual bool SharesValues() const { return false; }
};

// What a worker's client needs to exchange memory with a ps of its own host.
struct SharedMemoryOptions {
  const GradientMemory* gradients = nullptr;
  // Told once, on a thread of the client's: OK when memory was exchanged, otherwise why tensors
  // travel in messages.
  std::function<void(const absl::Status&)> told;
};

// The first call connects. Talks through one channel of its own.
std::unique_ptr<PsData> MakePsData(const ClientOptions& options, SharedMemoryOptions memory = {});

}  // namespace lockstep
