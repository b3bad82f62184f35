// One tensor of a message that is sent, or a piece of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/tensor/dtype.h"

namespace lockstep {

class SeqLock;

// Does not own the bytes. The method that takes it says how long they must stay.
struct OutgoingTensor {
  static constexpr uint64_t kToTheEnd = UINT64_MAX;

  std::span<const std::byte> values;
  std::span<const int64_t> row_indices = {};  // of a sparse gradient: they travel before the values
  // Float32 values travel as bfloat16 or float16, rounded to nearest as they leave.
  std::optional<DType> rounded_to = {};
  // Which part of the row indices and values travels, in bytes as they travel. A tensor that goes
  // by reference is whole.
  uint64_t offset = 0;
  uint64_t size = kToTheEnd;
  // The receiver reads the values in this process's memory. All tensors of a message, or none.
  bool by_reference = false;
  // Of a reply by reference: tells the receiver whether the values have been overwritten.
  const SeqLock* seq_lock = nullptr;
};

// Appends the bytes of a tensor that is not rounded, in at most two spans.
void AppendBytes(const OutgoingTensor& tensor, std::vector<std::span<const std::byte>>* spans);

// The elements that a tensor that is rounded sends.
std::span<const float> RoundedElements(const OutgoingTensor& tensor);

}  // namespace lockstep
