#include "worker/peer/peer_group_reducer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc/grpc_transport.h"
#include "worker/collective/split_messages.h"

namespace lockstep::worker {
namespace {

// The rest of a message is for the header.
constexpr size_t kMaxMessageBytes = rpc::kMaxMessageBytes - (1 << 20);
constexpr size_t kLargestElement = 8;

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
  LOCKSTEP_RETURN_IF_ERROR(Check(options));
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
    : service_(service), layout_(std::move(layout)) {
  for (int tower = 0; tower < options.reduction.topology.towers; ++tower) {
    Tensor& memory =
        memory_.emplace_back(DType::kUInt8, Shape({static_cast<int64_t>(layout_.num_bytes())}));
    towers_.push_back(static_cast<std::byte*>(memory.data()));
  }
  std::vector<TensorTransport*> connections;
  for (int position = 0; position < options.group.size(); ++position) {
    const Group::Member& member = options.group.members[position];
    auto connection = position == options.group.position
                          ? nullptr
                          : std::make_unique<GrpcTransport>(
                                ClientOptions{.address = member.address,
                                              .name = absl::StrCat("worker ", member.worker),
                                              .queue = options.queue});
    connections.push_back(connection.get());
    connections_.push_back(std::move(connection));
  }
  collective_ = std::make_shared<PeerCollective>(
      PeerCollective::Options{
          .group = options.group,
          .reduction = WithCutMessages(std::move(options.reduction), options.message_bytes),
          .connections = std::move(connections),
          .timer = options.timer,
          .clock = options.clock,
          .patience = options.patience},
      layout_, towers_);
}

PeerGroupReducer::~PeerGroupReducer() {
  service_->Detach(collective_.get());
  collective_->Close();
}

MutableTensorView PeerGroupReducer::tensor(int tower, int i) const {
  return layout_.tensor(i, towers_[tower]);
}

}  // namespace lockstep::worker
