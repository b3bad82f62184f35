#include "common/model/window.h"

#include <algorithm>

namespace lockstep {

WindowPlan PlanWindow(int64_t input, int64_t window, int64_t stride, Padding padding) {
  if (padding == VALID) {
    return {window > input ? 0 : (input - window) / stride + 1, 0, 0};
  }
  WindowPlan plan;
  plan.output = (input - 1) / stride + 1;
  const int64_t total = std::max<int64_t>(0, (plan.output - 1) * stride + window - input);
  plan.pad_before = total / 2;
  plan.pad_after = total - plan.pad_before;
  return plan;
}

}  // namespace lockstep
