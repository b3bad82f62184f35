// First values of variables. Element i of a variable depends on (seed, name, i) alone, of an
// orthogonal one on the shape too: the same on every ps, whatever the number of shards.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"
#include "proto/tensor.pb.h"

namespace lockstep {

// Fills `value`, whose shape is that of the whole variable (fans are computed from it). float32 or
// float64. An Initializer without a kind means zeros.
void FillInitialValue(const Initializer& initializer, uint64_t seed, absl::string_view name,
                      MutableTensorView value);

// Fills `value` with the rows from `first_row` on of the value that FillInitialValue gives a
// variable of shape `whole`. Row extents agree, and the rows are there (CHECK).
void FillInitialRows(const Initializer& initializer, uint64_t seed, absl::string_view name,
                     const Shape& whole, int64_t first_row, MutableTensorView value);

}  // namespace lockstep
