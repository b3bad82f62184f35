// The job's learning rate as a function of the step.
#pragma once

#include "common/optimizer/schedule.h"
#include "proto/job.pb.h"

namespace lockstep {

// `rate` has passed the checks of LoadJob.
LearningRateSchedule ToSchedule(const LearningRate& rate);

}  // namespace lockstep
