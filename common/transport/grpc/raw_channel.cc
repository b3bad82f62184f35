#include "common/transport/grpc/raw_channel.h"

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>

#include <atomic>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/job_over.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "common/transport/grpc/checksums.h"

namespace lockstep {
namespace {

gpr_timespec In(absl::Duration delay) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(absl::ToInt64Milliseconds(delay), GPR_TIMESPAN));
}

}  // namespace

// Ends on the queue's thread when three things have happened, in any order: Start has returned,
// gRPC has ended the call, and it has released the payload's slices. Holds itself until then.
class RawChannel::InFlight final : public rpc::QueueEvent,
                                   public std::enable_shared_from_this<InFlight> {
 public:
  InFlight(RawChannel* channel, absl::string_view method, absl::Duration deadline,
           Callback<RawReply> done)
      : channel_(channel), method_(method), deadline_(deadline), done_(std::move(done)) {
    context_->set_deadline(In(deadline));
    if (channel->options_.credentials != nullptr) {
      channel->options_.credentials->AddTo(context_.get());
    }
  }

  grpc::ClientContext* context() { return context_.get(); }

  void Start(const google::protobuf::MessageLite& header,
             std::span<const std::span<const std::byte>> payload) {
    self_ = shared_from_this();
    // Shared by the slices; any thread of gRPC's may release the last one.
    std::shared_ptr<const void> slices(this, [self = self_](const void*) {
      if (self->RecordEvent(kReleased) & kClosed) self->Post(&self->released_);
    });
    grpc::ByteBuffer message = wire::Encode(header, payload, slices);
    if (channel_->options_.checksums) AddToRequest(message, context_.get());
    reader_ = channel_->stub_.PrepareUnaryCall(context_.get(), method_, message, channel_->queue_);
    message.Clear();
    slices.reset();
    reader_->StartCall();
    reader_->Finish(&reply_.message, &status_, tag());
    if (RecordEvent(kStarted) & kEnded) Post(&started_);
  }

  void Refuse() { done_(CallsCancelled(channel_->options_)); }

  void OnEvent(bool) override {
    if (context_ != nullptr) {
      // The thread that starts the call may still use it: it posts then.
      if (!(RecordEvent(kEnded) & kStarted)) return;
      if (status_.ok() && channel_->options_.checksums) {
        reply_.checksum = ChecksumOfReply(*context_);
      }
      // Slices that gRPC has not sent stay with its part of the call, which is over.
      reader_.reset();  // lives in the call, which the context may be the last to hold
      channel_->calls_.Ended(std::move(context_));
      if (!(RecordEvent(kClosed) & kReleased)) return;
    }
    End();
  }

 private:
  enum : int { kStarted = 1, kEnded = 2, kClosed = 4, kReleased = 8 };

  void* tag() { return static_cast<rpc::QueueEvent*>(this); }
  // What had happened before.
  int RecordEvent(int event) { return happened_.fetch_or(event, std::memory_order_acq_rel); }

  // Continues on the queue's thread. The caller keeps this: the call may be over before Set
  // returns.
  void Post(std::optional<grpc::Alarm>* alarm) {
    alarm->emplace();
    (*alarm)->Set(channel_->queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), tag());
  }

  // A process that stops cancels the calls that it has not answered.
  absl::Status Failure() const {
    const absl::Status failure = rpc::FromGrpc(status_);
    const bool is_broken_off = absl::IsCancelled(failure) && !IsJobOver(failure);
    if (!is_broken_off || channel_->calls_.is_cancelled()) return failure;
    return absl::UnavailableError(absl::StrCat("it has cancelled the call: ", failure.message()));
  }

  void End() {
    const std::shared_ptr<InFlight> self = std::move(self_);
    RawChannel* const channel = channel_;
    if (status_.ok()) {
      done_(std::move(reply_));
    } else {
      // Pauses are the caller's, too: gRPC's own after a name that does not resolve grow to
      // minutes.
      if (status_.error_code() == grpc::StatusCode::UNAVAILABLE) {
        grpc::experimental::ChannelResetConnectionBackoff(channel->channel_.get());
      }
      done_(NamePeer(channel->options_, method_, deadline_, Failure()));
    }
    // What the callback and the reply hold goes before the call counts as ended.
    done_ = nullptr;
    reply_.message.Clear();
    channel->calls_.Leave();
  }

  RawChannel* const channel_;  // waits for this
  const std::string method_;
  const absl::Duration deadline_;
  Callback<RawReply> done_;
  std::shared_ptr<InFlight> self_;
  std::atomic<int> happened_ = 0;
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
  RawReply reply_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  std::optional<grpc::Alarm> started_;
  std::optional<grpc::Alarm> released_;
};

RawChannel::RawChannel(const ClientOptions& options)
    : options_(options),
      channel_(rpc::MakeChannel(options.address, options.credentials.get())),
      stub_(channel_),
      own_queue_(options.queue == nullptr ? std::make_unique<rpc::EventQueue>() : nullptr),
      queue_((options.queue == nullptr ? own_queue_.get() : options.queue)->queue()) {}

RawChannel::~RawChannel() { calls_.CancelAndWait(); }

void RawChannel::Call(absl::string_view method, const google::protobuf::MessageLite& header,
                      std::span<const std::span<const std::byte>> payload, absl::Duration deadline,
                      Callback<RawReply> done) {
  const auto call = std::make_shared<InFlight>(this, method, deadline, std::move(done));
  if (!calls_.Enter(call->context())) return call->Refuse();
  call->Start(header, payload);
}

}  // namespace lockstep
