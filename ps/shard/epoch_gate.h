// Keeps the state of an epoch for the operations under way in it. They enter without a lock. Once
// the gate is closed nobody finds the state, and the last operation that leaves lets it go.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace lockstep::ps {

struct EpochState;

using RunInBackground = std::function<bool(const std::function<void()>&)>;

// Releases large memory, which takes long. Not under a lock.
void LetGo(const RunInBackground& run_in_background, std::shared_ptr<const void> memory);

// Thread-safe. `Under the lock`: the caller holds the shard's.
class EpochGate {
 public:
  // The state stays while it exists. Not destroyed under the lock.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave();
    }

    explicit operator bool() const { return gate_ != nullptr; }
    EpochState* state() const { return gate_->state_.get(); }
    // Another one, also of an epoch that is over.
    Pass Share() const;

   private:
    friend class EpochGate;
    explicit Pass(EpochGate* gate) : gate_(gate) {}

    EpochGate* gate_ = nullptr;
  };

  EpochGate(absl::Mutex* mu, RunInBackground run_in_background)
      : mu_(mu), run_in_background_(std::move(run_in_background)) {}

  // False where no epoch is open.
  Pass Enter();
  // Under the lock. Null where no epoch is open.
  EpochState* state() const { return passes_.load() & kClosed ? nullptr : state_.get(); }
  // Under the lock. No state is there, not even one of an epoch that is over.
  bool IsEmpty() const { return state_ == nullptr; }
  // Under the lock. IsEmpty.
  void Open(std::shared_ptr<EpochState> state);
  // Not under the lock. Waits until the last state that went has freed its memory.
  void AwaitFreed() const;
  // By one who holds a pass: the state goes with the last one, in the background.
  void Close() { passes_.fetch_or(kClosed, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  void Leave();

  absl::Mutex* const mu_;
  const RunInBackground run_in_background_;
  std::atomic<uint64_t> passes_ = kClosed;     // and whether it is closed
  std::shared_ptr<EpochState> state_;          // changes under the lock, and while there is no pass
  std::shared_ptr<absl::Notification> freed_;  // of the last state that went; under the lock
};

}  // namespace lockstep::ps
