#include "common/tensor/packed_rows.h"

#include "common/base/check.h"
#include "common/base/checked.h"

namespace lockstep {

uint64_t RowBytes(DType dtype, const Shape& variable) {
  uint64_t bytes = SizeOf(dtype);
  for (int axis = 1; axis < variable.rank(); ++axis) bytes *= variable.dim(axis);
  return bytes;
}

std::optional<uint64_t> PackedBytes(int64_t slices, uint64_t row_bytes) {
  if (slices < 0) return std::nullopt;
  const auto bytes = CheckedMultiply(slices, static_cast<int64_t>(kRowIndexBytes + row_bytes));
  return bytes.has_value() ? std::optional<uint64_t>(*bytes) : std::nullopt;
}

IndexedSlicesView ViewPacked(std::span<const std::byte> bytes, DType dtype, const Shape& variable) {
  const uint64_t slice_bytes = kRowIndexBytes + RowBytes(dtype, variable);
  LOCKSTEP_CHECK(bytes.size() % slice_bytes == 0);
  const size_t slices = bytes.size() / slice_bytes;
  return {{reinterpret_cast<const int64_t*>(bytes.data()), slices},
          {dtype, WithRows(variable, static_cast<int64_t>(slices)),
           bytes.data() + slices * kRowIndexBytes}};
}

}  // namespace lockstep
