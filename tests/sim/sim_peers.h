// Workers that reduce together, in simulated time over a bad network: their real peer services and
// reducers, views formed by the simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/reduction/all_reduce_spec.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_peer_connection.h"
#include "tests/sim/sim_run.h"
#include "worker/peer/peer_group_reducer.h"
#include "worker/peer/peer_service.h"

namespace lockstep::sim {

enum class Accident { kNone, kDeath, kHang };

struct PeerOptions {
  uint64_t seed = 0;
  int workers = 2;
  int towers = 1;
  AllReduceSpec spec;
  std::vector<int64_t> lengths;  // of the gradients
  size_t message_bytes = 64;
  bool average = true;
  bool by_reference = false;  // elements are read in the sender's memory; otherwise they are copied
  int64_t steps = 3;
  NetworkOptions network;
  absl::Duration most_compute = absl::Milliseconds(20);  // before a step, and before a view
  Accident accident = Accident::kNone;                   // befalls one worker
  absl::Duration accident_at;
  bool has_successor = true;  // of that worker; otherwise the group shrinks
};

// Steps are reduced again from their gradients in each new view. Used by one thread.
class SimPeers {
 public:
  // What happens until its destruction begins is appended to the trace of `run`, which outlives it
  // and may be null.
  explicit SimPeers(const PeerOptions& options, SimRun* run = nullptr);
  ~SimPeers();

  // Empty: all members reduced all steps to the right bits, or ended in time and named the worker
  // that did not.
  std::string Run();
  // Formed so far.
  uint64_t views() const { return view_; }

 private:
  using Gradients = std::vector<std::vector<Tensor>>;  // by tower and position

  // A process of a worker, until its death and after.
  struct Process {
    int worker = 0;
    uint64_t incarnation = 0;
    int position = 0;  // in the view
    worker::PeerService service;
    PeerProcess seen{.service = &service};  // by others
    // Of all its reducers, which own them.
    std::vector<SimPeerConnection*> connections;
    std::vector<std::unique_ptr<worker::PeerGroupReducer>> reducers;  // of its views
    std::vector<Gradients> gradients;  // all: by reference, others may still read them
    int64_t step = 0;                  // next to be reduced
    bool is_reducing = false;
    bool has_failed = false;  // in this view
    absl::Duration began;
  };

  Process* NewProcess(int worker);
  Process* Find(uint64_t incarnation);
  void FormView();
  void JoinView(Process* process, const worker::Group& group);
  void Reduce(Process* process);
  void OnReduced(Process* process, const absl::Status& status);
  void CheckFailure(const Process& process, const absl::Status& failure);
  void CheckResult(const Process& process);
  void Befall();
  bool HasEnded() const;
  // Every member has failed or has nothing more to do.
  bool NeedsView() const;
  absl::Duration Compute() { return random_.Between(absl::ZeroDuration(), options_.most_compute); }
  // Of one worker in one step: the same bits each time.
  Gradients GradientsOf(int worker, int64_t step) const;

  const PeerOptions options_;
  SimRun* const run_;
  EventQueue events_;
  Random random_;
  Network network_;
  std::vector<std::unique_ptr<Process>> processes_;  // all that ever were
  std::vector<Process*> members_;                    // of the view, in its order
  std::optional<worker::GroupReduction> reduction_;  // of the view
  uint64_t view_ = 0;
  Process* victim_ = nullptr;
  absl::Duration befell_at_;
  std::string wrong_;
};

}  // namespace lockstep::sim
