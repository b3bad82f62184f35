// The parts that algorithms are composed of. Each adds whole ticks for some participants, its
// `members`, in their order. `is_total`: the members' values make up all participants'.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "worker/collective/schedule_builder.h"

namespace lockstep::worker {

using Members = absl::Span<const int>;

// Piece `i` of `pieces` equal ones of ceil(length / pieces): padding is never sent, so the last
// ones are shorter or empty.
ElementRange PaddedPiece(size_t length, int pieces, int i);
// Piece `i` of floor(length / pieces), the last takes the rest.
ElementRange RaggedPiece(size_t length, int pieces, int i);

// `to` gets the sum in the members' order; it may be no member.
void AddReduction(Members members, int to, size_t length, bool is_total, ScheduleBuilder* builder);
// All members but `from` get what it has.
void AddBroadcast(int from, Members members, size_t length, ScheduleBuilder* builder);

// `orders`: the members once for each subchunk, each in the order of that subchunk's ring.
void AddRing(const std::vector<std::vector<int>>& orders, size_t length, ScheduleBuilder* builder);
// All members get all segments, of which the member at position r of a ring has segment r.
void AddRingOfCopies(const std::vector<std::vector<int>>& orders, size_t length,
                     ScheduleBuilder* builder);
void AddHalvingDoubling(Members members, size_t length, ScheduleBuilder* builder);
// Gather device k sums piece k of all members and sends it to them.
void AddShuffle(Members members, Members gather, size_t length, ScheduleBuilder* builder);
void AddHierarchicalCopy(Members members, int index, size_t length, ScheduleBuilder* builder);

}  // namespace lockstep::worker
