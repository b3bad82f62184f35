// The GroupReducer over worker processes, of one view of their group. Messages between towers of
// this process are pointers. Those to members on this host name elements in this worker's memory,
// which the member adds straight from; the others carry them, at most `message_bytes` each.
//
// A new view: PeerService::AnnounceView ends the reduction that runs with ABORTED. Destroy this
// reducer, make one for the new group, and reduce the same gradients again.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "common/shm/segment.h"
#include "worker/collective/group_reducer.h"
#include "worker/collective/member_state.h"
#include "worker/collective/reduction_layout.h"
#include "worker/peer/group.h"
#include "worker/peer/member_connection.h"
#include "worker/peer/peer_collective.h"
#include "worker/peer/peer_service.h"

namespace lockstep {
namespace rpc {
class Credentials;
class EventQueue;
}  // namespace rpc
}  // namespace lockstep

namespace lockstep::worker {

struct PeerGroupReducerOptions {
  Group group;
  GroupReduction reduction;  // its topology has a worker for each member
  // Members on this host read this worker's memory; with others, and where there is none, messages
  // carry elements. The job says it to all members: transport.shared_memory is not OFF.
  bool shared_memory = false;
  bool checksums = false;  // of messages between members: transport.checksums
  // Elements of a message, in bytes: longer ones are cut, so that receiving, adding and sending
  // overlap. The same at every member, at most 15 MiB. 0: 1 MiB, with `shared_memory` 4 MiB.
  size_t message_bytes = 0;
  // A member that answers no call for so long has failed. The error comes at most 1 s later.
  absl::Duration patience = absl::Seconds(6);
  // All three outlive the reducer. The queue is that of the process's server, or null for threads
  // of the reducer's own.
  rpc::EventQueue* queue = nullptr;
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // of calls
  Timer* timer = nullptr;
  const Clock* clock = Clock::Real();
  // Makes the connection to a member. Null: GrpcMemberConnection. For simulations.
  std::function<std::unique_ptr<MemberConnection>(const Group::Member&)> connect = nullptr;
};

// Calls work on the threads that bring messages; a step in steady state allocates only for calls.
class PeerGroupReducer final : public GroupReducer, public MemberStates {
 public:
  // Takes the calls of `service`, which outlives this, for the group's view. INVALID_ARGUMENT: the
  // reduction is not one of the group, or a plan that is not of the tensors. ABORTED: the service
  // knows of a newer view.
  static absl::StatusOr<std::unique_ptr<PeerGroupReducer>> Create(PeerGroupReducerOptions options,
                                                                  PeerService* service);
  ~PeerGroupReducer() override;

  MutableTensorView tensor(int tower, int i) const override;
  void Reduce(int64_t step, absl::Span<const std::vector<TensorView>> gradients,
              StatusCallback done) override {
    collective_->Reduce(step, gradients, std::move(done));
  }
  void Cancel(absl::Status reason) override { collective_->Fail(std::move(reason)); }
  GroupTraffic traffic() const override { return collective_->traffic(); }
  void ReadState(int position, GlobalStep version, uint64_t offset, uint64_t size,
                 Callback<StatePiece> done) override;

 private:
  PeerGroupReducer(PeerGroupReducerOptions options, ReductionLayout layout, PeerService* service);

  void MakeMemory(const PeerGroupReducerOptions& options);
  void Connect(const PeerGroupReducerOptions& options);

  PeerService* const service_;
  const PeerIdentity self_;
  const ReductionLayout layout_;
  std::shared_ptr<shm::Segment> segment_;  // of all local towers; null: `memory_` has them
  Tensor memory_;
  std::vector<std::byte*> towers_;  // where the memory of each begins
  std::shared_ptr<PeerCollective> collective_;
  // By position; null for this worker. Last: their callbacks use the rest.
  std::vector<std::unique_ptr<MemberConnection>> connections_;
};

}  // namespace lockstep::worker
