// The precision that a job asks for.
#pragma once

#include "proto/job.pb.h"
#include "worker/ops/precision.h"

namespace lockstep::worker {

inline Precision PrecisionOf(const JobDef& job) {
  switch (job.precision()) {
    case JobDef::TF32:
      return Precision::kTf32;
    case JobDef::BFLOAT16:
      return Precision::kBfloat16;
    default:
      return Precision::kFloat32;
  }
}

}  // namespace lockstep::worker
