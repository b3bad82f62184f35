// A ps of a simulated job, process after process: each is the real shard, and knows nothing of the
// one before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/client/ps_control.h"
#include "ps/service/command_watch.h"
#include "ps/shard/shard.h"
#include "tests/sim/death_at_disk.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/history.h"
#include "tests/sim/planted_bug.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

class SimPs {
 public:
  // The first process is started. What is pointed to outlives this.
  SimPs(uint32_t index, PlantedBug planted, EventQueue* events, History* history);
  ~SimPs();

  // kill -9. Those who wait for it, and call it, get UNAVAILABLE.
  void Kill();
  // The same in the middle of the next save, or at its end.
  void KillInNextSave(DeathAtDisk death) { death_ = std::move(death); }
  // A new process. The one before is dead.
  void Start();
  bool is_alive() const;

  // What calls reach; they outlive the processes. Calls that need what a process before this one
  // had end as at a gRPC client: with an error that HasLostVariables.
  PsControl* control() { return control_.get(); }
  PsData* data() { return data_.get(); }
  // Of the newest process, also when it is dead.
  ps::Shard& shard();
  const ps::Shard& shard() const;

 private:
  class Control;
  class Data;
  struct Process;

  void DieInSave(const SaveRequest& request, StatusCallback done);
  absl::Status AsClientSees(const Process& process, const absl::Status& status) const;

  const uint32_t index_;
  const PlantedBug planted_;
  EventQueue* const events_;
  History* const history_;
  LastCommands last_;
  std::optional<DeathAtDisk> death_;  // to come
  // All that ever were: what they have planned may still happen.
  std::vector<std::shared_ptr<Process>> processes_;
  std::unique_ptr<PsControl> control_;
  std::unique_ptr<PsData> data_;
};

}  // namespace lockstep::sim
