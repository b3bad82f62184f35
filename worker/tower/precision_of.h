// The precision that a job asks for.
#pragma once

#include "proto/job.pb.h"
#include "worker/ops/precision.h"

namespace lockstep::worker {

inline Precision PrecisionOf(const JobDef& job) {
  return job.precision() == JobDef::TF32 ? Precision::kTf32 : Precision::kFloat32;
}

}  // namespace lockstep::worker
