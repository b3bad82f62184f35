// Hears of writes to a tensor that changes in place before they happen, so that a version which is
// kept can copy the bytes first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/update/byte_ranges.h"

namespace lockstep {

// Called from any threads at the same time, which write different bytes. The writes begin after the
// call has returned.
class WriteObserver {
 public:
  virtual ~WriteObserver() = default;

  // `bytes` is a range of the tensor.
  virtual void BeforeWrite(ByteRange bytes) = 0;
  // The same for rows of `row_bytes` bytes each.
  virtual void BeforeWriteRows(absl::Span<const int64_t> rows, size_t row_bytes) = 0;
};

}  // namespace lockstep
