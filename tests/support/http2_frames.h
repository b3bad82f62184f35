// Finds the bytes of messages in one direction of an HTTP/2 connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::test {

// Not thread-safe.
class Http2Frames {
 public:
  // The client's direction begins with a preface of 24 bytes.
  explicit Http2Frames(bool from_client) : preface_left_(from_client ? 24 : 0) {}

  // A stretch of a DATA frame.
  struct Data {
    size_t begin;  // in the bytes that were read
    size_t size;
    size_t offset;       // of its first byte in the frame
    size_t frame_bytes;  // of the frame
  };
  // What of these bytes, which follow those of the calls before, is in DATA frames.
  std::vector<Data> Read(std::span<const char> bytes);

 private:
  static constexpr size_t kHeaderBytes = 9;

  size_t preface_left_;
  std::array<uint8_t, kHeaderBytes> header_ = {};
  size_t header_size_ = 0;
  size_t frame_bytes_ = 0;  // of the frame whose header is complete
  size_t frame_left_ = 0;
  bool is_data_ = false;
};

}  // namespace lockstep::test
