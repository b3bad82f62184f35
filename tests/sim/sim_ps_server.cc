#include "tests/sim/sim_ps_server.h"

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/lost_variables.h"
#include "tests/sim/planted_copy_bug.h"
#include "tests/support/in_process_ps.h"

namespace lockstep::sim {

SimPsServer::SimPsServer(const SimPsServerOptions& options)
    : id_(options.id),
      address_(options.address),
      shard_({.make_copy_target = options.make_copy_target, .clock = options.clock}),
      timer_(options.node, options.events),
      watch_(options.clock) {
  const bool has_step = id_.shard == kStepShard;
  if (has_step) watch_.Start(&timer_);
  local_control_ = MakeInProcessControl(&shard_, options.process, has_step ? &watch_ : nullptr);
  local_data_ = MakeInProcessData(&shard_, /*owns_payloads=*/true);
  PsControl* control = local_control_.get();
  PsData* data = local_data_.get();
  if (options.planted != PlantedBug::kNone) {
    faulty_control_ = MakeFaultyControl(control, options.planted, options.last);
    faulty_data_ = MakeFaultyCopy(data, options.planted);
    if (faulty_data_ == nullptr) {
      faulty_data_ = MakeFaultyData(data, options.planted, options.last);
    }
    control = faulty_control_.get();
    data = faulty_data_.get();
  }
  control_ = MakeRecordedControl(control, id_, options.history);
  data_ = MakeRecorded(data, id_, options.history);
}

SimPsServer::~SimPsServer() {
  is_alive_ = false;
  watch_.Stop();
  local_control_.reset();
  local_data_.reset();
  shard_.Stop();
}

void SimPsServer::Kill() {
  is_alive_ = false;
  watch_.Stop();
  shard_.Stop();
}

absl::Status SimPsServer::AsClientSees(const absl::Status& status) const {
  if (!is_alive_) return absl::UnavailableError("Connection reset by peer");
  if (!IsNoVariables(status)) return status;
  return LostVariablesError(absl::StrCat("ps ", id_.shard));
}

}  // namespace lockstep::sim
