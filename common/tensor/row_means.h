// The mean of several sparse gradients, row by row and straight from where they are: TensorFlow's,
// which divides each row by the number of gradients that touched it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep {

// Does not own the gradients, which stay unchanged for as long as it is used. Constant: ranges may
// be taken by several threads.
class RowMeans {
 public:
  // nullopt unless the rows of every gradient ascend, each once. At least one gradient, all of one
  // dtype, float32 or float64, and one width (CHECK).
  static std::optional<RowMeans> Of(absl::Span<const IndexedSlicesView> gradients);

  // Those that any gradient names, ascending.
  absl::Span<const int64_t> rows() const { return rows_; }
  // Writes the means of rows()[begin], ..., rows()[end - 1], one after the other: each row's slices
  // are summed in the gradients' order.
  void Take(size_t begin, size_t end, void* means) const;

 private:
  RowMeans(DType dtype, size_t width) : dtype_(dtype), width_(width) {}
  void Merge(absl::Span<const IndexedSlicesView> gradients);
  template <typename T>
  void TakeAs(size_t begin, size_t end, T* to) const;

  DType dtype_;
  size_t width_;
  std::vector<int64_t> rows_;
  std::vector<size_t> ends_;         // of each row's slices in slices_
  std::vector<const void*> slices_;  // row by row
};

}  // namespace lockstep
