// Functions of one element.
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

enum class ActivationKind { kRelu, kTanh, kSigmoid };

struct ActivationOptions : OpOptions {
  static constexpr absl::string_view kKind = "activation";
  ActivationKind kind = ActivationKind::kRelu;
  int64_t elements = 1;  // per example
};

}  // namespace lockstep::worker
