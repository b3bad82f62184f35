// Writes IDX files (idx.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace lockstep {

// A file of float32 records: `values` are all of them, row-major. Errors as WriteFileAtomically.
absl::Status WriteIdx(const std::string& path, const Shape& record, absl::Span<const float> values);

}  // namespace lockstep
