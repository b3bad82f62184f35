// How many gradients were how stale when they were applied.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace lockstep::ps {

// Not thread-safe.
class StalenessHistogram {
 public:
  // A stamp from the future, which only a peer in error has, is not stale.
  void Add(int64_t staleness) {
    const size_t bucket = staleness <= 0 ? 0 : std::bit_width(static_cast<uint64_t>(staleness));
    if (bucket >= counts_.size()) counts_.resize(bucket + 1);
    ++counts_[bucket];
  }

  // Of staleness 0, 1, 2-3, 4-7, 8-15, ..., up to the highest that occurred.
  const std::vector<uint64_t>& counts() const { return counts_; }

 private:
  std::vector<uint64_t> counts_;
};

}  // namespace lockstep::ps
