#include "common/update/update_batch.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {
namespace {

// Of a group of several.
constexpr uint64_t kGroupBytes = uint64_t{1} << 20;

}  // namespace

UpdateBatch::UpdateBatch(std::vector<DenseUpdate> updates) : updates_(std::move(updates)) {
  Group group{0, 0};
  uint64_t bytes = 0;
  for (const DenseUpdate& update : updates_) {
    if (group.end > group.first && bytes + update.num_bytes() > kGroupBytes) {
      AddGroup(group, bytes);
      group.first = group.end;
      bytes = 0;
    }
    bytes += update.num_bytes();
    ++group.end;
  }
  if (group.end > group.first) AddGroup(group, bytes);
}

void UpdateBatch::AddGroup(Group group, uint64_t bytes) {
  const size_t count = group.end - group.first;
  const size_t at_a_time = std::max<size_t>(
      1, count * DenseUpdate::kRangeBytes / std::max<uint64_t>(bytes, DenseUpdate::kRangeBytes));
  const size_t parts =
      count == 1 ? updates_[group.first].num_ranges() : (count + at_a_time - 1) / at_a_time;
  groups_.emplace_back(group, num_parts_, at_a_time, parts);
  num_parts_ += parts;
}

bool UpdateBatch::Make(size_t part, Group* whole) {
  PartsOfGroup& of = *std::prev(std::upper_bound(
      groups_.begin(), groups_.end(), part,
      [](size_t wanted, const PartsOfGroup& group) { return wanted < group.first_part; }));
  const size_t within = part - of.first_part;
  if (of.group.end - of.group.first == 1) {
    updates_[of.group.first].Make(within);
  } else {
    const size_t first = of.group.first + within * of.updates_at_a_time;
    const size_t end = std::min(first + of.updates_at_a_time, of.group.end);
    for (size_t i = first; i < end; ++i) {
      for (size_t range = 0; range < updates_[i].num_ranges(); ++range) updates_[i].Make(range);
    }
  }
  *whole = of.group;
  return of.missing.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

}  // namespace lockstep
