#include "worker/collective/building_blocks.h"

#include <algorithm>

namespace lockstep::worker {

ElementRange PaddedPiece(size_t length, int pieces, int i) {
  const size_t size = (length + pieces - 1) / pieces;
  const size_t first = std::min(length, size * i);
  return {first, std::min(length, first + size) - first};
}

ElementRange RaggedPiece(size_t length, int pieces, int i) {
  const size_t size = length / pieces;
  const size_t first = size * i;
  return {first, i + 1 < pieces ? size : length - first};
}

void AddReduction(Members members, int to, size_t length, bool is_total, ScheduleBuilder* builder) {
  builder->Sum(to, {0, length}, members, is_total);
  builder->EndTick();
}

void AddBroadcast(int from, Members members, size_t length, ScheduleBuilder* builder) {
  for (const int to : members) builder->Copy(from, to, {0, length});
  builder->EndTick();
}

void AddShuffle(Members members, Members gather, size_t length, ScheduleBuilder* builder) {
  const int pieces = static_cast<int>(gather.size());
  for (int k = 0; k < pieces; ++k) {
    builder->Sum(gather[k], RaggedPiece(length, pieces, k), members, /*is_total=*/true);
  }
  builder->EndTick();
  for (int k = 0; k < pieces; ++k) {
    for (const int to : members) builder->Copy(gather[k], to, RaggedPiece(length, pieces, k));
  }
  builder->EndTick();
}

void AddHierarchicalCopy(Members members, int index, size_t length, ScheduleBuilder* builder) {
  const int n = static_cast<int>(members.size());
  const int half = n / 2;
  const Members first = members.first(half);
  const Members second = members.subspan(half);
  const int main = index % n;
  const int other_main = (main + half) % n;
  const bool is_main_in_first = main < half;
  const Members& group = is_main_in_first ? first : second;
  const Members& other_group = is_main_in_first ? second : first;

  builder->Sum(members[main], {0, length}, group, /*is_total=*/false);
  builder->Sum(members[other_main], {0, length}, other_group, /*is_total=*/false);
  builder->EndTick();
  const int sums[] = {members[main], members[other_main]};
  builder->Sum(members[main], {0, length}, sums, /*is_total=*/true);
  builder->EndTick();
  builder->Copy(members[main], members[other_main], {0, length});
  builder->EndTick();
  for (const int member : group) {
    if (member != members[other_main]) builder->Copy(members[main], member, {0, length});
  }
  for (const int member : other_group) {
    if (member != members[main]) builder->Copy(members[other_main], member, {0, length});
  }
  builder->EndTick();
}

}  // namespace lockstep::worker
