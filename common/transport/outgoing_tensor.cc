#include "common/transport/outgoing_tensor.h"

#include <algorithm>

#include "common/base/check.h"

namespace lockstep {

void AppendBytes(const OutgoingTensor& tensor, std::vector<std::span<const std::byte>>* spans) {
  LOCKSTEP_CHECK(!tensor.rounded_to.has_value());
  uint64_t offset = tensor.offset;
  uint64_t size = tensor.size;
  for (const std::span<const std::byte> part : {std::as_bytes(tensor.row_indices), tensor.values}) {
    const uint64_t begin = std::min<uint64_t>(offset, part.size());
    const uint64_t count = std::min<uint64_t>(size, part.size() - begin);
    if (count > 0) spans->push_back(part.subspan(begin, count));
    offset -= begin;
    size -= count;
  }
}

std::span<const float> RoundedElements(const OutgoingTensor& tensor) {
  const std::span<const float> all(reinterpret_cast<const float*>(tensor.values.data()),
                                   tensor.values.size() / sizeof(float));
  const size_t element_bytes = SizeOf(*tensor.rounded_to);
  const uint64_t first = std::min<uint64_t>(tensor.offset / element_bytes, all.size());
  return all.subspan(first, std::min<uint64_t>(tensor.size / element_bytes, all.size() - first));
}

}  // namespace lockstep
