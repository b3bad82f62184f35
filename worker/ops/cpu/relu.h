// max(0, x), where a NaN stays one. oneDNN's own turns a NaN into 0: a model that has diverged
// would seem to learn.
#pragma once

#include <span>

namespace lockstep::worker::cpu {

// In one pass over both, on the threads of the current device. `y` may be `x`.
void Relu(std::span<const float> x, std::span<float> y);

// Behind another op.
inline void ApplyRelu(std::span<float> values) { Relu(values, values); }

}  // namespace lockstep::worker::cpu
