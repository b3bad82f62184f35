// Copies parts of a payload that lies in memory in pieces cut anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::ps {

// `size` bytes from position `from` of the payload to `to`.
struct CopyRange {
  uint64_t from = 0;
  std::byte* to = nullptr;
  uint64_t size = 0;
};

// Reads forward: positions must not go back (CHECK), nor beyond the end.
class PayloadReader {
 public:
  // The spans outlive the reader.
  explicit PayloadReader(std::span<const std::span<const std::byte>> spans) : spans_(spans) {}

  void Copy(const CopyRange& range);

 private:
  const std::span<const std::span<const std::byte>> spans_;
  size_t span_ = 0;
  uint64_t span_begin_ = 0;  // position of the span's first byte
};

}  // namespace lockstep::ps
