#include "tests/support/http2_frames.h"

#include <algorithm>

namespace lockstep::test {
namespace {

constexpr uint8_t kData = 0;  // the type of a frame (RFC 9113, 6.1)

}  // namespace

std::vector<Http2Frames::Data> Http2Frames::Read(std::span<const char> bytes) {
  std::vector<Data> found;
  size_t at = std::min(preface_left_, bytes.size());
  preface_left_ -= at;
  while (at < bytes.size()) {
    if (frame_left_ == 0) {
      header_[header_size_++] = static_cast<uint8_t>(bytes[at++]);
      if (header_size_ < kHeaderBytes) continue;
      header_size_ = 0;
      frame_bytes_ = size_t{header_[0]} << 16 | size_t{header_[1]} << 8 | header_[2];
      frame_left_ = frame_bytes_;
      is_data_ = header_[3] == kData;
      continue;
    }
    const size_t size = std::min(frame_left_, bytes.size() - at);
    if (is_data_) found.push_back({at, size, frame_bytes_ - frame_left_, frame_bytes_});
    at += size;
    frame_left_ -= size;
  }
  return found;
}

}  // namespace lockstep::test
