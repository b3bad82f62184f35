// What one tower gives when the gradients of a table are gathered: the number of its rows, their
// indices, then their slices. A share has room for the most rows that a step can have, so that all
// shares of a table have one size, whatever the batches read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/indexed_slices.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

// Describes the shares of one table; a value. Owns no memory: that of a share is aligned to 8
// bytes, and beyond its rows it has any contents.
class RowShare {
 public:
  RowShare(const WholeVariable& table, int64_t most_rows);

  // Of the table's dtype, as which a share is copied.
  DType dtype() const { return dtype_; }
  int64_t num_elements() const { return num_bytes_ / static_cast<int64_t>(SizeOf(dtype_)); }
  int64_t num_bytes() const { return num_bytes_; }

  // Begins a gradient of these rows, ascending, each once, at most as many as there is room for
  // (CHECK). Returns where their slices are to be written.
  MutableTensorView Begin(absl::Span<const int64_t> rows, std::byte* share) const;
  // What a participant has sent: INVALID_ARGUMENT for more rows than there is room for, or rows
  // that are not the table's, ascending, each once.
  absl::Status Check(const std::byte* share) const;
  // The gradient in a share that Check accepts.
  IndexedSlicesView View(const std::byte* share) const;

 private:
  const DType dtype_;
  const Shape shape_;  // of the table
  const int64_t most_rows_;
  const int64_t values_at_;  // byte
  const int64_t num_bytes_;
};

// One gradient of the shares in `gathered`, each row once, ascending: its slices are added in the
// order of the shares, and for a mean divided by the number of shares, also of those without the
// row.
IndexedSlices MergeShares(const RowShare& share, const TensorView& gathered, bool average);

}  // namespace lockstep::worker
