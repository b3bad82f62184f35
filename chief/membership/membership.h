// Membership records the registered workers with their incarnations and leases. A worker that is
// silent for longer than the lease is lost; its successor comes with a new incarnation.
// Pure: time is an argument and never goes back. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/membership/quorum.h"
#include "chief/membership/standby_callers.h"
#include "common/base/group_view_id.h"
#include "common/base/ids.h"

namespace lockstep::chief {

// The report of a worker about itself with each heartbeat.
struct WorkerReport {
  GlobalStep local_step;
  std::string waiting_for;  // empty: computing
  uint64_t examples = 0;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  bool out_of_data = false;  // it pushes nothing any more, not even with local_step
  bool ready = false;        // data and towers are loaded
  bool departing = false;    // works until a replica view leaves it out
  GroupViewId failed_view;   // in which the reduction of local_step failed; its view is 0: none
};

enum class MemberState { kAbsent, kLive, kLost };

struct MemberRecord {
  std::string address;
  MemberState state = MemberState::kAbsent;
  Incarnation incarnation;
  std::string host;  // empty: it has registered with the previous chief
  int64_t pid = 0;
  absl::Duration last_heard;       // registration or heartbeat
  absl::Duration alive_at;         // the process certainly existed at this time
  absl::Duration not_lost_before;  // of a member not heard of since its admission
  bool is_inherited = false;       // kLive: a member of the previous chief
  bool is_awaited = false;         // is_inherited: silent since
  absl::Duration lost_since;       // kLost
  bool has_left = false;           // kLost: it called Leave
  WorkerReport report;             // of the last heartbeat of this incarnation
};

// "host node7, pid 4711", or that the previous chief knew these.
std::string DescribeProcess(const MemberRecord& member);

struct LiveMember {
  WorkerIndex worker;
  Incarnation incarnation;
  friend bool operator==(const LiveMember&, const LiveMember&) = default;
};

enum class Admission {
  kAdmitted,   // now, or already before
  kContended,  // the holder of the index is silent, and its lease not over: ask again
};

class Membership {
 public:
  // `addresses` by worker index.
  Membership(std::vector<std::string> addresses, absl::Duration lease);

  // Sets the new address of a worker, or appends a worker that the cluster did not have.
  void SetAddress(WorkerIndex worker, const std::string& address);

  // A process asks to be worker `worker`. It asks again until its job begins; each call counts as a
  // heartbeat. ALREADY_EXISTS naming host and pid if the holder of the index existed after the
  // newcomer first asked, as NoteAlive says. INVALID_ARGUMENT for an index outside the cluster.
  // `came`: arrival time of a call that has waited; its process may have died since.
  absl::StatusOr<Admission> Register(WorkerIndex worker, Incarnation incarnation,
                                     const std::string& host, int64_t pid, absl::Duration now,
                                     std::optional<absl::Duration> came = std::nullopt);

  // Makes a member of an earlier chief live. It is lost after a silence of `grace` or its lease,
  // the longer one. Once another process asks for its index, only its lease counts, from that
  // process's first call or the member's own later one. A process that has registered already
  // waits, too: its late registration may be from a process before the member. `callers`: until
  // now; may be null.
  void Adopt(const LiveMember& member, absl::Duration now,
             absl::Duration grace = absl::ZeroDuration(), const StandbyCallers* callers = nullptr);

  // ABORTED if this incarnation is not (or no longer) the live holder of the index. The call may
  // come late, from a process that has died since.
  absl::Status Heartbeat(WorkerIndex worker, Incarnation incarnation, WorkerReport report,
                         absl::Duration now);

  // A call has shown that this process existed at `when`. Ignored unless it holds the index.
  void NoteAlive(const LiveMember& process, absl::Duration when);

  // The process ends and has said so: its lease ends now. ABORTED as for Heartbeat.
  absl::Status Leave(WorkerIndex worker, Incarnation incarnation, absl::Duration now);

  // Removes the members whose lease has ended, and returns them.
  std::vector<WorkerIndex> Expire(absl::Duration now);

  std::vector<LiveMember> Live() const;

  // NoteStart and CountFor take the current step, which never goes back, and forget earlier steps.
  // Notes that the process begins at this step without a token.
  void NoteStart(const LiveMember& member, GlobalStep step);
  // Counts as able the `members` that have data, live or not.
  ReplicaCounts CountFor(GlobalStep step, absl::Span<const LiveMember> members);

  // The number of times that the answer of Live changed.
  uint64_t changes() const { return changes_; }
  const std::vector<MemberRecord>& members() const { return members_; }

 private:
  absl::Status CheckHolder(WorkerIndex worker, Incarnation incarnation) const;
  void EndLease(MemberRecord* member, absl::Duration now);
  void ForgetBefore(GlobalStep step);

  const absl::Duration lease_;
  std::vector<MemberRecord> members_;
  // By worker: processes that want an index held by another one, with the time of the first call.
  std::vector<std::map<Incarnation, absl::Duration>> contenders_;
  uint64_t changes_ = 0;
  std::set<std::pair<GlobalStep, Incarnation>> starts_;
  std::multiset<GlobalStep> lost_tokens_;  // steps of tokens of workers without data
};

}  // namespace lockstep::chief
