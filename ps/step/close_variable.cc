#include "ps/step/close_variable.h"

#include <utility>

#include "common/base/check.h"

namespace lockstep::ps {
namespace {

Tensor Mean(const Closing& closing, DenseAccumulator* accumulator) {
  LOCKSTEP_CHECK(accumulator->global_step() == closing.step);
  for (const HeldGradient& gradient : closing.gradients) {
    const auto applied = accumulator->Apply(gradient.local_step, gradient.value.view());
    LOCKSTEP_CHECK(applied.ok() && applied->accepted);
  }
  auto taken = accumulator->Take(TakeId(), static_cast<int>(closing.required));
  LOCKSTEP_CHECK(taken.ok() && taken->size() == 1);
  return *std::move(taken->front().gradient);
}

}  // namespace

std::shared_ptr<const Tensor> ComputeNextValue(const Closing& closing, const UpdateRule& rule,
                                               absl::Span<const float> scalars, Variable* variable,
                                               DenseAccumulator* accumulator) {
  Tensor mean = Mean(closing, accumulator);
  std::unique_ptr<Tensor> next = variable->TakeBuffer();
  if (variable->trainable()) {
    rule.Apply({variable->newest()->view(), mean.view(), next->view(), variable->slots(),
                closing.learning_rate, scalars});
  } else {
    Copy(mean.view(), next->view());
  }
  accumulator->Recycle(std::move(mean));
  return variable->Share(std::move(next));
}

}  // namespace lockstep::ps
