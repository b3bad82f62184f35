// The id of a view of a worker group (strategy replicated). A later view replaces an earlier one.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep {

// A value. Ordered by term, epoch, view, as in proto/group.proto.
struct GroupViewId {
  uint64_t term = 0;
  uint64_t epoch = 0;
  uint64_t view = 0;  // counts the views of an epoch that a chief forms, from 1; 0: none

  friend auto operator<=>(const GroupViewId&, const GroupViewId&) = default;
};

// "term 1, epoch 2, view 3".
inline std::string ToString(const GroupViewId& id) {
  return absl::StrCat("term ", id.term, ", epoch ", id.epoch, ", view ", id.view);
}

}  // namespace lockstep
