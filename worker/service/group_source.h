// The reducers of a worker's groups: the chief's views of the group go in, and the newest comes out
// as a reducer over its members.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/group_view_id.h"
#include "common/base/timer.h"
#include "proto/group.pb.h"
#include "proto/job.pb.h"
#include "worker/cache/variable_layout.h"
#include "worker/collective/group_reducer.h"
#include "worker/peer/group.h"
#include "worker/strategy/replicated/reducer_source.h"

namespace lockstep {
namespace rpc {
class Credentials;
class EventQueue;
}  // namespace rpc
}  // namespace lockstep

namespace lockstep::worker {

class MemberConnection;
class PeerService;

struct GroupSourceOptions {
  uint32_t worker = 0;
  uint64_t incarnation = 0;
  int num_workers = 1;    // one: there is no group to wait for
  GlobalStep first_step;  // of this worker
  // Of a group of so many workers.
  std::function<absl::StatusOr<GroupReduction>(int workers)> reduction;
  bool shrinks = false;       // ReducerOfGroup::sums_differ
  bool shared_memory = true;  // PeerGroupReducerOptions::shared_memory
  bool checksums = false;     // PeerGroupReducerOptions::checksums
  // All three outlive the source and its reducers; null with one worker.
  PeerService* peers = nullptr;
  rpc::EventQueue* queue = nullptr;
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // of calls
  Timer* timer = nullptr;
  const Clock* clock = Clock::Real();
  // As PeerGroupReducerOptions::connect. For simulations.
  std::function<std::unique_ptr<MemberConnection>(const Group::Member&)> connect = nullptr;
};

// Thread-safe.
class GroupSource final : public ReducerSource {
 public:
  explicit GroupSource(GroupSourceOptions options) : options_(std::move(options)) {}
  ~GroupSource() override;

  // The chief's view, again and again. Ends the reductions of an older one. The first view of
  // another chief, with the same members, is passed over: the members go on with the one that they
  // have, and if that fails, all need the chief's next view.
  void SetView(const GroupView& view);
  // That of the last reducer after NoteFailure of it, or a later one that is passed over: there
  // will be no sum in it, either (HeartbeatRequest::failed_view). Its view is 0: none.
  GroupViewId failed_view() const;

  // INVALID_ARGUMENT as PeerGroupReducer::Create.
  void Next(Callback<ReducerOfGroup> done) override;
  void NoteFailure(const GroupViewId& view) override;
  void SetOwnState(OwnState* state) override;
  void Cancel() override;

 private:
  // Answers the pending call, if there is something to tell.
  void Answer();
  absl::StatusOr<ReducerOfGroup> MakeLocal() const;
  absl::StatusOr<ReducerOfGroup> MakeOfPeers(const GroupView& view) const;

  const GroupSourceOptions options_;
  mutable absl::Mutex mutex_;
  std::optional<GroupView> newest_ ABSL_GUARDED_BY(mutex_);
  std::optional<GroupView> told_ ABSL_GUARDED_BY(mutex_);
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;    // the newest is to be told
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;  // the one that was told
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<GroupReducer> reducer_ ABSL_GUARDED_BY(mutex_);  // of the one that was told
  Callback<ReducerOfGroup> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
