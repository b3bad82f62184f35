#include "common/rpc/unknown_methods.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/served_call.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kShownPath = 200;

class UnknownCall final : public ServedCall<UnknownCall, grpc::GenericServerContext> {
  friend ServedCall;

 public:
  UnknownCall(grpc::AsyncGenericService* calls, const ServingQueue& queue)
      : ServedCall(queue), calls_(calls), stream_(&context_) {}

  static void Await(grpc::AsyncGenericService* calls, const ServingQueue& queue) {
    const auto call = std::make_shared<UnknownCall>(calls, queue);
    // Given back only if a call arrives.
    call->context_.AsyncNotifyWhenDone(call->ended_.tag());
    calls->RequestCall(&call->context_, &call->stream_, queue.queue, queue.queue,
                       call->arrived_.Arm());
  }

 private:
  void Arrived(bool ok) {
    if (!ok) return;  // the server stops
    ended_.Arm();
    if (!Enter()) return;
    Await(calls_, queue_);
    Refuse(Refusal());
  }

  absl::Status Refusal() {
    absl::Status status = CheckCaller(context_.method());
    if (!status.ok()) return status;
    return absl::UnimplementedError(
        absl::StrCat("this process does not serve ", Printable(context_.method(), kShownPath)));
  }

  void SendError(const grpc::Status& error) { stream_.Finish(error, answered_.Arm()); }

  void Answered(bool) {}
  void Ended(bool) { DropRefusalIfCancelled(); }

  grpc::AsyncGenericService* const calls_;
  grpc::GenericServerAsyncReaderWriter stream_;
  CallEvent<UnknownCall> arrived_{this, &UnknownCall::Arrived};
  CallEvent<UnknownCall> answered_{this, &UnknownCall::Answered};
  CallEvent<UnknownCall> ended_{this, &UnknownCall::Ended};
};

}  // namespace

void UnknownMethods::Serve(const ServingQueue& queue) { UnknownCall::Await(&calls_, queue); }

}  // namespace lockstep::rpc
