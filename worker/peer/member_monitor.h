// Asks the members of a group beside their messages: whether they live, while a reduction runs, and
// once whether they reduce the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "worker/peer/collective_activity.h"
#include "worker/peer/group.h"
#include "worker/peer/member_connection.h"
#include "worker/peer/member_watch.h"

namespace lockstep::worker {

// Thread-safe.
class MemberMonitor {
 public:
  struct Options {
    int position = 0;  // of this worker
    PeerIdentity self;
    // By position. Connections: null for this worker.
    std::vector<std::string> names;
    std::vector<MemberConnection*> connections;
    Timer* timer = nullptr;
    const Clock* clock = nullptr;
    absl::Duration patience;
  };
  // Keeps the monitor, as part of the collective that it is of.
  using Collective = std::shared_ptr<CollectiveActivity>;

  explicit MemberMonitor(Options options);

  // A reduction begins: from now on silence of a member is its failure.
  void Begin(const Collective& collective);
  void End();
  // Nothing happens any more, and the clock is not asked.
  void Close();

  // The member has answered a call. Its calls to this worker do not count: a member that this
  // worker cannot call never gets its messages.
  void OnAnswered(int position);
  // A call to the member has failed: why it is silent, if it stays so.
  void OnError(int position, const absl::Status& error);

  // Asks the next member whether it reduces the same, until it has answered. A difference is a
  // failure. Enters the collective until then.
  void CompareWithNext(const Collective& collective, CompareRequest own,
                       absl::AnyInvocable<void()> same);

 private:
  void CheckLater(const Collective& collective);
  void CheckMembers(const Collective& collective);
  void Probe(const Collective& collective, int position);
  void OnProbed(const Collective& collective, int position,
                const absl::StatusOr<ProbeReply>& reply);

  const Options options_;
  absl::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;
  bool will_look_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<bool> is_probed_ ABSL_GUARDED_BY(mutex_);  // by position: a probe is under way
  MemberWatch watch_ ABSL_GUARDED_BY(mutex_);
};

// The member may take the call later; whether it lives, the monitor finds out. NOT_FOUND: it has no
// memory of this worker, which is then attached again. UNKNOWN: gRPC's, of a connection that broke.
// DATA_LOSS: the message has changed on its way.
bool MayRepeat(const absl::Status& status);

}  // namespace lockstep::worker
