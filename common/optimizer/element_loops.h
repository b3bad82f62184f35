// Loops of the update rules over the elements of a variable's tensors, whole or row by row.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "common/base/check.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/element_math.h"
#include "common/tensor/half_width.h"
#include "common/tensor/non_temporal_copy.h"
#include "common/tensor/sum_of_terms.h"
#include "common/tensor/vector_loop.h"

namespace lockstep {

// Calls body.template operator()<float>() or <double>(). Other dtypes have no optimizer kernels.
template <typename Body>
void DispatchFloat(DType dtype, Body body) {
  if (dtype == DType::kFloat32) {
    body.template operator()<float>();
  } else {
    LOCKSTEP_CHECK(dtype == DType::kFloat64);
    body.template operator()<double>();
  }
}

// The same range of all tensors of an update. In an update of rows, old_value is value; gradient is
// null in rows that have none, and in an update of all elements, which may have several.
template <typename T>
struct Elements {
  static constexpr size_t kMaxSlots = 3;

  size_t count = 0;
  const T* old_value = nullptr;
  const T* gradient = nullptr;
  T* value = nullptr;
  std::array<T*, kMaxSlots> slots = {};
};

// Returns `count` elements from `begin` on, with their gradients.
template <typename T>
Elements<T> Stretch(const Elements<T>& of, size_t begin, size_t count) {
  Elements<T> stretch{count, of.old_value + begin, of.gradient + begin, of.value + begin};
  for (size_t i = 0; i < of.slots.size() && of.slots[i] != nullptr; ++i) {
    stretch.slots[i] = of.slots[i] + begin;
  }
  return stretch;
}

// Returns the elements of all tensors of an update except the gradients.
template <typename T>
Elements<T> ElementsOf(const Update& update, ElementRange range) {
  LOCKSTEP_CHECK(range.first % kRangeStep == 0);
  LOCKSTEP_CHECK(range.first + range.count <= static_cast<size_t>(update.new_value.num_elements()));
  Elements<T> elements{.count = range.count,
                       .old_value = update.old_value.as<T>().data() + range.first,
                       .value = update.new_value.as<T>().data() + range.first};
  LOCKSTEP_CHECK(update.slots.size() <= elements.slots.size());
  for (size_t i = 0; i < update.slots.size(); ++i) {
    elements.slots[i] = update.slots[i].as<T>().data() + range.first;
  }
  return elements;
}

inline ElementRange RangeOf(const Update& update) {
  const ElementRange all{0, static_cast<size_t>(update.new_value.num_elements())};
  return update.range.value_or(all);
}

// Elements of a block. It is small enough that the CPU reads for the next block while it finishes
// one, and that its results stay in the L1 cache.
inline constexpr size_t kBlock = 512;

// Calls use(mean), where mean(i) is the mean of element range.first + i. With few gradients it is
// computed element by element; otherwise it is read from `block`, which is filled first.
template <typename T, typename Use>
void WithMean(const Update& update, ElementRange range, T* block, Use use) {
  const size_t num_gradients = update.gradients.size();
  const size_t first = range.first - update.gradients_begin;  // in the gradients
  const bool are_as_wide = std::ranges::all_of(
      update.gradients, [](const TensorView& term) { return term.dtype == DTypeOf<T>(); });
  if (num_gradients == 1 && update.divisor == 1 && are_as_wide) {
    return use(SumOfTerms<T, 1>(update.gradients, first));
  }
  if constexpr (std::is_same_v<T, float>) {
    if (num_gradients > 1 && num_gradients <= kTermsAtATime && are_as_wide) {
      return WithSumOfTerms<T>(update.gradients, first, [&](auto sum) {
        if constexpr (decltype(sum)::kNumTerms > 1) {
          use([sum, divisor = static_cast<T>(update.divisor)](size_t i) {
            return sum(i) / divisor;
          });
        }
      });
    }
  }
  TakeMean(update, range, block);
  use(SumOfTerms<T, 1>(std::array<const T*, 1>{block}));
}

// Makes one pass over the gradients, the value and the slots. make(Elements) returns the rule's
// formula. It takes an element's index and the mean of its gradients, changes the slots and returns
// the new value.
template <typename T, typename MakeFormula>
void UpdateElements(const Update& update, MakeFormula make) {
  const ElementRange range = RangeOf(update);
  const size_t begin = update.gradients_begin;
  const auto all = static_cast<size_t>(update.new_value.num_elements());
  LOCKSTEP_CHECK(begin <= range.first);
  for (const TensorView& gradient : update.gradients) {
    const size_t end = begin + static_cast<size_t>(gradient.num_elements());
    const bool may_be_narrow = DTypeOf<T>() == DType::kFloat32;
    LOCKSTEP_CHECK(gradient.dtype == DTypeOf<T>() ||
                   (may_be_narrow && IsHalfWidth(gradient.dtype)));
    LOCKSTEP_CHECK(range.first + range.count <= end && end <= all);
  }
  const Elements<T> elements = ElementsOf<T>(update, range);
  const auto formula = make(elements);
  alignas(Tensor::kAlignment) std::array<T, kBlock> means;
  alignas(Tensor::kAlignment) std::array<T, kBlock> values;
  for (size_t done = 0; done < range.count; done += kBlock) {
    const size_t count = std::min(kBlock, range.count - done);
    T* const to = update.bypasses_caches ? values.data() : elements.value + done;
    WithMean<T>(update, {range.first + done, count}, means.data(), [&](auto mean) {
      ForEachElement(count,
                     [formula, mean, to, done](size_t i) { to[i] = formula(done + i, mean(i)); });
    });
    WriteNarrow(update, {range.first + done, count}, to);
    if (update.bypasses_caches) NonTemporalCopy(elements.value + done, to, count * sizeof(T));
  }
  if (update.bypasses_caches) FlushStreams();
}

// Does the same for the elements of a row, which have one gradient.
template <typename T, typename Formula>
void UpdateRow(const Elements<T>& row, Formula formula) {
  ForEachElement(row.count,
                 [formula, g = row.gradient, w = row.value](size_t i) { w[i] = formula(i, g[i]); });
}

// Calls touched(Elements) for each gradient row and untouched(Elements) for the rows between them,
// in the order of memory.
template <typename T, typename Touched, typename Untouched>
void ForAllRows(const RowUpdate& update, bool may_repeat, Touched touched, Untouched untouched) {
  const int64_t num_rows = update.value.shape.dims()[0];
  const size_t width = num_rows == 0 ? 0 : update.value.num_elements() / num_rows;
  const T* gradient = update.gradient.as<T>().data();
  T* const value = update.value.as<T>().data();
  std::array<T*, Elements<T>::kMaxSlots> slots = {};
  LOCKSTEP_CHECK(update.gradient.num_elements() == update.rows.size() * width);
  LOCKSTEP_CHECK(update.slots.size() <= slots.size());
  for (size_t i = 0; i < update.slots.size(); ++i) slots[i] = update.slots[i].as<T>().data();

  const auto range = [&](int64_t begin, int64_t end, const T* of_gradient) {
    const size_t offset = begin * width;
    Elements<T> elements{.count = (end - begin) * width,
                         .old_value = value + offset,
                         .gradient = of_gradient,
                         .value = value + offset};
    for (size_t i = 0; i < update.slots.size(); ++i) elements.slots[i] = slots[i] + offset;
    return elements;
  };
  int64_t next = 0;  // first row that has not been visited
  for (const int64_t row : update.rows) {
    LOCKSTEP_CHECK(row < num_rows && row >= next - (may_repeat && next > 0 ? 1 : 0));
    if (row > next) untouched(range(next, row, nullptr));
    touched(range(row, row + 1, gradient));
    gradient += width;
    next = row + 1;
  }
  if (next < num_rows) untouched(range(next, num_rows, nullptr));
}

// Calls touched(Elements) for each gradient row, which may come once.
template <typename T, typename Touched>
void ForNamedRows(const RowUpdate& update, Touched touched) {
  ForAllRows<T>(update, /*may_repeat=*/false, touched, [](const Elements<T>&) {});
}

}  // namespace lockstep
