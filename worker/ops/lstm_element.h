// One unit of a long short-term memory at one step, the same on every device. lstm.h has the
// formulas.
#pragma once

#include "common/base/host_device.h"
#include "worker/ops/sigmoid.h"

namespace lockstep::worker {

// Sums before the activations, activations, or gradients of the sums.
struct LstmGates {
  float i, f, c, o;
};

// `input`, `state`: the products with the input, bias included, and with the state.
LOCKSTEP_HOST_DEVICE inline LstmGates ActivateLstm(const LstmGates& input, const LstmGates& state) {
  return {VectorSigmoid(input.i + state.i), VectorSigmoid(input.f + state.f),
          VectorTanh(input.c + state.c), VectorSigmoid(input.o + state.o)};
}

// c after the step, and h.
LOCKSTEP_HOST_DEVICE inline float LstmCell(const LstmGates& gates, float before) {
  return gates.f * before + gates.i * gates.c;
}
LOCKSTEP_HOST_DEVICE inline float LstmHidden(const LstmGates& gates, float cell) {
  return gates.o * VectorTanh(cell);
}

struct LstmGradients {
  LstmGates sums;
  float before;  // of c before the step
};

// `gates`: activations; `before`, `cell`: c before and after the step; `dh`, `dc`: gradients of h
// and c after it.
LOCKSTEP_HOST_DEVICE inline LstmGradients DifferentiateLstm(const LstmGates& gates, float before,
                                                            float cell, float dh, float dc) {
  const float squashed = VectorTanh(cell);
  const float d = dc + dh * gates.o * (1 - squashed * squashed);
  return {{d * gates.c * gates.i * (1 - gates.i), d * before * gates.f * (1 - gates.f),
           d * gates.i * (1 - gates.c * gates.c), dh * squashed * gates.o * (1 - gates.o)},
          d * gates.f};
}

}  // namespace lockstep::worker
