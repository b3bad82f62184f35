// The chief of a simulated job, process after process: each is the real one, and the next one finds
// what the last one left at the ps.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "chief/job/job_controller.h"
#include "common/base/callback.h"
#include "common/client/ps_control.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

class SimChiefs {
 public:
  // Starts none. What is pointed to outlives this; `shards` are those of this process, in the
  // cluster's order.
  SimChiefs(chief::JobPlan plan, std::vector<PsControl*> shards, Network* network,
            EventQueue* events);
  ~SimChiefs();

  // A new process. The one before has been killed.
  void Start();
  // kill -9: calls that are on their way arrive, nothing comes back.
  void Kill();
  // SIGTERM. It ends by itself, soon.
  void Terminate();

  const chief::JobPlan& plan() const { return plan_; }
  // Of the newest process.
  chief::JobController& job() const;
  const std::optional<absl::Status>& end() const;

  // What workers call. UNAVAILABLE while there is none, and when it dies meanwhile.
  void Register(const RegisterTaskRequest& request, Callback<RegisterTaskReply> done);
  void Heartbeat(const HeartbeatRequest& request, Callback<HeartbeatReply> done);

 private:
  class EventExecutor;
  struct Process;

  void Tick(std::shared_ptr<Process> process);
  template <typename Reply>
  std::optional<chief::Answer<Reply>> Connect(Callback<Reply> done);

  const chief::JobPlan plan_;
  const std::vector<PsControl*> shards_;
  Network* const network_;
  EventQueue* const events_;
  std::vector<std::shared_ptr<Process>> processes_;
};

}  // namespace lockstep::sim
