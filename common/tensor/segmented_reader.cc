#include "common/tensor/segmented_reader.h"

#include <algorithm>

#include "common/tensor/non_temporal_copy.h"

namespace lockstep {

SegmentedReader::SegmentedReader(std::span<const std::span<const std::byte>> pieces)
    : pieces_(pieces) {
  for (const auto& piece : pieces) size_ += piece.size();
}

template <typename Take>
bool SegmentedReader::ForEach(uint64_t size, Take take) {
  if (size > remaining()) return false;
  position_ += size;
  while (size > 0) {
    const std::span<const std::byte> rest = pieces_[piece_].subspan(offset_);
    const auto stretch = rest.first(std::min<uint64_t>(size, rest.size()));
    if (!stretch.empty()) take(stretch);
    size -= stretch.size();
    offset_ += stretch.size();
    if (offset_ == pieces_[piece_].size()) {
      ++piece_;
      offset_ = 0;
    }
  }
  return true;
}

bool SegmentedReader::ReadLast(std::byte* byte) {
  return ForEach(1, [byte](std::span<const std::byte> stretch) { *byte = stretch[0]; });
}

bool SegmentedReader::SkipFar(uint64_t size) {
  return ForEach(size, [](std::span<const std::byte>) {});
}

bool SegmentedReader::Copy(uint64_t size, std::string* to) {
  return ForEach(size, [to](std::span<const std::byte> stretch) {
    to->append(reinterpret_cast<const char*>(stretch.data()), stretch.size());
  });
}

bool SegmentedReader::CopyTo(std::span<std::byte> to) {
  std::byte* next = to.data();
  const bool all = ForEach(to.size(), [&](std::span<const std::byte> stretch) {
    CopyFragment(next, stretch.data(), stretch.size(), to.size());
    next += stretch.size();
  });
  if (to.size() >= kStreamedBytes) FlushStreams();
  return all;
}

bool SegmentedReader::CopyFrom(uint64_t position, std::span<std::byte> to) {
  if (position < position_ || position > size_ || to.size() > size_ - position) return false;
  return Skip(position - position_) && CopyTo(to);
}

bool SegmentedReader::Share(uint64_t size, std::vector<std::span<const std::byte>>* to) {
  return ForEach(size, [to](std::span<const std::byte> stretch) { to->push_back(stretch); });
}

}  // namespace lockstep
