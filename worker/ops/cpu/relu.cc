#include "worker/ops/cpu/relu.h"

#include "worker/ops/activation_element.h"
#include "worker/ops/cpu/parallel.h"

namespace lockstep::worker::cpu {

void Relu(std::span<const float> x, std::span<float> y) {
  ParallelFor(static_cast<int64_t>(x.size()), kElementGrain, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = worker::Relu(x[i]);
  });
}

}  // namespace lockstep::worker::cpu
