// PayloadOf makes the payload of a message as a receiver gets it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::test {

// A copy of `bytes` in pieces of `cut` bytes; freed with its last reference.
inline std::shared_ptr<const std::vector<std::span<const std::byte>>> PayloadOf(
    std::span<const std::byte> bytes, size_t cut) {
  struct Received {
    std::vector<std::byte> bytes;
    std::vector<std::span<const std::byte>> pieces;
  };
  const auto received = std::make_shared<Received>();
  received->bytes.assign(bytes.begin(), bytes.end());
  for (size_t at = 0; at < bytes.size(); at += cut) {
    received->pieces.push_back(
        std::span(received->bytes).subspan(at, std::min(cut, bytes.size() - at)));
  }
  return {received, &received->pieces};
}

}  // namespace lockstep::test
