// Steps of a job whose learning rate is 0.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// One warning, with its remedy, if a schedule has decayed to 0 before the last of the steps from
// `start` to `end`. Empty: none has. The job is complete. Pure.
std::string ZeroRateWarning(const JobDef& job, GlobalStep start, GlobalStep end);

}  // namespace lockstep::chief
