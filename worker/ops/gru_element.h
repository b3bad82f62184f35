// One unit of a gated recurrent unit at one step, the same on every device. gru.h has the formulas.
#pragma once

#include "common/base/host_device.h"
#include "worker/ops/sigmoid.h"

namespace lockstep::worker {

// Sums before the activations, activations, or gradients of the sums. h of activations: the
// candidate n.
struct GruGates {
  float z, r, h;
};

// `input`, `state`: the products with the input and with the state, each with its bias.
LOCKSTEP_HOST_DEVICE inline GruGates ActivateGru(const GruGates& input, const GruGates& state) {
  const float z = VectorSigmoid(input.z + state.z);
  const float r = VectorSigmoid(input.r + state.r);
  return {z, r, VectorTanh(input.h + r * state.h)};
}

// h after the step.
LOCKSTEP_HOST_DEVICE inline float GruHidden(const GruGates& gates, float before) {
  return gates.z * before + (1 - gates.z) * gates.h;
}

struct GruGradients {
  GruGates input;  // of the input's product; z and r are also those of the state's
  float state_h;   // of the state's product
  float before;    // of h before the step, beside the state's product
};

// `gates`: activations; `state_h`: of the state's product; `before`: h before the step; `dh`: the
// gradient of h after it.
LOCKSTEP_HOST_DEVICE inline GruGradients DifferentiateGru(const GruGates& gates, float state_h,
                                                          float before, float dh) {
  const float dz = dh * (before - gates.h) * gates.z * (1 - gates.z);
  const float dn = dh * (1 - gates.z) * (1 - gates.h * gates.h);
  const float dr = dn * state_h * gates.r * (1 - gates.r);
  return {{dz, dr, dn}, dn * gates.r, dh * gates.z};
}

}  // namespace lockstep::worker
