// What the update rules loop over: the elements of a variable's tensors, whole or row by row.
#pragma once

#include <array>
#include <cstddef>

#include "common/base/check.h"
#include "common/optimizer/update_rule.h"

namespace lockstep {

// body.template operator()<float>() or <double>(). Other dtypes have no optimizer kernels.
template <typename Body>
void DispatchFloat(DType dtype, Body body) {
  if (dtype == DType::kFloat32) {
    body.template operator()<float>();
  } else {
    LOCKSTEP_CHECK(dtype == DType::kFloat64);
    body.template operator()<double>();
  }
}

// body(i) for each element. No element may depend on another: the compiler is told so, because it
// cannot know that a new value lies either beside the old one or exactly upon it.
template <typename Body>
inline void ForEachElement(size_t count, Body body) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) body(i);
}

// The same range of all tensors of an update. In an update of rows, old_value is value, and
// gradient is null in rows that have none.
template <typename T>
struct Elements {
  static constexpr size_t kMaxSlots = 3;

  size_t count = 0;
  const T* old_value = nullptr;
  const T* gradient = nullptr;
  T* value = nullptr;
  std::array<T*, kMaxSlots> slots = {};
};

// `count` elements from `begin` on.
template <typename T>
Elements<T> Stretch(const Elements<T>& of, size_t begin, size_t count) {
  Elements<T> stretch{count, of.old_value + begin, of.gradient + begin, of.value + begin};
  for (size_t i = 0; i < of.slots.size() && of.slots[i] != nullptr; ++i) {
    stretch.slots[i] = of.slots[i] + begin;
  }
  return stretch;
}

template <typename T>
Elements<T> AllElements(const Update& update) {
  Elements<T> all{static_cast<size_t>(update.new_value.num_elements()),
                  update.old_value.as<T>().data(), update.gradient.as<T>().data(),
                  update.new_value.as<T>().data()};
  LOCKSTEP_CHECK(update.slots.size() <= all.slots.size());
  for (size_t i = 0; i < update.slots.size(); ++i) all.slots[i] = update.slots[i].as<T>().data();
  return all;
}

// touched(Elements) for each gradient row, untouched(Elements) for what lies between them, in the
// order of memory.
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
    Elements<T> elements{(end - begin) * width, value + offset, of_gradient, value + offset};
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

// touched(Elements) for each gradient row, which may come once.
template <typename T, typename Touched>
void ForNamedRows(const RowUpdate& update, Touched touched) {
  ForAllRows<T>(update, /*may_repeat=*/false, touched, [](const Elements<T>&) {});
}

}  // namespace lockstep
