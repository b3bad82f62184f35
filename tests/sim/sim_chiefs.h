// The chief of a simulated job, process after process: each is the real one, and the next one finds
// what the last one left at the ps. Others may stand by.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "chief/job/job_series.h"
#include "common/base/callback.h"
#include "common/client/ps_control.h"
#include "tests/sim/address_book.h"
#include "tests/sim/death_at_disk.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

class SimChiefs {
 public:
  // Starts none. What is pointed to outlives this; `book` has the ps of the plan's cluster.
  SimChiefs(chief::JobPlan plan, const AddressBook* book, Network* network, EventQueue* events);
  ~SimChiefs();

  // A new process, which is the chief of the job from now on. The one before has been killed.
  void Start();
  // A new process that stands by, and is the chief of the job once it has taken command.
  void StartStandby();
  // kill -9 of the chief: calls that are on their way arrive, nothing comes back.
  void Kill();
  // The same in the middle of its next work that has so many file operations.
  void KillAtDisk(DeathAtDisk death);
  // SIGTERM. It ends by itself, soon.
  void Terminate();
  // Each process that has ended with an exit code that `lockstep up` starts it again for is
  // followed by one that stands by.
  void RestartEnded();
  // SIGSTOP, and SIGCONT after `pause`: what comes meanwhile is handled then. Keepalives end its
  // connections.
  void Suspend(absl::Duration pause);

  const chief::JobPlan& plan() const { return plan_; }
  // Of the chief.
  chief::JobController& job() const;
  const std::optional<absl::Status>& end() const;
  bool has_commanded() const;
  bool is_alive() const;
  // It has taken command, and is neither dead nor stopped.
  bool commands() const;
  // As ps know the chief's process.
  Incarnation incarnation() const;
  // Of a job with copies of shards: to the chief each shard has one now.
  bool HasAllCopies() const;
  // That were started; the number of a chief's node counts them.
  uint32_t num_processes() const { return static_cast<uint32_t>(processes_.size()); }
  // Of all processes that were not killed, or started again.
  std::vector<absl::Status> Ends() const;
  // Each of them has ended for good.
  bool HaveEnded() const;

  // Whom workers call; while nobody commands, who did last.
  Node commander() const;
  // What workers call. UNAVAILABLE while nobody commands, and when the chief dies meanwhile; those
  // that stand by note the caller.
  void Register(const RegisterTaskRequest& request, Callback<RegisterTaskReply> done);
  void Heartbeat(const HeartbeatRequest& request, Callback<HeartbeatReply> done);

 private:
  class EventExecutor;
  struct Life;
  struct Process;

  class ProcessControl;

  std::shared_ptr<Process> Launch(chief::JobPlan plan, uint32_t index);
  std::unique_ptr<PsControl> Connect(const Node& from, const std::string& address) const;
  // As `lockstep up` starts a chief again: with --resume, where there are checkpoints.
  chief::JobPlan PlanOfNext() const;
  // What a process does in one event. It may die in it.
  void Work(Process* process, absl::FunctionRef<void()> work);
  void Kill(Process* process);
  // The kernel does so where a process has died.
  void UnlockFolder() const;
  void Tick(std::shared_ptr<Process> process);
  void NoteCommand(const std::shared_ptr<Process>& process);
  // The chief of the job has found another one in its place.
  void FollowSuccessor();
  // Null: there is none.
  Process* FindCommander(WorkerIndex worker, Incarnation incarnation) const;
  template <typename Reply>
  std::optional<std::pair<chief::WorkerCalls*, chief::Answer<Reply>>> Connect(
      WorkerIndex worker, Incarnation incarnation, Callback<Reply> done);

  const chief::JobPlan plan_;
  const AddressBook* const book_;
  Network* const network_;
  EventQueue* const events_;
  std::vector<std::shared_ptr<Process>> processes_;
  std::shared_ptr<Process> current_;  // the chief of the job; one of them
};

}  // namespace lockstep::sim
