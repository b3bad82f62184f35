// TakeQueue holds the takes that wait for an accumulator: strictly first come, first served. The
// one in front blocks those behind it, also when they ask for less.
#pragma once

#include <cstdint>
#include <deque>

#include "common/base/ids.h"

namespace lockstep::reference {

// The caller's name for a take that it will be told about later.
using TakeId = StrongInt<struct TakeIdTag, uint64_t>;

// Not thread-safe.
class TakeQueue {
 public:
  struct Take {
    TakeId id;
    int required;
  };

  void Add(TakeId id, int required) { waiting_.push_back({id, required}); }
  // nullptr: none waits.
  const Take* front() const { return waiting_.empty() ? nullptr : &waiting_.front(); }
  void PopFront() { waiting_.pop_front(); }
  // False when it is not waiting.
  bool Remove(TakeId id);
  int size() const { return static_cast<int>(waiting_.size()); }

 private:
  std::deque<Take> waiting_;
};

}  // namespace lockstep::reference
