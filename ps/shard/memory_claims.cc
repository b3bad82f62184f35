#include "ps/shard/memory_claims.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep::ps {

MemoryClaims::MemoryClaims(std::function<std::optional<uint64_t>()> available)
    : available_(std::move(available)) {}

MemoryClaims::Answer MemoryClaims::Claim(uint64_t bytes) {
  const uint64_t now = available_().value_or(std::numeric_limits<uint64_t>::max());
  absl::MutexLock lock(&mutex_);
  // Others on this host give memory back, too.
  whole_ = claimed_ == 0 ? now : std::max(whole_, now);
  // Of what is claimed, some may be taken and some not.
  Answer answer{.room = std::min(now, whole_ - std::min(whole_, claimed_)), .claimed = claimed_};
  if (bytes > answer.room) return answer;
  claimed_ += bytes;
  answer.claim = MemoryClaim(this, [this, bytes](const void*) { Release(bytes); });
  return answer;
}

uint64_t MemoryClaims::ShareOf(uint64_t bytes) const {
  absl::MutexLock lock(&mutex_);
  const uint64_t left = whole_ - std::min(whole_, claimed_);
  if (bytes >= claimed_) return left;
  return static_cast<uint64_t>(static_cast<double>(left) * static_cast<double>(bytes) /
                               static_cast<double>(claimed_));
}

void MemoryClaims::Release(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  claimed_ -= bytes;
}

}  // namespace lockstep::ps
