#include "worker/peer/peer_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/unary_method.h"
#include "common/transport/grpc/grpc_tensor_call.h"

namespace lockstep::worker {
namespace {

// Messages that gRPC can hand over before we ask for more.
constexpr int kAhead = 8;
// Of the header, without elements. A member's is shorter.
constexpr size_t kMaxHeader = 1024;
constexpr uint64_t kMaxStatePiece = uint64_t{1} << 20;

absl::Status CheckHeader(absl::string_view header) {
  if (header.size() <= kMaxHeader) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("message of a collective: expected a header of ",
                                                 kMaxHeader, " bytes at most, got ",
                                                 header.size()));
}

}  // namespace

// Codes that end the sender's collective at once tell the reason. After others it asks by Probe,
// because it must not take them for what happened between the two of them.
absl::Status EndOfCollective(const absl::Status& failure) {
  if (absl::IsAborted(failure) || absl::IsInvalidArgument(failure)) return failure;
  return absl::FailedPreconditionError(
      absl::StrCat("the collective has ended: ", failure.message()));
}

absl::Status PeerService::Attach(std::shared_ptr<PeerReceiver> receiver) {
  std::shared_ptr<PeerReceiver> old;  // destroyed without the lock
  const uint64_t job = receiver->group().job;
  const GroupViewId view = receiver->group().view;
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckNotOver(job, view));
  job_ = job;
  newest_ = view;
  old = std::exchange(receiver_, std::move(receiver));
  return absl::OkStatus();
}

void PeerService::Detach(const PeerReceiver* receiver) {
  std::shared_ptr<PeerReceiver> old;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  if (receiver_.get() == receiver) old = std::move(receiver_);
}

void PeerService::AnnounceView(uint64_t job, const GroupViewId& newest) {
  std::shared_ptr<PeerReceiver> replaced;
  {
    absl::MutexLock lock(&mutex_);
    newest_ = job == job_ ? std::max(newest_, newest) : newest;
    job_ = job;
    const bool is_replaced =
        receiver_ != nullptr && (receiver_->group().job != job || receiver_->group().view < newest);
    if (is_replaced) replaced = std::move(receiver_);
  }
  if (replaced != nullptr) replaced->OnNewerView(newest);
}

void PeerService::SetOwnState(OwnState* state) {
  absl::MutexLock lock(&state_mutex_);
  state_ = state;
}

void PeerService::Serve(const rpc::ServingQueue& queue) {
  using Method = GrpcTensorMethod<SendRequest, SendReply>;
  const auto send = std::make_shared<const Method>(
      Method{.raw = methods_.Of<SendRequest>(),
             .check = CheckHeader,
             .handle = [this](const std::shared_ptr<SendCall>& call) { OnSend(call); },
             .expects_checksums = [this] { return expects_checksums_.load(); }});
  for (int i = 0; i < kAhead; ++i) GrpcTensorCall<SendRequest, SendReply>::Await(send, queue);
  rpc::ServeUnary<CompareRequest, CompareReply>(
      &methods_, queue, [this](const CompareRequest& request, Callback<CompareReply> respond) {
        respond(OnCompare(request));
      });
  rpc::ServeUnary<ProbeRequest, ProbeReply>(
      &methods_, queue, [this](const ProbeRequest& request, Callback<ProbeReply> respond) {
        respond(OnProbe(request));
      });
  rpc::ServeUnary<ReadStateRequest, ReadStateReply>(
      &methods_, queue, [this](const ReadStateRequest& request, Callback<ReadStateReply> respond) {
        respond(OnReadState(request));
      });
  rpc::ServeUnary<AttachPeerMemoryRequest, AttachMemoryReply>(
      &methods_, queue,
      [this](const AttachPeerMemoryRequest& request, Callback<AttachMemoryReply> respond) {
        respond(OnAttachMemory(request));
      });
}

absl::StatusOr<PeerService::Admitted> PeerService::Admit(const PeerIdentity& sender) const {
  const GroupViewId view = ViewOf(sender);
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckNotOver(sender.job(), view));
  if (receiver_ == nullptr || receiver_->group().view < view) {
    return absl::FailedPreconditionError(
        absl::StrCat("this worker takes no part in ", ToString(view), " yet"));
  }
  const Group& group = receiver_->group();
  for (int position = 0; position < group.size(); ++position) {
    const Group::Member& member = group.members[position];
    if (group.job == sender.job() && member.worker == sender.worker() &&
        member.incarnation == sender.incarnation() && position != group.position) {
      return Admitted{receiver_, position};
    }
  }
  return absl::AbortedError(absl::StrCat(
      "worker ", sender.worker(), " of job ", sender.job(), ", incarnation ", sender.incarnation(),
      ", is no other member of ", ToString(view), " of job ", group.job));
}

absl::Status PeerService::CheckNotOver(uint64_t job, const GroupViewId& view) const {
  if (job != job_ || view >= newest_) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(ToString(view), " is over: the newer one is ", ToString(newest_)));
}

void PeerService::OnSend(const std::shared_ptr<SendCall>& call) {
  const absl::StatusOr<Admitted> admitted = Admit(call->request().sender());
  if (!admitted.ok()) return call->Respond(admitted.status());
  const absl::Status failure = admitted->receiver->failure();
  if (!failure.ok()) return call->Respond(EndOfCollective(failure));
  admitted->receiver->Receive(admitted->position, call);
}

absl::StatusOr<CompareReply> PeerService::OnCompare(const CompareRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Admitted admitted, Admit(request.sender()));
  LOCKSTEP_RETURN_IF_ERROR(admitted.receiver->Compare(admitted.position, request));
  return CompareReply();
}

absl::StatusOr<ProbeReply> PeerService::OnProbe(const ProbeRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Admitted admitted, Admit(request.sender()));
  const absl::Status failure = admitted.receiver->failure();
  ProbeReply reply;
  reply.set_code(static_cast<int>(failure.code()));
  reply.set_message(std::string(failure.message()));
  return reply;
}

absl::StatusOr<ReadStateReply> PeerService::OnReadState(const ReadStateRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Admitted admitted, Admit(request.sender()));
  const uint64_t size = std::min(request.size(), kMaxStatePiece);
  absl::MutexLock lock(&state_mutex_);
  if (state_ == nullptr) return absl::UnavailableError("this worker has no variables yet");
  LOCKSTEP_ASSIGN_OR_RETURN(StatePiece piece,
                            state_->Read(GlobalStep(request.version()), request.offset(), size));
  ReadStateReply reply;
  reply.set_total(piece.total);
  reply.mutable_scalars()->Add(piece.scalars.begin(), piece.scalars.end());
  reply.set_bytes(std::move(piece.bytes));
  return reply;
}

absl::StatusOr<AttachMemoryReply> PeerService::OnAttachMemory(
    const AttachPeerMemoryRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Admitted admitted, Admit(request.sender()));
  return admitted.receiver->OfferAttachment(admitted.position, request.host());
}

}  // namespace lockstep::worker
