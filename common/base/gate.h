// "No new work; tell me when the current work is done": the shutdown primitive. Each piece of work
// holds a Pass; Close refuses new passes and waits for the ones given out. Thread-safe.
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep {

class Gate {
 public:
  // Permission to work, given back on destruction. Movable; a default-made or moved-from pass holds
  // nothing.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      Release();
      gate_ = std::exchange(other.gate_, nullptr);
      return *this;
    }
    ~Pass() { Release(); }

    // False when the gate was closed.
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    void Release() {
      if (gate_ != nullptr) std::exchange(gate_, nullptr)->Leave();
    }
    Gate* gate_ = nullptr;  // outlives every pass: Close waits for them
  };

  // Must have been closed, or have no pass out.
  ~Gate() { Close(); }

  [[nodiscard]] Pass Enter() {
    absl::MutexLock lock(&mutex_);
    if (closed_) return Pass();
    ++inside_;
    return Pass(this);
  }

  // Refuses new passes and waits until none is out. May be called again. Never from inside a pass.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    mutex_.Await(absl::Condition(
        +[](int* inside) { return *inside == 0; }, &inside_));
  }

 private:
  void Leave() {
    absl::MutexLock lock(&mutex_);
    --inside_;
  }

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep
