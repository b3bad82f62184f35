// A whole job in one thread: the real chief and the real shards, workers that follow the protocol,
// and between them a network that delays, reorders and loses. Everything follows from one seed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ps/shard/shard.h"
#include "tests/sim/address_book.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/history.h"
#include "tests/sim/invariants.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "tests/sim/serving_servers.h"
#include "tests/sim/sim_chiefs.h"
#include "tests/sim/sim_group.h"
#include "tests/sim/sim_options.h"
#include "tests/sim/sim_ps.h"
#include "tests/sim/sim_run.h"
#include "tests/sim/sim_worker.h"

namespace lockstep::sim {

class SimCluster;

// The state of everybody, for a job that does not end.
std::string Describe(SimCluster& cluster);

class SimCluster {
 public:
  // Starts nothing. The invariants are checked after every event: time stops at the first one that
  // is broken, which is noted in the trace. What happens until its destruction begins is appended
  // to the trace of `run`, which outlives it and may be null.
  explicit SimCluster(const SimOptions& options, SimRun* run = nullptr);
  ~SimCluster();

  void StartChief() { chief_->Start(); }
  // The chief and every worker.
  void StartAll();
  SimWorker& worker(uint32_t index) { return *workers_[index]; }

  // Lets time pass until the chief has ended and every worker that was started has. False: after
  // `limit` of simulated time they have not, which is a violation.
  bool RunToEnd(absl::Duration limit);
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit) {
    return events_.RunUntil(done, limit);
  }

  const SimOptions& options() const { return options_; }
  const History& history() const { return history_; }
  EventQueue& events() { return events_; }
  Random& random() { return random_; }
  Network& network() { return network_; }
  SimChiefs& chief() { return *chief_; }
  chief::JobController& job() { return chief_->job(); }
  ProcessStatus status();
  GlobalStep global_step() const { return chief_->job().record().global_step; }
  SimPs& ps(size_t index) { return *ps_[index]; }
  // That serves.
  ps::Shard& shard(uint32_t index) const { return FindServing(index, Servers())->shard(); }
  // The chief's.
  const std::optional<absl::Status>& end() const { return chief_->end(); }
  uint64_t shown_early() const { return invariants_.shown_early(); }
  // The invariant that was broken; empty: none was.
  const std::string& violation() const { return events_.trace().violation(); }
  // Of a job with copies of shards: each shard has one now, no ps is stopped, and the
  // chief knows it.
  bool HasAllCopies() const;
  // What the ps have of this variable in the newest version. Where none is left: what the
  // checkpoint of the last step has, or nothing.
  std::vector<float> Values(uint32_t variable);
  // What the checkpoint of the last step has of this variable; empty: there is none.
  std::vector<float> SavedValues(uint32_t variable) const;
  // T.
  int tokens_per_step() const;
  // Worker processes that began at this step.
  int Starts(GlobalStep step) const;

 private:
  void CheckInvariants();
  // Of all processes.
  std::vector<SimPsServer*> Servers() const;
  // That serves the shard now, or did last.
  SimPsServer* FindServing(uint32_t shard, const std::vector<SimPsServer*>& servers) const;
  // That is complete, and alive; null: there is none.
  static SimPsServer* FindCopy(const SimPsServer& serving,
                               const std::vector<SimPsServer*>& servers);
  // One that has what the shard has shown last; null: there is none.
  SimPsServer* FindReadable(uint32_t shard) const;
  // The last view that it has accepted is the chief's.
  bool ObeysChief(const SimPsServer& server) const;
  // Of a server that has accepted one.
  const AcceptedView& LastView(const SimPsServer& server) const;
  // At a server of a copy, or whose members have all been lost: one that may read.
  void AdmitReader(SimPsServer* server);

  const SimOptions options_;
  SimRun* const run_;
  EventQueue events_;
  Random random_;
  Network network_;
  History history_;
  Invariants invariants_{&options_, &history_};
  CopyInvariants copy_invariants_{&history_};
  ServingServers serving_;
  SimMembers members_;
  AddressBook book_;
  std::vector<std::unique_ptr<SimPs>> ps_;
  std::optional<SimChiefs> chief_;
  std::vector<std::shared_ptr<SimWorker>> workers_;
};

}  // namespace lockstep::sim
