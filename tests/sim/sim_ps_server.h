// A server of a simulated ps process: the real shard, its own or the copy of another one, and the
// calls that reach it.
#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/client/ps_control.h"
#include "ps/service/command_watch.h"
#include "ps/shard/shard.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/history.h"
#include "tests/sim/planted_bug.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

struct SimPsServerOptions {
  PsServerId id;
  Incarnation process;  // that chiefs are told
  Node node;            // of the process
  std::string address;
  PlantedBug planted = PlantedBug::kNone;
  ps::MakeCopyTarget make_copy_target;  // may be null
  // What is pointed to outlives the server.
  LastCommands* last = nullptr;
  const Clock* clock = nullptr;  // of the process
  EventQueue* events = nullptr;
  History* history = nullptr;
};

class SimPsServer {
 public:
  explicit SimPsServer(const SimPsServerOptions& options);
  // Calls that wait are answered.
  ~SimPsServer();

  // Its process dies: calls that wait end with UNAVAILABLE.
  void Kill();
  bool is_alive() const { return is_alive_; }

  const PsServerId& id() const { return id_; }
  const std::string& address() const { return address_; }
  ps::Shard& shard() { return shard_; }
  const ps::Shard& shard() const { return shard_; }
  // Of one that is alive.
  PsControl* control() { return control_.get(); }
  PsData* data() { return data_.get(); }
  // What a gRPC client makes of an answer.
  absl::Status AsClientSees(const absl::Status& status) const;

 private:
  const PsServerId id_;
  const std::string address_;
  bool is_alive_ = true;
  ps::Shard shard_;
  NodeTimer timer_;
  ps::CommandWatch watch_;
  // Each passes calls on to the one before it; a faulty one is null without a planted bug.
  std::unique_ptr<PsControl> local_control_, faulty_control_, control_;
  std::unique_ptr<PsData> local_data_, faulty_data_, data_;
};

}  // namespace lockstep::sim
