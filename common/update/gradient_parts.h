// A dense gradient that lies where it was received: in the memory of messages, in pieces cut
// anywhere. It is copied by those who sum it, a block at a time, while the block is in their cache.
//
// It is cut into ranges of elements, each of which can be read as soon as it is whole, and released
// after its last reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Not thread-safe, except that a range that is whole may be read and let go by one thread while
// others do so with other ranges, or add to them.
class GradientParts {
 public:
  // The pieces of a message; the owner of the vector keeps their memory.
  using Payload = std::vector<std::span<const std::byte>>;

  // Of the whole gradient; the last range may be shorter than `range_elements`.
  GradientParts(DType dtype, const Shape& shape, size_t range_elements);

  // Its type and shape; without memory.
  TensorView view() const { return {dtype_, shape_, nullptr}; }
  uint64_t num_bytes() const { return num_bytes_; }
  size_t num_ranges() const { return ranges_.size(); }

  // Bytes [offset, offset + size), which nobody has added before, are those of the payload from
  // `from` on. Calls `whole` with each range to which no byte is missing now.
  void Add(uint64_t offset, uint64_t size, const std::shared_ptr<const Payload>& payload,
           uint64_t from, absl::FunctionRef<void(size_t)> whole);
  bool IsWhole(size_t range) const { return ranges_[range].received == BytesOf(range); }
  // Elements [first, first + count) of one range, which is whole and has not been let go (CHECK).
  void Copy(size_t first, size_t count, std::byte* to) const;
  // Releases the range. Bytes of it that arrive later are dropped.
  void LetGo(size_t range);

 private:
  struct Part {
    uint64_t offset;  // in the gradient
    uint64_t size;
    uint64_t from;  // in the payload
    std::shared_ptr<const Payload> payload;
  };
  struct Range {
    uint64_t received = 0;  // bytes
    bool is_wanted = true;
    absl::InlinedVector<Part, 1> parts;  // in any order
  };

  uint64_t BytesOf(size_t range) const;

  const DType dtype_;
  const Shape shape_;
  const uint64_t num_bytes_;
  const uint64_t range_bytes_;
  std::vector<Range> ranges_;
};

}  // namespace lockstep
