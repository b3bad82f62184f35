// What an accumulator makes of the gradients that close a variable.
#pragma once

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "ps/step/step_machine.h"

namespace lockstep::ps {

// Lets the gradients through the accumulator in their order, `view`(held) of each, and takes their
// mean. The step machine has judged: all count.
template <typename Accumulator, typename View>
auto TakeGradients(const TakenGradients& taken, View view, Accumulator* accumulator) {
  LOCKSTEP_CHECK(accumulator->global_step() == taken.step);
  for (const HeldGradient& held : taken.gradients) {
    // Asynchronous gradients count whatever their stamp.
    const auto applied = accumulator->Apply(std::max(held.local_step, taken.step), view(held));
    LOCKSTEP_CHECK(applied.ok() && applied->accepted);
  }
  auto means = accumulator->Take(TakeId(), static_cast<int>(taken.required));
  LOCKSTEP_CHECK(means.ok() && means->size() == 1);
  return *std::move(means->front().gradient);
}

}  // namespace lockstep::ps
