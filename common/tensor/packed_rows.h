// A sparse gradient as one string of bytes: the row index of each slice as an int64, then the
// slices' values, nothing between them. That is how it travels and how it is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/tensor/indexed_slices.h"

namespace lockstep {

inline constexpr uint64_t kRowIndexBytes = sizeof(int64_t);

// Bytes of one row of a variable.
uint64_t RowBytes(DType dtype, const Shape& variable);

// nullopt: a negative number of slices, or more bytes than are counted.
std::optional<uint64_t> PackedBytes(int64_t slices, uint64_t row_bytes);

// Looks at `bytes`, aligned to 8, a whole gradient of a variable of this dtype and shape (CHECK).
IndexedSlicesView ViewPacked(std::span<const std::byte> bytes, DType dtype, const Shape& variable);

}  // namespace lockstep
