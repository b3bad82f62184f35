// StatePlan chooses the next bytes of a shard's state for a new copy. It takes elements of one
// variable after the other, each with its value and all its slots. A step changes the value of an
// element by its slots, so the slots must not come in a later part than the value.
//
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/shard/state_tensor.h"

namespace lockstep::ps {

class StatePlan {
 public:
  using Messages = std::vector<std::vector<StateRange>>;

  // The tensors of a variable follow each other, and have the same number of bytes.
  explicit StatePlan(const std::vector<StateTensor>& tensors);

  uint64_t num_bytes() const { return num_bytes_; }
  // Nothing is left.
  bool is_done() const { return variable_ == variables_.size(); }
  // The next part: about `bytes` bytes, at least an element and at most what is left, in messages
  // of up to `most_bytes`.
  Messages Next(uint64_t bytes, uint64_t most_bytes);

 private:
  struct VariableState {
    size_t first_tensor;
    size_t num_tensors;
    uint64_t num_bytes;  // of each
  };

  std::vector<VariableState> variables_;  // those with bytes
  uint64_t num_bytes_ = 0;
  size_t variable_ = 0;  // the first one not sent completely
  uint64_t offset_ = 0;  // in each of its tensors
};

}  // namespace lockstep::ps
