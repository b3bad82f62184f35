// The sum of two or more tensors of one shape. The output may be one of the inputs.
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

struct AddOptions : OpOptions {
  static constexpr absl::string_view kKind = "add";
  int64_t elements = 1;  // per example
};

}  // namespace lockstep::worker
