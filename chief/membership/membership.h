// Which workers are there: who registered, under which incarnation, when last heard of. A worker
// that is silent for longer than the lease is lost; its successor comes with a new incarnation.
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
#include "common/base/standstill_watch.h"

namespace lockstep::chief {

// What a worker says about itself with each heartbeat.
struct WorkerReport {
  GlobalStep local_step;
  std::string waiting_for;  // empty: computing
  uint64_t examples = 0;
  uint64_t accepted = 0;
  uint64_t stale = 0;
  bool out_of_data = false;  // from then on it pushes nothing, not even with local_step
  bool ready = false;        // data and towers are there
  bool departing = false;    // goes on until a replica view leaves it out
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
  absl::Duration alive_at;         // the process existed then, for certain
  absl::Duration not_lost_before;  // of one that has not been heard of since it was taken in
  bool is_inherited = false;       // kLive: a member of the chief before
  bool is_awaited = false;         // is_inherited: silent since
  absl::Duration lost_since;       // kLost
  bool has_left = false;           // kLost: it said so
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
  Membership(std::vector<std::string> addresses, absl::Duration lease, absl::Duration now);

  // A worker that the cluster did not have comes in behind those it had, or one of them has moved.
  void SetAddress(WorkerIndex worker, const std::string& address);

  // A process asks to be worker `worker`; it asks again until its job begins, and that counts as a
  // heartbeat. ALREADY_EXISTS naming host and pid when the holder of the index existed after the
  // newcomer first asked, as NoteAlive says. INVALID_ARGUMENT for an index outside the cluster.
  // `came`: when the call came, of one that has waited: its process may have died since.
  absl::StatusOr<Admission> Register(WorkerIndex worker, Incarnation incarnation,
                                     const std::string& host, int64_t pid, absl::Duration now,
                                     std::optional<absl::Duration> came = std::nullopt);

  // A member that an earlier chief had: it is live, and has `grace` at least, or its lease, to be
  // heard of. Once another process asks for its index, only its lease counts, from when that asked
  // first, or from a later call of the member's own. A process that has registered already waits as
  // well: its registration may have come late, from a process before the member. `callers`: until
  // now; may be null.
  void Adopt(const LiveMember& member, absl::Duration now,
             absl::Duration grace = absl::ZeroDuration(), const StandbyCallers* callers = nullptr);

  // ABORTED when this incarnation is not (or no longer) the live holder of the index. It may come
  // late, from a process that has died since.
  absl::Status Heartbeat(WorkerIndex worker, Incarnation incarnation, WorkerReport report,
                         absl::Duration now);

  // A call has shown that this process existed at `when`. Nothing for another one than the holder.
  void NoteAlive(const LiveMember& process, absl::Duration when);

  // The process ends and has said so: its lease ends now. ABORTED as for Heartbeat.
  absl::Status Leave(WorkerIndex worker, Incarnation incarnation, absl::Duration now);

  // Takes out those whose lease has ended; returns them. Call it several times a second: time in
  // which this process stood still counts against nobody.
  std::vector<WorkerIndex> Expire(absl::Duration now);

  std::vector<LiveMember> Live() const;

  // NoteStart and CountFor take the step at hand, which never goes back, and forget earlier steps.
  // Notes that the process begins at this step without a token.
  void NoteStart(const LiveMember& member, GlobalStep step);
  // Able are those of `members`, live or not, that have data.
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
  // By worker: processes that want the index while another one holds it, and when they first asked.
  std::vector<std::map<Incarnation, absl::Duration>> contenders_;
  uint64_t changes_ = 0;
  std::set<std::pair<GlobalStep, Incarnation>> starts_;
  std::multiset<GlobalStep> lost_tokens_;  // their steps, of those whose data ended
  StandstillWatch standstill_;
};

}  // namespace lockstep::chief
