#include "worker/peer/peer_group_reducer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/rpc/limits.h"
#include "worker/collective/split_messages.h"
#include "worker/peer/grpc_member_connection.h"

namespace lockstep::worker {
namespace {

// The rest of a message is for the header.
constexpr size_t kMaxMessageBytes = rpc::kMaxMessageBytes - (1 << 20);
constexpr size_t kLargestElement = 8;
// Fewer messages, because a call costs as much with a place as with elements.
constexpr size_t kMessageBytes = size_t{1} << 20;
constexpr size_t kSharedMessageBytes = size_t{4} << 20;
constexpr char kSegmentName[] = "lockstep-reduction";

absl::Status Check(const PeerGroupReducerOptions& options) {
  const auto wrong = [](const char* what, auto expected, auto got) {
    return absl::InvalidArgumentError(
        absl::StrCat("reduction over a group: ", what, ": expected ", expected, ", got ", got));
  };
  const GroupReduction& reduction = options.reduction;
  if (reduction.topology.workers != options.group.size()) {
    return wrong("workers", options.group.size(), reduction.topology.workers);
  }
  const BatchPlan& plan = reduction.plan;
  const size_t vectors = plan.packing.vectors().size();
  if (plan.schedules.size() != vectors || plan.algorithms.size() != vectors) {
    return wrong("schedules and algorithms", vectors, plan.schedules.size());
  }
  for (size_t v = 0; v < vectors; ++v) {
    const int participants = plan.schedules[v].num_participants();
    if (participants == reduction.topology.num_participants()) continue;
    return wrong("participants", reduction.topology.num_participants(), participants);
  }
  if (options.message_bytes < kLargestElement || options.message_bytes > kMaxMessageBytes) {
    return wrong("message_bytes", absl::StrCat(kLargestElement, " to ", kMaxMessageBytes),
                 options.message_bytes);
  }
  return absl::OkStatus();
}

GroupReduction WithCutMessages(GroupReduction reduction, size_t message_bytes) {
  for (size_t v = 0; v < reduction.plan.schedules.size(); ++v) {
    Schedule& schedule = reduction.plan.schedules[v];
    const size_t size = SizeOf(reduction.plan.packing.vectors()[v].dtype);
    schedule = SplitMessages(schedule, message_bytes / size);
  }
  return reduction;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerGroupReducer>> PeerGroupReducer::Create(
    PeerGroupReducerOptions options, PeerService* service) {
  if (options.message_bytes == 0) {
    options.message_bytes = options.shared_memory ? kSharedMessageBytes : kMessageBytes;
  }
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
  service->ExpectChecksums(options.checksums);
  LOCKSTEP_ASSIGN_OR_RETURN(
      ReductionLayout layout,
      ReductionLayout::Create(options.reduction.tensors, options.reduction.plan.packing));
  std::unique_ptr<PeerGroupReducer> reducer(
      new PeerGroupReducer(std::move(options), std::move(layout), service));
  LOCKSTEP_RETURN_IF_ERROR(service->Attach(reducer->collective_));
  return reducer;
}

PeerGroupReducer::PeerGroupReducer(PeerGroupReducerOptions options, ReductionLayout layout,
                                   PeerService* service)
    : service_(service), self_(IdentityOf(options.group)), layout_(std::move(layout)) {
  MakeMemory(options);
  Connect(options);
  std::vector<MemberConnection*> connections;
  for (const auto& connection : connections_) connections.push_back(connection.get());
  collective_ = std::make_shared<PeerCollective>(
      PeerCollective::Options{
          .group = options.group,
          .reduction = WithCutMessages(std::move(options.reduction), options.message_bytes),
          .connections = std::move(connections),
          .memory = segment_,
          .message_bytes = options.message_bytes,
          .timer = options.timer,
          .clock = options.clock,
          .patience = options.patience},
      layout_, towers_);
}

void PeerGroupReducer::MakeMemory(const PeerGroupReducerOptions& options) {
  const size_t towers = options.reduction.topology.towers;
  const size_t bytes = towers * layout_.num_bytes();
  std::byte* begin = nullptr;
  if (options.shared_memory && options.group.size() > 1) {
    auto segment = shm::Segment::Create(kSegmentName, bytes);
    if (segment.ok()) {
      segment_ = *std::move(segment);
      begin = segment_->bytes().data();
    } else {
      log::Info(
          absl::StrCat("shared memory unavailable, using gRPC: ", segment.status().message()));
    }
  }
  if (begin == nullptr) {
    memory_ = Tensor(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
    begin = static_cast<std::byte*>(memory_.data());
  }
  for (size_t tower = 0; tower < towers; ++tower) {
    towers_.push_back(begin + tower * layout_.num_bytes());
  }
}

void PeerGroupReducer::Connect(const PeerGroupReducerOptions& options) {
  for (int position = 0; position < options.group.size(); ++position) {
    if (position == options.group.position) {
      connections_.push_back(nullptr);
      continue;
    }
    const Group::Member& member = options.group.members[position];
    if (options.connect) {
      connections_.push_back(options.connect(member));
      continue;
    }
    const std::string name = absl::StrCat("worker ", member.worker);
    const auto tell = [name](const absl::Status& shares) {
      log::Info(shares.ok() ? absl::StrCat("shares memory with ", name)
                            : absl::StrCat("shared memory with ", name,
                                           " unavailable, using gRPC: ", shares.message()));
    };
    connections_.push_back(
        std::make_unique<GrpcMemberConnection>(ClientOptions{.address = member.address,
                                                             .name = name,
                                                             .queue = options.queue,
                                                             .credentials = options.credentials,
                                                             .checksums = options.checksums},
                                               self_, segment_, tell));
  }
}

PeerGroupReducer::~PeerGroupReducer() {
  service_->Detach(collective_.get());
  collective_->Close();
}

void PeerGroupReducer::ReadState(int position, GlobalStep version, uint64_t offset, uint64_t size,
                                 Callback<StatePiece> done) {
  ReadStateRequest request;
  *request.mutable_sender() = self_;
  request.set_version(version.value());
  request.set_offset(offset);
  request.set_size(size);
  connections_[position]->ReadState(
      std::move(request), [done = std::move(done)](absl::StatusOr<ReadStateReply> reply) mutable {
        if (!reply.ok()) return done(reply.status());
        done(StatePiece{.total = reply->total(),
                        .scalars = {reply->scalars().begin(), reply->scalars().end()},
                        .bytes = std::move(*reply->mutable_bytes())});
      });
}

MutableTensorView PeerGroupReducer::tensor(int tower, int i) const {
  return layout_.tensor(i, towers_[tower]);
}

}  // namespace lockstep::worker
