// A ps of a simulated job, process after process: each has the real shard, and knows nothing of the
// one before. Where shards have copies, it keeps one of the shard before its own, at an address
// that is new with each process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/client/ps_control.h"
#include "ps/shard/shard.h"
#include "tests/sim/address_book.h"
#include "tests/sim/death_at_disk.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"
#include "tests/sim/planted_bug.h"
#include "tests/sim/sim_ps_server.h"

namespace lockstep::sim {

struct SimPsOptions {
  uint32_t index = 0;
  uint32_t num_ps = 1;
  PlantedBug planted = PlantedBug::kNone;
  // Of a ps that listens at this port.
  std::function<std::string(uint32_t port)> address_of;
};

class SimPs {
 public:
  // The first process is started, and listens at port index + 1. What is pointed to outlives this.
  SimPs(SimPsOptions options, AddressBook* book, Network* network, EventQueue* events,
        History* history);
  ~SimPs();

  // kill -9. Those who wait for it, and call it, get UNAVAILABLE. Not in a callback of its shards.
  void Kill();
  // The same in the middle of the next save, or at its end.
  void KillInNextSave(DeathAtDisk death) { death_ = std::move(death); }
  // SIGSTOP, and SIGCONT after `pause`: what comes meanwhile is handled then, whether its caller
  // has given up or not. Keepalives end its connections. Nothing happens to one that is dead or
  // stopped.
  void Suspend(absl::Duration pause);
  // A new process. The one before is dead.
  void Start();
  bool is_alive() const;
  bool is_stopped() const;

  // Of the newest process, also when it is dead.
  SimPsServer& own() const;
  // The same, of the shard before this one; null: it has not been asked for.
  SimPsServer* copy() const;
  // Those of all processes, oldest first.
  void AppendServers(std::vector<SimPsServer*>* servers) const;

 private:
  class Control;
  class Data;
  struct Process;

  Node node() const { return {Role::kPs, options_.index}; }
  // Several times a second while the process lives and runs, as its clock asks for.
  void Tick(Process* process);
  // Those that others have to it, each time that `wait` is over while it is stopped.
  void CloseConnections(Process* process, uint64_t stop, absl::Duration wait);
  void Continue(Process* process);
  // At the copy's address. FAILED_PRECONDITION: there is one ps alone.
  absl::StatusOr<uint32_t> OpenCopyPort();
  std::unique_ptr<SimPsServer> MakeServer(uint32_t shard, uint32_t port, Process* process);
  void DieInSave(SimPsServer* server, const SaveRequest& request, StatusCallback done);

  const SimPsOptions options_;
  AddressBook* const book_;
  Network* const network_;
  EventQueue* const events_;
  History* const history_;
  LastCommands last_;
  std::optional<DeathAtDisk> death_;  // to come
  // All that ever were: what they have planned may still happen.
  std::vector<std::unique_ptr<Process>> processes_;
  // What calls reach; they outlive the processes. Calls that need what a process before this one
  // had end as at a gRPC client: with an error that HasLostVariables.
  std::vector<std::unique_ptr<PsControl>> controls_;
  std::vector<std::unique_ptr<PsData>> data_;
};

}  // namespace lockstep::sim
