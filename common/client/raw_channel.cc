#include "common/client/raw_channel.h"

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>

#include <atomic>
#include <optional>

#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"

namespace lockstep {
namespace {

// How often an ended call is looked at whose payload the transport still holds: rare, and over when
// the connection has written or dropped it.
constexpr absl::Duration kHoldCheck = absl::Milliseconds(5);

gpr_timespec In(absl::Duration delay) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(absl::ToInt64Milliseconds(delay), GPR_TIMESPAN));
}

}  // namespace

// Deletes itself.
class RawChannel::InFlight final : public rpc::QueueEvent {
 public:
  InFlight(RawChannel* channel, std::string method, absl::Duration deadline, Callback done)
      : channel_(channel), method_(std::move(method)), deadline_(deadline), done_(std::move(done)) {
    context_->set_deadline(In(deadline));
  }

  grpc::ClientContext* context() { return context_.get(); }

  void Start(const google::protobuf::MessageLite& header,
             std::span<const std::span<const std::byte>> payload) {
    // What the slices share; the last one to go sets released_.
    std::shared_ptr<const void> hold(&released_, [](std::atomic<bool>* released) {
      released->store(true, std::memory_order_release);
    });
    reader_ = channel_->stub_.PrepareUnaryCall(
        context_.get(), method_, wire::Encode(header, payload, hold), channel_->queue_);
    hold.reset();
    reader_->StartCall();
    reader_->Finish(&reply_, &status_, static_cast<rpc::QueueEvent*>(this));
    started_.store(true, std::memory_order_release);
  }

  void Refuse() { done_(CallsCancelled(channel_->options_)); }

  void OnEvent(bool) override {
    // The thread that starts the call may not be done with it.
    if (!started_.load(std::memory_order_acquire)) return PollAgain();
    if (context_ != nullptr) {
      // What gRPC has not sent stays with its part of the call, which is over.
      reader_.reset();  // lives in the call, which the context may be the last to hold
      channel_->calls_.Ended(std::move(context_));
    }
    if (!released_.load(std::memory_order_acquire)) return PollAgain();
    End();
  }

 private:
  void PollAgain() {
    again_.emplace();
    again_->Set(channel_->queue_, In(kHoldCheck), static_cast<rpc::QueueEvent*>(this));
  }

  void End() {
    const std::unique_ptr<InFlight> self(this);
    if (status_.ok()) {
      done_(std::move(reply_));
    } else {
      // Pauses are the caller's, too: gRPC's own after a name that does not resolve grow to
      // minutes.
      if (status_.error_code() == grpc::StatusCode::UNAVAILABLE) {
        grpc::experimental::ChannelResetConnectionBackoff(channel_->channel_.get());
      }
      done_(NamePeer(channel_->options_, method_, deadline_, rpc::FromGrpc(status_)));
    }
    done_ = nullptr;  // what it holds goes before the call counts as ended
    channel_->calls_.Leave();
  }

  RawChannel* const channel_;  // waits for this
  const std::string method_;
  const absl::Duration deadline_;
  Callback done_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> released_ = false;  // gRPC has let go of every slice over the payload
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
  grpc::ByteBuffer reply_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  std::optional<grpc::Alarm> again_;
};

RawChannel::RawChannel(const ClientOptions& options)
    : options_(options),
      channel_(rpc::MakeChannel(options.address)),
      stub_(channel_),
      own_queue_(options.queue == nullptr ? std::make_unique<rpc::EventQueue>() : nullptr),
      queue_((options.queue == nullptr ? own_queue_.get() : options.queue)->queue()) {}

RawChannel::~RawChannel() { calls_.CancelAndWait(); }

void RawChannel::Call(const std::string& method, const google::protobuf::MessageLite& header,
                      std::span<const std::span<const std::byte>> payload, absl::Duration deadline,
                      Callback done) {
  auto call = std::make_unique<InFlight>(this, method, deadline, std::move(done));
  if (!calls_.Enter(call->context())) return call->Refuse();
  call.release()->Start(header, payload);
}

}  // namespace lockstep
