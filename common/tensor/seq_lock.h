// A sequence lock: the version of the bytes beside it, for readers in another process, which have
// them mapped. The writer never waits. A reader checks afterwards whether it read what it wanted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep {

// Lives in zeroed memory that both processes have mapped. One writer at a time.
class SeqLock {
 public:
  // Bytes that it takes in front of a tensor, which stays aligned.
  static constexpr size_t kRoom = 64;

  SeqLock() = default;
  SeqLock(const SeqLock&) = delete;

  // Before the first byte is changed.
  void BeginWriting() {
    version_.store(kBeingWritten, std::memory_order_relaxed);
    Fence();
  }
  // After the last one. Versions only go up.
  void Publish(int64_t version) {
    Fence();
    version_.store(version, std::memory_order_release);
  }
  // Of a writer.
  int64_t version() const { return version_.load(std::memory_order_relaxed); }

  // Whether a reader that was told `version`, and has read the bytes since, has read that version.
  // A lower version of the lock is as good: the bytes have not changed since.
  bool StillHolds(int64_t version) const {
    Fence();
    const int64_t now = version_.load(std::memory_order_relaxed);
    return now >= 0 && now <= version;
  }

 private:
  static constexpr int64_t kBeingWritten = -1;

  // In full: the loops between use stores that bypass the cache, which only this orders.
  static void Fence() {
#if defined(__SANITIZE_THREAD__)
    static std::atomic<int> any{0};
    any.fetch_add(0, std::memory_order_seq_cst);  // TSan does not know fences
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

  std::atomic<int64_t> version_{0};
};

static_assert(sizeof(SeqLock) <= SeqLock::kRoom && std::atomic<int64_t>::is_always_lock_free);

}  // namespace lockstep
