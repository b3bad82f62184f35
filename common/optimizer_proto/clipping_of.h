#pragma once

#include "common/optimizer/clipping.h"
#include "proto/job.pb.h"

namespace lockstep {

// The clipping that a job's optimizer names; kNone where it names none.
ClippingRule ClippingOf(const Clipping& clipping);

}  // namespace lockstep
