// Some of the elements along the last dimension.
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

struct ColumnsOptions : OpOptions {
  static constexpr absl::string_view kKind = "columns";
  int64_t positions = 1;  // per example: all dimensions but the last
  int64_t channels = 1;   // last dimension of the input
  int64_t first = 0;      // columns [first, first + count)
  int64_t count = 1;
};

}  // namespace lockstep::worker
