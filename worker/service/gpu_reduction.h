// GpuReduction merges the gradients of a worker's towers that are on several GPUs.
#pragma once

#include <memory>
#include <string>

#include "proto/job.pb.h"
#include "worker/backend/backend.h"
#include "worker/collective/choose_the_best.h"
#include "worker/device/communicator.h"
#include "worker/device/tower_devices.h"

namespace lockstep::worker {

// Returns the choice of choose_the_best for these devices and their links. If the driver fails to
// tell about a link, the link counts as absent, and a warning says why.
CrossTowerOpsChoice ChooseTheBestFor(const TowerDevices& devices);

struct GpuReduction {
  // Of the devices; they outlive it. Null: the first one reduces copies of the others' gradients,
  // in the order of the towers.
  std::unique_ptr<Communicator> communicator;
  // For log and status: the method, and the reason. Empty: nothing is reduced over GPUs.
  std::string description;
};

// Makes the reduction that the job names, or else the best one for the devices. `backend` has made
// the devices; its ops outlive the reduction. A method that cannot be used, such as missing NCCL,
// is no error but is logged. A method that the job names for a single device is logged too.
GpuReduction MakeGpuReduction(const JobDef& job, const TowerDevices& devices,
                              const Backend& backend);

}  // namespace lockstep::worker
