#include "common/rpc/unknown_methods.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/rpc/caller_check.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/queue_event.h"
#include "common/rpc/refusal_sender.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kShownPath = 200;

class UnknownCall final : public std::enable_shared_from_this<UnknownCall> {
 public:
  UnknownCall(grpc::AsyncGenericService* calls, const ServingQueue& queue)
      : calls_(calls), queue_(queue), stream_(&context_) {}

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
    pass_ = queue_.gate->Enter();
    if (!pass_) return;
    Await(calls_, queue_);
    const absl::Status status = Refusal();
    queue_.refusals->Send({.call = this,
                           .code = status.code(),
                           .caller = caller_,
                           .context = context_,
                           .message_bytes = 0},
                          [call = shared_from_this(), status] {
                            call->stream_.Finish(ToGrpc(status), call->answered_.Arm());
                          });
  }

  absl::Status Refusal() {
    absl::Status status = CheckCaller(queue_.callers, context_.method(), context_, &caller_);
    if (!status.ok()) return status;
    return absl::UnimplementedError(
        absl::StrCat("this process does not serve ", Printable(context_.method(), kShownPath)));
  }

  void Answered(bool) {}
  void Ended(bool) {
    if (context_.IsCancelled()) queue_.refusals->Drop(this);
  }

  grpc::AsyncGenericService* const calls_;
  const ServingQueue queue_;
  Gate::Pass pass_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  std::optional<security::Caller> caller_;
  CallEvent<UnknownCall> arrived_{this, &UnknownCall::Arrived};
  CallEvent<UnknownCall> answered_{this, &UnknownCall::Answered};
  CallEvent<UnknownCall> ended_{this, &UnknownCall::Ended};
};

}  // namespace

void UnknownMethods::Serve(const ServingQueue& queue) { UnknownCall::Await(&calls_, queue); }

}  // namespace lockstep::rpc
