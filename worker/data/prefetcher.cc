#include "worker/data/prefetcher.h"

#include <algorithm>

#include "common/base/check.h"

namespace lockstep::worker {

Prefetcher::Prefetcher(int64_t ahead, int64_t last_step, const Make& make, Fill fill)
    : last_step_(last_step), fill_(std::move(fill)), slots_(ahead + 1) {
  LOCKSTEP_CHECK(ahead >= 1);
  {
    absl::MutexLock lock(&mutex_);
    free_.reserve(slots_.size());
    ready_.reserve(slots_.size());
    for (PrefetchedStep& slot : slots_) {
      slot.batches = make();
      free_.push_back(&slot);
    }
  }
  thread_ = std::thread([this] { FillSlots(); });
}

Prefetcher::~Prefetcher() {
  Stop();
  thread_.join();
}

void Prefetcher::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

const std::vector<Batch>* Prefetcher::Get(int64_t step) {
  LOCKSTEP_CHECK(step >= 0 && step <= last_step_);
  absl::MutexLock lock(&mutex_);
  if (in_use_ != nullptr && in_use_->step == step) return &in_use_->batches;
  Advance(step);
  const auto ready = [this] {
    mutex_.AssertReaderHeld();
    return stopping_ || !ready_.empty();
  };
  mutex_.Await(absl::Condition(&ready));
  if (stopping_) return nullptr;
  in_use_ = ready_.front();
  ready_.erase(ready_.begin());
  LOCKSTEP_CHECK(in_use_->step == step);
  return &in_use_->batches;
}

bool Prefetcher::Has(int64_t step) const {
  absl::MutexLock lock(&mutex_);
  if (in_use_ != nullptr && in_use_->step == step) return true;
  return std::ranges::find(ready_, step, &PrefetchedStep::step) != ready_.end();
}

void Prefetcher::Advance(int64_t step) {
  if (in_use_ != nullptr) free_.push_back(in_use_);
  in_use_ = nullptr;
  while (!ready_.empty() && ready_.front()->step != step) {
    free_.push_back(ready_.front());
    ready_.erase(ready_.begin());
  }
  if (!ready_.empty()) return;
  const int64_t coming = filling_ != nullptr && filling_wanted_ ? filling_->step : next_step_;
  if (coming == step) return;
  next_step_ = step;
  filling_wanted_ = false;
}

bool Prefetcher::MayFill() const { return !free_.empty() && next_step_ <= last_step_; }

Prefetcher::PrefetchedStep* Prefetcher::NextToFill() {
  absl::MutexLock lock(&mutex_);
  const auto awake = [this] {
    mutex_.AssertReaderHeld();
    return stopping_ || MayFill();
  };
  mutex_.Await(absl::Condition(&awake));
  if (stopping_) return nullptr;
  filling_ = free_.back();
  free_.pop_back();
  filling_->step = next_step_++;
  filling_wanted_ = true;
  return filling_;
}

void Prefetcher::OnFilled(PrefetchedStep* slot) {
  absl::MutexLock lock(&mutex_);
  (filling_wanted_ ? ready_ : free_).push_back(slot);
  filling_ = nullptr;
}

void Prefetcher::FillSlots() {
  while (PrefetchedStep* const slot = NextToFill()) {
    fill_(slot->step, &slot->batches);
    OnFilled(slot);
  }
}

}  // namespace lockstep::worker
