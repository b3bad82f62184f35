// Counts the bytes of values in replies that have not been read: for as long as a reply exists it
// keeps the version that it shows, however many are made after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace lockstep::ps {

// Of one worker. Thread-safe.
struct UnreadReplies {
  std::atomic<uint64_t> bytes = 0;
};

// Bytes of one reply, counted for as long as it, or a copy of it, exists.
class ReaderPin {
 public:
  ReaderPin() = default;
  ReaderPin(std::shared_ptr<UnreadReplies> replies, uint64_t bytes)
      : replies_(std::move(replies)), bytes_(bytes) {
    Add();
  }
  ReaderPin(const ReaderPin& other) : replies_(other.replies_), bytes_(other.bytes_) { Add(); }
  ReaderPin(ReaderPin&& other) noexcept = default;
  ReaderPin& operator=(ReaderPin other) noexcept {
    std::swap(replies_, other.replies_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ReaderPin() {
    if (replies_ != nullptr) replies_->bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  }

 private:
  void Add() {
    if (replies_ != nullptr) replies_->bytes.fetch_add(bytes_, std::memory_order_relaxed);
  }

  std::shared_ptr<UnreadReplies> replies_;  // null: nothing is counted
  uint64_t bytes_ = 0;
};

}  // namespace lockstep::ps
