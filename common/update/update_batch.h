// Dense variables that close at the same time: one loop over all of them, so that no thread waits
// between two variables until another has finished its part of the first.
//
// Small variables that follow each other are published together, a large one alone, as soon as it
// is whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <vector>

#include "common/update/dense_update.h"

namespace lockstep {

class UpdateBatch {
 public:
  // Updates [first, end) that are whole at the same time.
  struct Group {
    size_t first;
    size_t end;
  };

  // In the order in which they are wanted.
  explicit UpdateBatch(std::vector<DenseUpdate> updates);

  // Pieces of work that are about as long as a thread is worth waking for.
  size_t num_parts() const { return num_parts_; }
  // Once for each part, from any threads. True for the last part of a group: what all threads made
  // of it is there, and is the caller's to finish.
  bool Make(size_t part, Group* whole);

  DenseUpdate& update(size_t index) { return updates_[index]; }

 private:
  struct PartsOfGroup {
    PartsOfGroup(Group group, size_t first_part, size_t updates_at_a_time, size_t num_parts)
        : group(group),
          first_part(first_part),
          updates_at_a_time(updates_at_a_time),
          missing(num_parts) {}

    Group group;
    size_t first_part;
    size_t updates_at_a_time;  // in a part; of a group of one, a part is a range
    std::atomic<size_t> missing;
  };

  void AddGroup(Group group, uint64_t bytes);

  std::vector<DenseUpdate> updates_;
  std::deque<PartsOfGroup> groups_;
  size_t num_parts_ = 0;
};

}  // namespace lockstep
