// Joins tensors along their last dimension.
#pragma once

#include <vector>

#include "worker/ops/op.h"

namespace lockstep::worker {

struct ConcatenateOptions : OpOptions {
  static constexpr absl::string_view kKind = "concatenate";
  int64_t positions = 1;          // per example: all dimensions but the last
  std::vector<int64_t> channels;  // last dimension of each input
};

}  // namespace lockstep::worker
