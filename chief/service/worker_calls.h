// Answers what workers call: admits them to the job, hands out and collects evaluation leases with
// their heartbeats, tells them the end. Calls are parked here until there is something to say.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/leases/evaluation_queue.h"
#include "chief/membership/membership.h"
#include "chief/service/answer.h"
#include "chief/service/call_order.h"
#include "chief/service/parked_registrations.h"
#include "chief/service/told_cluster.h"
#include "chief/service/worker_contacts.h"
#include "common/base/clock.h"
#include "common/log/throttle.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

class WorkerCalls {
 public:
  struct Hooks {
    // The live members changed.
    std::function<void()> members_changed;
    // Whether every shard knows this member.
    std::function<bool(const LiveMember&)> admitted;
    // What the worker takes of a step, of a job whose workers come and go; null: of another job.
    // The cluster specs of such a job's workers may have other workers than the chief's.
    std::function<StepShare(GlobalStep, WorkerIndex)> share_of = nullptr;
    // By shard, of a job with sync.ps_replicas; null: of another job.
    std::function<std::vector<ShardPlace>()> shard_places = nullptr;
    // Why the job does not run yet.
    std::function<std::string()> waiting_for;
    // A worker gave up, and the job with it.
    std::function<void(absl::Status)> worker_failed;
    // An evaluation may be complete.
    std::function<void()> result_arrived;
    // One more worker knows the end. Null: nobody waits for that.
    std::function<void()> end_known = nullptr;
    // Something that a user should see; null: it is only logged.
    std::function<void(std::string)> warn = nullptr;
  };

  // What is pointed to outlives this; without a test set there is no evaluations. `run`: as of
  // CallOrder.
  WorkerCalls(uint64_t run, ToldCluster cluster, Membership* membership,
              EvaluationQueue* evaluations, const Clock* clock, Hooks hooks);

  void Register(const RegisterTaskRequest& request, Answer<RegisterTaskReply> answer);
  void Heartbeat(const HeartbeatRequest& request, Answer<HeartbeatReply> answer);
  void ReportError(const ReportErrorRequest& request, Answer<ReportErrorReply> answer);

  // The members are known from now on: the heartbeat of any other process is refused, so that it
  // registers, also before the job runs.
  void KnowMembers() { members_known_ = true; }
  bool knows_members() const { return members_known_; }
  // The job runs: what those who register are told. `start_step` fills in the step to start at.
  void Begin(RegisterTaskReply job, std::function<GlobalStep()> start_step);
  // The job is over (OK) or failed: everybody is told, now or with the next call.
  void End(absl::Status outcome);
  // Others answer from now on: what is parked here is answered so.
  void Close(const absl::Status& why);
  // After End: every live worker has been told, and after Begin also those that never registered.
  // An answer may still be lost: a worker that calls again is told again.
  bool EverybodyIsTold() const { return contacts_.EverybodyIsTold(job_.has_value()); }
  // The same, and that they have said so.
  bool EverybodyKnows() const { return contacts_.EverybodyKnows(job_.has_value()); }

  // The cluster spec has changed: every worker is told at once.
  void SetCluster(ClusterDef cluster) {
    contacts_.SetCluster(std::move(cluster));
    TellNews();
  }
  // Of a replicated job: what the heartbeats of its members are answered from now on, the next ones
  // at once. Other workers are told no group: they wait for one of which they are members.
  void SetGroup(GroupView group) {
    contacts_.SetGroup(std::move(group));
    TellNews();
  }
  // Answers parked registrations that can go on. After any change of what they wait for.
  void AdmitParked();
  // Gives out evaluation leases and tells their workers at once.
  void AssignLeases();
  // Ends the leases of silent workers, answers what was parked for long. Several times a second.
  void Tick();

 private:
  struct ParkedHeartbeat {
    absl::Duration until;
    Answer<HeartbeatReply> answer;
  };
  // Where the shards are now. Whether that has changed.
  bool FindPlaces() {
    return hooks_.shard_places != nullptr && contacts_.SetPlaces(hooks_.shard_places());
  }
  void LogRefusal(absl::string_view message);
  // A worker has come or left, which it may do again and again.
  void LogChange(void (*write)(absl::string_view), WorkerIndex worker, absl::string_view what);
  ParkedRegistrations::Outcome TryAdmit(const RegisterTaskRequest& request,
                                        std::optional<absl::Duration> came = std::nullopt);
  void AdmitSuccessors();
  RegisterTaskReply Waiting(const RegisterTaskRequest& request);
  // Of the holder of an index, which takes part no more; nothing waits for it to run out.
  void EndLease(const LiveMember& process);
  absl::Status TakeResults(const HeartbeatRequest& request);
  // A call has come that is not late.
  void NoteReceived(const LiveMember& process, const ReplyId& last_reply);
  // The process is a member of this run, though it began in an earlier one, whose epoch is over.
  bool HasRegisteredLate(const HeartbeatRequest& request) const;
  // Returns what to answer.
  absl::Status Dismiss(const LiveMember& process);
  void AnswerHeartbeat(WorkerIndex worker);
  void AnswerHeartbeats(
      const std::function<bool(WorkerIndex worker, const ParkedHeartbeat&)>& wanted);
  void TellNews();
  std::string NameOf(WorkerIndex worker) const;

  Membership* const membership_;
  EvaluationQueue* const evaluations_;
  const Clock* const clock_;
  const Hooks hooks_;

  log::Throttle refusals_;
  log::Throttle changes_;
  bool members_known_ = false;
  std::optional<RegisterTaskReply> job_;
  std::function<GlobalStep()> start_step_;
  ParkedRegistrations registrations_;
  std::map<WorkerIndex, ParkedHeartbeat> heartbeats_;
  WorkerContacts contacts_;
  CallOrder order_;
};

}  // namespace lockstep::chief
