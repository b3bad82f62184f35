// Makes the answers to heartbeats. Keeps for each worker which news the answers have told, and
// which of these the worker has confirmed.
//
// Lives on the executor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/leases/evaluation_queue.h"
#include "chief/membership/membership.h"
#include "chief/service/shard_places.h"
#include "chief/service/told_cluster.h"
#include "common/base/ids.h"
#include "common/config/known_cluster_specs.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

class WorkerContacts {
 public:
  // What is pointed to outlives this; without a test set there is no evaluations.
  WorkerContacts(ToldCluster cluster, const Membership* membership,
                 const EvaluationQueue* evaluations);

  const KnownClusterSpecs& known_clusters() const { return cluster_.known(); }
  void SetCluster(ClusterDef cluster) { cluster_.Set(std::move(cluster)); }
  // Other workers than its members are told no group: they wait for one of which they are members.
  void SetGroup(GroupView group) { group_ = std::move(group); }
  // By shard. Whether that has changed.
  bool SetPlaces(std::vector<ShardPlace> places) { return places_.Set(std::move(places)); }
  // The job is over (OK) or failed.
  void SetOutcome(absl::Status outcome) { outcome_ = std::move(outcome); }
  const std::optional<absl::Status>& outcome() const { return outcome_; }

  // A heartbeat of a member has come. `last_reply`: the number of the newest reply that it names;
  // 0: a reply of another run; nullopt: it names none. True: the worker says, for the first time,
  // that it knows the end.
  bool OnHeartbeat(const LiveMember& process, std::optional<uint64_t> last_reply);
  // The process ends, and does not call again: it was told the end as it registered, or has
  // reported an error. Nothing for an index that no member has.
  void RecordEnded(const LiveMember& process);

  // After OnHeartbeat of the worker: the process that has sent the last one.
  Incarnation IncarnationOf(WorkerIndex worker) const { return contacts_.at(worker).incarnation; }
  // After OnHeartbeat of the worker: whether the answer would say something new.
  bool HasNews(WorkerIndex worker) const;
  // After OnHeartbeat of the worker: what it is told now. `id`: of the reply.
  HeartbeatReply MakeReply(WorkerIndex worker, const ReplyId& id);
  // Where the shards are, and the cluster spec.
  void AddTo(RegisterTaskReply* reply) const;
  // What a worker is told that registers after the end.
  absl::StatusOr<RegisterTaskReply> TooLate() const;

  // The holder of the index lives and has sent a heartbeat.
  bool IsInContact(WorkerIndex worker) const;
  bool IsToldEnd(WorkerIndex worker) const;
  // Every live worker has been told the end. `has_begun`: the job had, so those that never
  // registered may be on their way here, and count, too.
  bool EverybodyIsTold(bool has_begun) const { return All(&Contact::told_end, has_begun); }
  // The same, and that they have said so.
  bool EverybodyKnows(bool has_begun) const { return All(&Contact::knows_end, has_begun); }

 private:
  struct Contact {
    Incarnation incarnation;
    uint64_t told_lease = 0;     // 0: none
    uint64_t told_group = 0;     // its view; 0: none
    uint64_t told_places = 0;    // their number; 0: none
    uint64_t told_cluster = 0;   // its number; 0: none
    uint64_t cluster_reply = 0;  // the first one that has told it; those after it tell it, too
    bool has_cluster = false;    // a call has named one of these, or names no replies at all
    bool told_end = false;
    uint64_t end_reply = 0;  // the first one that has told it; 0: none
    bool knows_end = false;  // a call has named that one or a later one
  };

  bool IsInGroup(WorkerIndex worker, const Contact& contact) const;
  std::optional<Lease> LeaseOf(WorkerIndex worker) const;
  void TellEnd(Contact* contact, HeartbeatReply* reply) const;
  bool All(bool Contact::*what, bool has_begun) const;

  ToldCluster cluster_;
  const Membership* const membership_;
  const EvaluationQueue* const evaluations_;
  std::optional<GroupView> group_;
  ShardPlaces places_;
  std::optional<absl::Status> outcome_;
  std::map<WorkerIndex, Contact> contacts_;
};

}  // namespace lockstep::chief
