// How the gradients of a worker's towers become one where the towers are on several GPUs.
#pragma once

#include <memory>
#include <string>

#include "proto/job.pb.h"
#include "worker/backend/backend.h"
#include "worker/collective/choose_the_best.h"
#include "worker/device/communicator.h"
#include "worker/device/tower_devices.h"

namespace lockstep::worker {

// What choose_the_best says of these devices and their links. Where the driver does not tell of a
// link there is none, and a warning says why.
CrossTowerOpsChoice ChooseTheBestFor(const TowerDevices& devices);

struct GpuReduction {
  // Of the devices; they outlive it. Null: the first one reduces copies of the others' gradients,
  // in the order of the towers.
  std::unique_ptr<Communicator> communicator;
  // For log and status: what is done, and why. Empty: nothing is reduced over GPUs.
  std::string description;
};

// What the job says, or what suits the devices, which `backend`, whose ops outlive it, has made.
// What cannot be used, such as NCCL that is missing, is no error: a line in the log says so. So it
// does where the job says how to reduce, and there is one device.
GpuReduction MakeGpuReduction(const JobDef& job, const TowerDevices& devices,
                              const Backend& backend);

}  // namespace lockstep::worker
