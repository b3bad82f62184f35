#include "common/client/raw_channel.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/client/peer.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/wire/byte_buffer.h"

namespace lockstep {
namespace {

// How often an ended call is looked at whose payload the transport still holds: rare, and over when
// the connection has written or dropped it.
constexpr absl::Duration kHoldCheck = absl::Milliseconds(5);

gpr_timespec After(absl::Duration delay) {
  return gpr_time_from_millis(absl::ToInt64Milliseconds(delay), GPR_TIMESPAN);
}

}  // namespace

struct RawChannel::InFlight {
  std::string method;
  absl::Duration deadline;
  Callback done;
  // gRPC has let go of every slice over the payload, and the caller of the call.
  std::atomic<bool> released = false;
  std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;

  // What the slices share: the last one to go sets released.
  std::shared_ptr<const void> Hold() {
    return {&released,
            [](std::atomic<bool>* released) { released->store(true, std::memory_order_release); }};
  }
};

RawChannel::RawChannel(const ClientOptions& options)
    : options_(options), stub_(rpc::MakeChannel(options.address)) {
  poller_ = std::thread([this] { Poll(); });
}

RawChannel::~RawChannel() {
  calls_.CancelAndWait();
  queue_.Shutdown();
  poller_.join();
}

void RawChannel::Call(const std::string& method, const google::protobuf::MessageLite& header,
                      std::span<const std::span<const std::byte>> payload, absl::Duration deadline,
                      Callback done) {
  auto call = std::make_unique<InFlight>();
  if (!calls_.Enter(call->context.get())) {
    done(CallsCancelled(options_));
    return;
  }
  call->method = method;
  call->deadline = deadline;
  call->done = std::move(done);
  call->context->set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), After(deadline)));
  // Until the end of this function: the poller does not touch a call that is still being started.
  const std::shared_ptr<const void> hold = call->Hold();
  call->reader = stub_.PrepareUnaryCall(call->context.get(), method,
                                        wire::Encode(header, payload, hold), &queue_);
  call->reader->StartCall();
  InFlight* tag = call.release();
  tag->reader->Finish(&tag->reply, &tag->status, tag);
}

void RawChannel::Poll() {
  std::vector<std::unique_ptr<InFlight>> held;
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    const gpr_timespec until = held.empty()
                                   ? gpr_inf_future(GPR_CLOCK_MONOTONIC)
                                   : gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), After(kHoldCheck));
    const auto next = queue_.AsyncNext(&tag, &ok, until);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) held.emplace_back(static_cast<InFlight*>(tag));
    for (auto& call : held)
      if (call->released.load(std::memory_order_acquire)) Finish(std::move(call));
    held.erase(std::remove(held.begin(), held.end(), nullptr), held.end());
  }
}

void RawChannel::Finish(std::unique_ptr<InFlight> call) {
  if (call->status.ok()) {
    call->done(std::move(call->reply));
  } else {
    call->done(NamePeer(options_, call->method, call->deadline, rpc::FromGrpc(call->status)));
  }
  call->done = nullptr;  // what it holds goes before the call counts as ended
  call->reader.reset();  // lives in the call, which the context may be the last to hold
  calls_.Leave(std::move(call->context));
}

}  // namespace lockstep
