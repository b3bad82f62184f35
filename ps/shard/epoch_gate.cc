#include "ps/shard/epoch_gate.h"

#include "common/base/check.h"

namespace lockstep::ps {
namespace {

// Tells when the state is gone, which may be after the gate.
struct Leaving {
  ~Leaving() {
    state.reset();
    freed->Notify();
  }

  std::shared_ptr<const void> state;
  const std::shared_ptr<absl::Notification> freed = std::make_shared<absl::Notification>();
};

}  // namespace

void LetGo(const RunInBackground& run_in_background, std::shared_ptr<const void> memory) {
  if (run_in_background == nullptr || memory == nullptr) return;
  const auto held = std::make_shared<std::shared_ptr<const void>>(std::move(memory));
  if (!run_in_background([held] { held->reset(); })) held->reset();
}

EpochGate::Pass EpochGate::Pass::Share() const {
  gate_->passes_.fetch_add(1, std::memory_order_relaxed);
  return Pass(gate_);
}

EpochGate::Pass EpochGate::Enter() {
  uint64_t passes = passes_.load(std::memory_order_relaxed);
  do {
    if (passes & kClosed) return Pass();
  } while (!passes_.compare_exchange_weak(passes, passes + 1, std::memory_order_acquire,
                                          std::memory_order_relaxed));
  return Pass(this);
}

void EpochGate::Open(std::shared_ptr<EpochState> state) {
  LOCKSTEP_CHECK(IsEmpty());
  state_ = std::move(state);
  passes_.store(0, std::memory_order_release);
}

void EpochGate::Leave() {
  if (passes_.fetch_sub(1, std::memory_order_acq_rel) != (kClosed | 1)) return;
  // Nobody enters again, so this is the only one that comes here.
  auto leaving = std::make_shared<Leaving>();
  RunInBackground run_in_background;
  {
    absl::MutexLock lock(mu_);
    leaving->state = std::exchange(state_, nullptr);
    freed_ = leaving->freed;
    run_in_background = run_in_background_;  // the gate may go with the lock
  }
  LetGo(run_in_background, std::move(leaving));
}

void EpochGate::AwaitFreed() const {
  std::shared_ptr<absl::Notification> freed;
  {
    absl::MutexLock lock(mu_);
    freed = freed_;
  }
  if (freed != nullptr) freed->WaitForNotification();
}

}  // namespace lockstep::ps
