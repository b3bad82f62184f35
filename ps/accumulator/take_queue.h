// Who waits to take from an accumulator: strictly first come, first served. The one in front blocks
// those behind it, also when they ask for less.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/ids.h"

namespace lockstep::ps {

// The caller's name for a take that it will be told about later.
using TakeId = StrongInt<struct TakeIdTag, uint64_t>;

// Not thread-safe.
class TakeQueue {
 public:
  void Add(TakeId id, int required) { waiting_.push_back({id, required}); }
  // Removes and returns the take in front when `accumulated` gradients satisfy it.
  std::optional<TakeId> PopSatisfied(int accumulated);
  // False when it is not waiting.
  bool Remove(TakeId id);
  int size() const { return static_cast<int>(waiting_.size()); }

 private:
  struct Waiting {
    TakeId id;
    int required;
  };
  std::deque<Waiting> waiting_;
};

}  // namespace lockstep::ps
