#include "common/optimizer/update_rule.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"

namespace lockstep {

void TakeMean(const Update& update, ElementRange range, void* mean) {
  range.first -= update.gradients_begin;
  const auto is_narrow = [](const TensorView& gradient) { return IsHalfWidth(gradient.dtype); };
  if (std::ranges::none_of(update.gradients, is_narrow)) {
    return SumAndDivide(update.gradients, update.divisor, range, mean);
  }
  LOCKSTEP_CHECK(update.new_value.dtype == DType::kFloat32);
  SumWidenedAndDivide(update.gradients, update.divisor, range, static_cast<float*>(mean));
}

void WriteNarrow(const Update& update, ElementRange range, const void* values) {
  const MutableTensorView& narrow = update.narrow_value;
  if (narrow.data == nullptr) return;
  LOCKSTEP_CHECK(update.new_value.dtype == DType::kFloat32);
  LOCKSTEP_CHECK(range.first + range.count <= static_cast<size_t>(narrow.num_elements()));
  Narrow({static_cast<const float*>(values), range.count}, narrow.dtype,
         static_cast<std::byte*>(narrow.data) + range.first * SizeOf(narrow.dtype));
}

std::vector<float> InitialScalars(const UpdateRule& rule) {
  std::vector<float> values;
  for (const ScalarSpec& scalar : rule.scalars()) values.push_back(scalar.initial_value);
  return values;
}

}  // namespace lockstep
