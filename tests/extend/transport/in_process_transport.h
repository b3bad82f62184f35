// A transport without a network: a call is delivered to its handler in the same process, with
// tensors that the receiver owns. Shows what a new transport has to provide.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/transport/tensor_call.h"
#include "common/transport/tensor_transport.h"

namespace lockstep::test {

// The bytes of these tensors, copied.
ReceivedTensors CopyOf(const std::vector<OutgoingTensor>& tensors);

// What Cancel needs to know of a call.
class InProcessCallBase {
 public:
  virtual ~InProcessCallBase() = default;
  virtual void Cancel() = 0;
  virtual bool IsAnswered() = 0;
};

// Answered by its handler or by Cancel, whichever comes first.
template <typename Request, typename Reply>
class InProcessCall final : public TensorCall<Request, Reply>, public InProcessCallBase {
 public:
  InProcessCall(const Request& request, ReceivedTensors tensors, Reply* reply,
                Callback<ReceivedTensors> done)
      : request_(request), tensors_(std::move(tensors)), reply_(reply), done_(std::move(done)) {}

  const Request& request() const override { return request_; }
  absl::StatusOr<ReceivedTensors> TakeTensors() override { return std::move(tensors_); }
  bool AcceptsReferences() const override { return false; }
  void OnCancelled(absl::AnyInvocable<void()> cancelled) override {
    cancelled_ = std::move(cancelled);
  }
  void Respond(absl::StatusOr<std::shared_ptr<Reply>> reply,
               const std::vector<OutgoingTensor>& tensors, std::shared_ptr<const void>) override {
    Callback<ReceivedTensors> done = TakeCallback();
    if (done == nullptr) return;
    if (!reply.ok()) return done(reply.status());
    *reply_ = **reply;
    done(CopyOf(tensors));
  }
  void Cancel() override {
    Callback<ReceivedTensors> done = TakeCallback();
    if (done == nullptr) return;
    if (cancelled_ != nullptr) cancelled_();
    done(absl::CancelledError("calls were cancelled"));
  }
  bool IsAnswered() override {
    absl::MutexLock lock(&mutex_);
    return done_ == nullptr;
  }

 private:
  Callback<ReceivedTensors> TakeCallback() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(done_, nullptr);
  }

  const Request request_;
  ReceivedTensors tensors_;
  Reply* const reply_;
  absl::AnyInvocable<void()> cancelled_;
  absl::Mutex mutex_;
  Callback<ReceivedTensors> done_ ABSL_GUARDED_BY(mutex_);
};

class InProcessTransport final : public TensorTransport {
 public:
  ~InProcessTransport() override { Cancel(); }

  // Before the first call.
  template <typename Request, typename Reply>
  void Serve(
      const TensorMethod<Request, Reply>& method,
      std::type_identity_t<std::function<void(const std::shared_ptr<TensorCall<Request, Reply>>&)>>
          handle) {
    handlers_[std::string(method.path)] =
        [handle = std::move(handle)](const google::protobuf::Message& header,
                                     ReceivedTensors tensors, google::protobuf::Message* reply,
                                     Callback<ReceivedTensors> done) {
          return Prepared(std::make_shared<InProcessCall<Request, Reply>>(
                              dynamic_cast<const Request&>(header), std::move(tensors),
                              dynamic_cast<Reply*>(reply), std::move(done)),
                          handle);
        };
  }

  void Open(const WorkerIdentity&, Callback<TransportInfo> done) override {
    done(TransportInfo{absl::UnavailableError("messages own their tensors")});
  }
  std::string peer() const override { return "a server in this process"; }
  bool MayRound() const override { return true; }
  bool SendsByReference(std::span<const std::byte>) const override { return false; }
  bool ReceivesByReference() const override { return false; }
  void Cancel() override;
  void Start(const CallOptions& options, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>& tensors, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override;

 private:
  // A call, and how to hand it to its handler.
  struct Ready {
    std::shared_ptr<InProcessCallBase> call;
    std::function<void()> deliver;
  };
  using Handler = std::function<Ready(const google::protobuf::Message&, ReceivedTensors,
                                      google::protobuf::Message*, Callback<ReceivedTensors>)>;

  template <typename Call, typename Handle>
  static Ready Prepared(std::shared_ptr<Call> call, const Handle& handle) {
    return {call, [call, handle] { handle(call); }};
  }

  std::map<std::string, Handler> handlers_;
  absl::Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<InProcessCallBase>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::test
