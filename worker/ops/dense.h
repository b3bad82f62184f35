// y = x W + b. Variables: kernel [inputs, units], bias [units].
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

struct DenseOptions : OpOptions {
  static constexpr absl::string_view kKind = "dense";
  int64_t inputs = 1;
  int64_t units = 1;
  bool bias = true;
  bool relu = false;  // y = max(0, x W + b)
};

}  // namespace lockstep::worker
