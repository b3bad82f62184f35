// Forms the groups in which workers reduce their gradients (strategy replicated). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "chief/membership/membership.h"

namespace lockstep::chief {

class GroupFormer {
 public:
  // `size`: the members without which no step can close.
  explicit GroupFormer(size_t size) : size_(size) {}

  // The live members, in the order of workers. True: they are a new view of the group. Fewer than
  // the size are none: the last view stays until there are enough.
  bool Update(absl::Span<const LiveMember> live) {
    if (live.size() < size_ || absl::MakeConstSpan(members_) == live) return false;
    members_.assign(live.begin(), live.end());
    ++view_;
    return true;
  }

  uint64_t view() const { return view_; }  // 0: none yet
  const std::vector<LiveMember>& members() const { return members_; }

 private:
  const size_t size_;
  uint64_t view_ = 0;
  std::vector<LiveMember> members_;
};

}  // namespace lockstep::chief
