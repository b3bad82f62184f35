#include "ps/step/dense_update.h"

#include <algorithm>
#include <utility>

#include "common/tensor/element_math.h"
#include "ps/step/take_gradients.h"

namespace lockstep::ps {
namespace {

static_assert(DenseUpdate::kRangeBytes / sizeof(double) % kRangeStep == 0);

// Beyond this, a value has left the caches before anybody reads it.
constexpr size_t kCachedBytes = size_t{16} << 20;

}  // namespace

DenseUpdate::DenseUpdate(const Closing& closing, const UpdateRule& rule,
                         absl::Span<const float> scalars, Variable* variable,
                         DenseAccumulator* accumulator)
    : closing_(&closing),
      rule_(&rule),
      scalars_(scalars),
      variable_(variable),
      taken_(TakeGradients(
          closing, [](const HeldGradient& held) { return held.value.view(); }, accumulator)),
      next_(variable->TakeBuffer()),
      narrow_(variable->TakeNarrowBuffer()) {}

size_t DenseUpdate::num_ranges() const {
  return std::max<size_t>(1, (num_bytes() + kRangeBytes - 1) / kRangeBytes);
}

void DenseUpdate::Make(size_t number) {
  const size_t element_bytes = SizeOf(variable_->dtype());
  const size_t begin = number * kRangeBytes / element_bytes;
  const ElementRange range{
      begin, std::min(kRangeBytes / element_bytes, num_bytes() / element_bytes - begin)};
  const Update update{
      .old_value = variable_->newest()->view(),
      .gradients = taken_.gradients,
      .divisor = taken_.divisor,
      .new_value = next_->tensor.view(),
      .slots = variable_->slots(),
      .learning_rate = closing_->learning_rate,
      .scalars = scalars_,
      .version = closing_->step.next().value(),
      .range = range,
      .bypasses_caches = num_bytes() > kCachedBytes,
      .narrow_value = narrow_ == nullptr ? MutableTensorView() : narrow_->tensor.view()};
  if (variable_->trainable()) {
    rule_->Apply(update);
  } else {
    std::byte* const mean = static_cast<std::byte*>(next_->tensor.data()) + begin * element_bytes;
    TakeMean(update, range, mean);
    WriteNarrow(update, range, mean);
  }
}

NextValue DenseUpdate::Finish() {
  return {variable_->Share(std::move(next_)), variable_->ShareNarrow(std::move(narrow_))};
}

}  // namespace lockstep::ps
