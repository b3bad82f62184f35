#include "ps/copy/state_plan.h"

#include <algorithm>

namespace lockstep::ps {
namespace {

// A multiple of the size of every element.
constexpr uint64_t kElementBytes = sizeof(double);

// Appends the range, cut where a message is full. `*room`: in the last message.
void Append(StateRange range, uint64_t most_bytes, uint64_t* room, StatePlan::Messages* messages) {
  while (range.size > 0) {
    if (*room == 0) {
      messages->emplace_back();
      *room = most_bytes;
    }
    const uint64_t size = std::min(range.size, *room);
    messages->back().push_back({range.tensor, range.offset, size});
    *room -= size;
    range.offset += size;
    range.size -= size;
  }
}

}  // namespace

StatePlan::StatePlan(const std::vector<StateTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].num_bytes == 0) continue;
    num_bytes_ += tensors[i].num_bytes;
    if (i > 0 && tensors[i].variable == tensors[i - 1].variable) {
      ++variables_.back().num_tensors;
    } else {
      variables_.push_back({i, 1, tensors[i].num_bytes});
    }
  }
}

StatePlan::Messages StatePlan::Next(uint64_t bytes, uint64_t most_bytes) {
  Messages messages;
  uint64_t room = 0;
  while (bytes > 0 && !is_done()) {
    const VariableState& of = variables_[variable_];
    const uint64_t fits = bytes / of.num_tensors / kElementBytes * kElementBytes;
    // What does not fit is left to the next part, if there is something in this one.
    if (fits == 0 && !messages.empty()) break;
    const uint64_t size = std::min(of.num_bytes - offset_, std::max(fits, kElementBytes));
    for (size_t i = 0; i < of.num_tensors; ++i) {
      Append({of.first_tensor + i, offset_, size}, most_bytes, &room, &messages);
    }
    bytes -= std::min(bytes, size * of.num_tensors);
    offset_ += size;
    if (offset_ < of.num_bytes) continue;
    ++variable_;
    offset_ = 0;
  }
  return messages;
}

}  // namespace lockstep::ps
