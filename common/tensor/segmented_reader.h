// Reads bytes that lie in several pieces of memory as if they lay in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// Looks at the pieces, which must stay. A read that wants more than remains fails and moves
// nothing.
class SegmentedReader {
 public:
  explicit SegmentedReader(std::span<const std::span<const std::byte>> pieces);

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return size_ - position_; }

  bool ReadByte(std::byte* byte) {
    // Most bytes are followed by others of their piece.
    if (piece_ >= pieces_.size() || offset_ + 1 >= pieces_[piece_].size()) return ReadLast(byte);
    *byte = pieces_[piece_][offset_++];
    ++position_;
    return true;
  }
  bool Skip(uint64_t size) {
    if (piece_ >= pieces_.size() || size >= pieces_[piece_].size() - offset_) return SkipFar(size);
    offset_ += size;
    position_ += size;
    return true;
  }
  bool Copy(uint64_t size, std::string* to);
  // As Copy, into memory; a large copy is non-temporal.
  bool CopyTo(std::span<std::byte> to);
  // CopyTo from there on; fails, too, when the position is past.
  bool CopyFrom(uint64_t position, std::span<std::byte> to);
  // Appends the next `size` bytes as spans into the pieces.
  bool Share(uint64_t size, std::vector<std::span<const std::byte>>* to);

 private:
  bool ReadLast(std::byte* byte);
  bool SkipFar(uint64_t size);
  // Calls `take` with every stretch of the next `size` bytes.
  template <typename Take>
  bool ForEach(uint64_t size, Take take);

  std::span<const std::span<const std::byte>> pieces_;
  size_t piece_ = 0;
  size_t offset_ = 0;  // in pieces_[piece_]
  uint64_t position_ = 0;
  uint64_t size_ = 0;
};

}  // namespace lockstep
