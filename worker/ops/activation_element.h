// Activations of one element, where sigmoid.h does not have them. Each derivative follows
// from the result, so the input need not be kept.
#pragma once

#include "common/base/host_device.h"

namespace lockstep::worker {

// A NaN stays one.
LOCKSTEP_HOST_DEVICE inline float Relu(float x) { return x < 0 ? 0.0f : x; }

// d loss / d x, of y = f(x) and d loss / d y.
LOCKSTEP_HOST_DEVICE inline float ReluGradient(float y, float gradient) {
  return y > 0 ? gradient : 0.0f;
}
LOCKSTEP_HOST_DEVICE inline float TanhGradient(float y, float gradient) {
  return gradient * (1.0f - y) * (1.0f + y);
}
LOCKSTEP_HOST_DEVICE inline float SigmoidGradient(float y, float gradient) {
  return gradient * y * (1.0f - y);
}

}  // namespace lockstep::worker
