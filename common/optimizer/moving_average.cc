#include "common/optimizer/moving_average.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

// Elements that are averaged while the rule's result is still in the nearest cache.
constexpr size_t kAveragedAtATime = 2048;
static_assert(kAveragedAtATime % kRangeStep == 0);

void AverageRange(float decay, TensorView value, ElementRange range, MutableTensorView average) {
  DispatchFloat(value.dtype, [&]<typename T>() {
    const T share = 1.0f - decay;  // rounded to float32 for every dtype, as in TensorFlow
    ForEachElement(range.count, [share, w = value.as<T>().data() + range.first,
                                 shadow = average.as<T>().data() + range.first](size_t i) {
      shadow[i] -= (shadow[i] - w[i]) * share;
    });
  });
}

class Averaged final : public UpdateRule {
 public:
  Averaged(std::unique_ptr<const UpdateRule> rule, const MovingAverageOptions& options)
      : rule_(std::move(rule)),
        options_(options),
        slots_(rule_->slots().begin(), rule_->slots().end()) {
    slots_.push_back({.name = kAverageSlot, .starts_as_variable = true});
  }

  absl::string_view name() const override { return rule_->name(); }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  absl::Span<const ScalarSpec> scalars() const override { return rule_->scalars(); }
  bool TouchesOnlyRows() const override { return false; }
  bool TakesRepeatedRows() const override { return rule_->TakesRepeatedRows(); }

  void Apply(const Update& update) const override {
    const float decay = AverageDecay(options_, GlobalStep(update.version));
    Update inner = update;
    inner.slots.remove_suffix(1);
    inner.bypasses_caches = false;
    const ElementRange range = RangeOf(update);
    for (size_t done = 0; done < range.count; done += kAveragedAtATime) {
      inner.range = {range.first + done, std::min(kAveragedAtATime, range.count - done)};
      rule_->Apply(inner);
      AverageRange(decay, update.new_value, *inner.range, update.slots.back());
    }
  }

  void ApplyRows(const RowUpdate& update) const override {
    RowUpdate inner = update;
    inner.slots.remove_suffix(1);
    rule_->ApplyRows(inner);
    UpdateAverage(AverageDecay(options_, GlobalStep(update.version)), update.value,
                  update.slots.back());
  }

  void AdvanceScalars(absl::Span<float> scalars) const override { rule_->AdvanceScalars(scalars); }

 private:
  const std::unique_ptr<const UpdateRule> rule_;
  const MovingAverageOptions options_;
  std::vector<SlotSpec> slots_;
};

}  // namespace

float AverageDecay(const MovingAverageOptions& options, GlobalStep global_step) {
  if (!options.num_updates) return options.decay;
  const float n = static_cast<float>(global_step.value());
  return std::min(options.decay, (1.0f + n) / (10.0f + n));
}

void UpdateAverage(float decay, TensorView value, MutableTensorView average) {
  LOCKSTEP_CHECK(value.num_elements() == average.num_elements());
  AverageRange(decay, value, {0, static_cast<size_t>(value.num_elements())}, average);
}

std::unique_ptr<const UpdateRule> MakeAveraged(std::unique_ptr<const UpdateRule> rule,
                                               const MovingAverageOptions& options) {
  return std::make_unique<Averaged>(std::move(rule), options);
}

}  // namespace lockstep
