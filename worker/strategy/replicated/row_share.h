// RowShare describes one tower's share when the gradients of a table are gathered. A share has the
// number of its rows, their indices, then their slices. It has room for the most rows that a step
// can have, so that all shares of a table have one size, whatever the batches read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/indexed_slices.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Describes the shares of one table; a value. Owns no memory. The memory of a share is aligned to 8
// bytes and has any contents beyond its rows.
class RowShare {
 public:
  RowShare(const WholeVariable& table, int64_t most_rows);

  // The table's dtype. A share is copied as elements of it.
  DType dtype() const { return dtype_; }
  int64_t num_elements() const { return num_bytes_ / static_cast<int64_t>(SizeOf(dtype_)); }
  int64_t num_bytes() const { return num_bytes_; }

  // Begins a gradient of these rows, ascending, each once, at most as many as there is room for
  // (CHECK). Returns the view for the caller to write their slices to.
  MutableTensorView Begin(absl::Span<const int64_t> rows, std::byte* share) const;
  // Checks a share that a participant has sent. INVALID_ARGUMENT: more rows than there is room for,
  // or rows that are not the table's, ascending, each once.
  absl::Status Check(const std::byte* share) const;
  // Returns the gradient in a share that Check accepts.
  IndexedSlicesView View(const std::byte* share) const;

 private:
  const DType dtype_;
  const Shape shape_;  // of the table
  const int64_t most_rows_;
  const int64_t values_at_;  // byte
  const int64_t num_bytes_;
};

// Merges the shares in `gathered` into one gradient with each row once, ascending. The slices of a
// row are added in the order of the shares. A mean divides by the number of all shares, also of
// those without the row.
IndexedSlices MergeShares(const RowShare& share, const TensorView& gathered, bool average);

}  // namespace lockstep::worker
