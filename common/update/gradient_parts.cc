#include "common/update/gradient_parts.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tensor/segmented_reader.h"

namespace lockstep {

GradientParts::GradientParts(DType dtype, const Shape& shape, size_t range_elements)
    : dtype_(dtype),
      shape_(shape),
      num_bytes_(static_cast<uint64_t>(shape.num_elements()) * SizeOf(dtype)),
      range_bytes_(range_elements * SizeOf(dtype)),
      ranges_((num_bytes_ + range_bytes_ - 1) / range_bytes_) {}

uint64_t GradientParts::BytesOf(size_t range) const {
  return std::min(range_bytes_, num_bytes_ - range * range_bytes_);
}

void GradientParts::Add(uint64_t offset, uint64_t size,
                        const std::shared_ptr<const Payload>& payload, uint64_t from,
                        absl::FunctionRef<void(size_t)> whole) {
  LOCKSTEP_CHECK(offset <= num_bytes_ && size <= num_bytes_ - offset);
  while (size > 0) {
    const size_t index = offset / range_bytes_;
    Range& range = ranges_[index];
    const uint64_t here = std::min(size, (index + 1) * range_bytes_ - offset);
    if (range.is_wanted) range.parts.push_back({offset, here, from, payload});
    range.received += here;
    if (range.received == BytesOf(index)) whole(index);
    offset += here;
    from += here;
    size -= here;
  }
}

void GradientParts::Copy(size_t first, size_t count, std::byte* to) const {
  const uint64_t begin = first * SizeOf(dtype_);
  const uint64_t end = begin + count * SizeOf(dtype_);
  const Range& range = ranges_[begin / range_bytes_];
  uint64_t copied = 0;
  for (const Part& part : range.parts) {
    const uint64_t from = std::max(begin, part.offset);
    const uint64_t until = std::min(end, part.offset + part.size);
    if (from >= until) continue;
    SegmentedReader cursor(*part.payload);
    LOCKSTEP_CHECK(cursor.CopyFrom(part.from + (from - part.offset),
                                   std::span(to + (from - begin), until - from)));
    copied += until - from;
  }
  LOCKSTEP_CHECK(copied == end - begin);
}

void GradientParts::LetGo(size_t range) {
  ranges_[range].is_wanted = false;
  ranges_[range].parts.clear();
}

}  // namespace lockstep
