#include "ps/service/tensor_calls.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/limits.h"
#include "ps/service/convert.h"

namespace lockstep::ps {
namespace {

// Of a push that waits, for each of its pieces: its outcome in the reply, and in the result.
constexpr uint64_t kKeptPerPiece = sizeof(PushReply::Outcome) + sizeof(void*) + sizeof(PushStatus);

// OUT_OF_RANGE: too much for a message. Values that go by reference always fit.
absl::Status CheckFits(const PullResult& values) {
  // The rest is for the header.
  constexpr uint64_t kMost = rpc::kMaxMessageBytes - (1 << 20);
  if (values.by_reference) return absl::OkStatus();
  uint64_t bytes = 0;
  for (const PulledPiece& piece : values.pieces) bytes += piece.bytes.size();
  if (bytes <= kMost) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("pull of ", bytes, " bytes: a message takes ", kMost,
                                            ". Ask for them piece by piece"));
}

std::vector<OutgoingTensor> TensorsOf(const PullResult& values) {
  std::vector<OutgoingTensor> tensors;
  tensors.reserve(values.pieces.size());
  for (const PulledPiece& piece : values.pieces) {
    tensors.push_back(
        {.values = piece.bytes, .by_reference = values.by_reference, .seq_lock = piece.seq_lock});
  }
  return tensors;
}

// The reply's slices hold the values, which hold their tensors and the pin.
template <typename Call, typename Reply>
void RespondWithValues(Call* call, std::shared_ptr<Reply> reply, PullResult values) {
  const auto held = std::make_shared<const PullResult>(std::move(values));
  call->Respond(std::move(reply), TensorsOf(*held), held);
}

void AnswerPush(PushCall* call, absl::StatusOr<PushPullResult> result) {
  const std::shared_ptr<PushReply> reply = call->TakeBegun();
  if (!result.ok()) return call->Respond(result.status());
  // A pull tells its caller why they do not come.
  if (result->values.has_value() && !CheckFits(*result->values).ok()) result->values.reset();
  ToProto(*result, reply.get());
  if (!result->values.has_value()) return call->Respond(reply);
  RespondWithValues(call, reply, *std::move(result->values));
}

void AnswerPull(PullCall* call, absl::StatusOr<PullResult> result) {
  const absl::Status status = result.ok() ? CheckFits(*result) : result.status();
  if (!status.ok()) return call->Respond(status);
  const std::shared_ptr<PullReply> reply = NewArenaMessage<PullReply>();
  ToProto(*result, reply.get());
  RespondWithValues(call, reply, *std::move(result));
}

absl::Status TryPush(Shard* shard, const std::shared_ptr<PushCall>& call) {
  const PushRequest& request = call->request();
  LOCKSTEP_ASSIGN_OR_RETURN(PushArguments arguments, FromProto(request));
  NextStepArguments next = FromProto(request.next(), arguments.worker);
  if (next.pull.has_value()) {
    next.pull->accepts_references = call->AcceptsReferences();
    next.pull->kept_bytes = arguments.pieces.size() * kKeptPerPiece;
  }
  absl::StatusOr<ReceivedTensors> tensors = call->TakeTensors();
  if (!tensors.ok()) {
    // An error of admission takes precedence.
    LOCKSTEP_RETURN_IF_ERROR(shard->Admit(arguments.worker));
    return tensors.status();
  }
  arguments.tensors = *std::move(tensors);
  std::shared_ptr<PushReply> reply = NewArenaMessage<PushReply>();
  BeginReply(request, reply.get());
  call->Keep(std::move(reply));
  PushPull(shard, arguments, std::move(next), [call](absl::StatusOr<PushPullResult> result) {
    AnswerPush(call.get(), std::move(result));
  });
  return absl::OkStatus();
}

}  // namespace

void HandlePush(Shard* shard, const std::shared_ptr<PushCall>& call) {
  const absl::Status status = TryPush(shard, call);
  if (!status.ok()) call->Respond(status);
}

void HandlePull(Shard* shard, const std::shared_ptr<PullCall>& call) {
  absl::StatusOr<PullArguments> arguments = FromProto(call->request());
  if (!arguments.ok()) return call->Respond(arguments.status());
  arguments->accepts_references = call->AcceptsReferences();
  const auto ticket = std::make_shared<PullTicket>();
  arguments->ticket = ticket;
  call->OnCancelled([shard, ticket] { shard->CancelPull(ticket.get()); });
  shard->Pull(*arguments, [call = std::weak_ptr(call)](absl::StatusOr<PullResult> result) {
    if (const auto alive = call.lock()) AnswerPull(alive.get(), std::move(result));
  });
}

void HandleStoreVersion(Shard* shard, const std::shared_ptr<StoreVersionCall>& call) {
  StoreArguments arguments = FromProto(call->request());
  absl::StatusOr<ReceivedTensors> tensors = call->TakeTensors();
  if (!tensors.ok()) return call->Respond(tensors.status());
  arguments.tensors = *std::move(tensors);
  const absl::StatusOr<bool> complete = shard->Store(arguments);
  if (!complete.ok()) return call->Respond(complete.status());
  StoreVersionReply reply;
  reply.set_complete(*complete);
  call->RespondWith(reply);
}

void HandlePutState(Shard* shard, const std::shared_ptr<PutStateCall>& call) {
  StateArguments arguments = FromProto(call->request());
  absl::StatusOr<ReceivedTensors> tensors = call->TakeTensors();
  if (!tensors.ok()) return call->Respond(tensors.status());
  arguments.tensors = *std::move(tensors);
  const absl::StatusOr<bool> complete = shard->PutState(arguments);
  if (!complete.ok()) return call->Respond(complete.status());
  PutStateReply reply;
  reply.set_complete(*complete);
  call->RespondWith(reply);
}

}  // namespace lockstep::ps
